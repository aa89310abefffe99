/* config.h: traind's command line and the paths that follow from it. */
#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H

#include <stdbool.h>
#include <sys/types.h>

#include "proto/err.h"

struct config_group {
    char *name; /* NULL: none was named */
    bool exists;
    gid_t gid;
};

struct config {
    bool user_mode;                  /* --user: jobs run as the daemon's own user */
    char *socket;                    /* absolute */
    char *state;                     /* absolute */
    char *worker;                    /* absolute */
    char *shim;                      /* absolute */
    struct config_group group;       /* may use the socket */
    struct config_group admin_group; /* administers, as root and the daemon's own user do */
    int cpu_devices;                 /* 0: one a core */
    int grace_s;
    int half_life_h;  /* of what has been used */
    int user_devices; /* that a user may hold at once; 0: any number */
    int user_jobs;    /* that a user may have waiting or running */
    bool allow_root_jobs;
    bool detach;
    bool check_only; /* --check-config */
    bool show_help, show_version;
};

/* Fills `ret_config` from the command line and environment; freed with config_done also after an
 * error. Errors: ERR_USAGE, ERR_NOMEM. */
int config_read(int argc, char **argv, struct config *ret_config, struct err *err);
void config_done(struct config *config);

/* Are worker and shim there? Without them every job would fail. Errors: ERR_USAGE. */
int config_check_programs(const struct config *config, struct err *err);

/* The text of --help. */
const char *config_usage(void);
/* What --check-config prints, on standard output. */
void config_print(const struct config *config);

#endif
