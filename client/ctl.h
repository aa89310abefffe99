/* ctl.h: what every command of trainctl works with, and the table of commands.
 *
 * A command returns 0 or a negative ERR_*; main prints the error and turns it into the exit status.
 * What is no error but not a success either (a followed job that failed) is `status`.
 */
#ifndef CLIENT_CTL_H
#define CLIENT_CTL_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "client/args.h"
#include "client/conn.h"
#include "client/document.h"
#include "client/render/style.h"
#include "client/render/text.h"
#include "proto/err.h"
#include "proto/methods.h"

enum {
    STATUS_FAILED = 1,
    STATUS_DETACHED = 130, /* 128 + SIGINT: nobody may take it for the job's success */
};

struct ctl {
    struct args args;
    struct style style;
    struct document document; /* the job's, in the commands that read one */
    struct conn *conn;        /* NULL until the first call */
    int status;
};

struct cmd {
    const char *name, *args, *summary;
    unsigned options; /* OPT_BITs beside OPT_EVERYWHERE */
    size_t min_words, max_words;
    int (*run)(struct ctl *ctl, struct err *err);
};

/* NULL if there is none. */
const struct cmd *cmd_find(const char *name);
/* The i-th, in the order of the help; NULL behind the last. */
const struct cmd *cmd_at(size_t i);
/* Help on all commands (`cmd` NULL) or on one. */
void cmd_help(struct text *text, const struct cmd *cmd);
/* Errors: ERR_USAGE naming the nearest command. */
int cmd_unknown(const char *name, struct err *err);

int cmd_submit(struct ctl *ctl, struct err *err);
int cmd_list(struct ctl *ctl, struct err *err);
int cmd_show(struct ctl *ctl, struct err *err);
int cmd_watch(struct ctl *ctl, struct err *err);
int cmd_logs(struct ctl *ctl, struct err *err);
int cmd_wait(struct ctl *ctl, struct err *err);
int cmd_cancel(struct ctl *ctl, struct err *err);
int cmd_hold(struct ctl *ctl, struct err *err);
int cmd_update(struct ctl *ctl, struct err *err);
int cmd_release(struct ctl *ctl, struct err *err);
int cmd_devices(struct ctl *ctl, struct err *err);
int cmd_drain(struct ctl *ctl, struct err *err);
int cmd_resume(struct ctl *ctl, struct err *err);
int cmd_check(struct ctl *ctl, struct err *err);
int cmd_plan(struct ctl *ctl, struct err *err);
int cmd_plot(struct ctl *ctl, struct err *err);
int cmd_top(struct ctl *ctl, struct err *err);
int cmd_tune(struct ctl *ctl, struct err *err);
int cmd_completion(struct ctl *ctl, struct err *err);
int cmd_info(struct ctl *ctl, struct err *err);
int cmd_model(struct ctl *ctl, struct err *err);
int cmd_weights(struct ctl *ctl, struct err *err);

/* A command of a command: its first word picks a row. */
struct subcommand {
    const char *name;
    size_t words; /* that it takes after its own */
    int (*run)(struct ctl *ctl, const char *const *words, struct err *err);
};
/* Runs the row (the table ends with {0}) that the command's first word names. Errors: ERR_USAGE. */
int ctl_subcommand(struct ctl *ctl, const struct subcommand *table, struct err *err);

/* Opens the connection, unless it is open. See conn_path and conn_open. */
int ctl_connect(struct ctl *ctl, struct err *err);
/* Calls the daemon, connecting first if need be; see conn_call. */
int ctl_call(struct ctl *ctl, enum method method, json_t *params, json_t **ret_result,
             struct err *err);
/* Drops the connection, so that the next call opens a new one. */
void ctl_disconnect(struct ctl *ctl);

/* Writes text (and frees it), or one JSON value as a line, to standard output. */
int ctl_print(struct text *text, struct err *err);
int ctl_print_json(const json_t *value, struct err *err);

/* The result of device.list as a table, or as JSON. */
int ctl_print_devices(struct ctl *ctl, const json_t *result, struct err *err);

/* The command's words as an array of job ids. Errors: ERR_USAGE, ERR_NOMEM. */
int ctl_ids(const struct ctl *ctl, json_t **ret_ids, struct err *err);

enum { CTL_USER_SIZE = 64 };

/* The user's name, or the number where there is none. Writes into `buf` and returns it. */
const char *ctl_user(int64_t uid, char buf[static CTL_USER_SIZE]);

#endif
