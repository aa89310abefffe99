/* shim.h: what the parts of traind-shim share: its options and its clock. */
#ifndef DAEMON_SHIM_H
#define DAEMON_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SHIM_NEVER INT64_MAX

struct shim_options {
    const char *dir, *id, *cwd;
    const char *user; /* for initgroups; NULL: no group but `gid` */
    bool drop;        /* run the job as uid and gid */
    uid_t uid;
    gid_t gid;
    int64_t grace_ns;
    char **env; /* NAME=VALUE, n_env of them */
    size_t n_env;
    char **program; /* the job's argv, NULL-terminated */
};

/* CLOCK_MONOTONIC: every deadline of the shim is a point of this clock. */
int64_t shim_now_ns(void);

#endif
