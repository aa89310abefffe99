/* methods.h: the methods and their parameters: one table for daemon, client and `server.describe`.
 */
#ifndef PROTO_METHODS_H
#define PROTO_METHODS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "proto/err.h"

enum param_type {
    PARAM_STRING,
    PARAM_INT,
    PARAM_NUMBER,
    PARAM_BOOL,
    PARAM_OBJECT,
    PARAM_STRINGS,
    PARAM_INTS
};

struct param_def {
    const char *name;
    enum param_type type;
    bool required;
};

enum method {
    METHOD_SERVER_INFO,
    METHOD_SERVER_DESCRIBE,
    METHOD_JOB_SUBMIT,  /* job: object, cwd: string, key?: string, dry_run?: bool */
    METHOD_JOB_LIST,    /* states?: strings, user?: int (uid), limit?: int, cursor?: int */
    METHOD_JOB_SHOW,    /* id: int */
    METHOD_JOB_WAIT,    /* ids: ints, any?: bool, timeout?: number (seconds) */
    METHOD_JOB_WATCH,   /* ids?: ints, user?: int, since?: int */
    METHOD_JOB_LOGS,    /* id: int, offset?: int, follow?: bool */
    METHOD_JOB_CANCEL,  /* ids: ints, reason?: string */
    METHOD_JOB_HOLD,    /* the same */
    METHOD_JOB_RELEASE, /* the same */
    METHOD_JOB_UPDATE,  /* ids: ints, priority?: int, time_limit?: string ("2h", "none"), reason?:
                           string */
    METHOD_DEVICE_LIST,
    METHOD_DEVICE_DRAIN,  /* devices?: strings (absent: all), reason?: string */
    METHOD_DEVICE_RESUME, /* the same */
    METHOD_COUNT
};

struct method_def {
    const char *name; /* "job.submit" */
    const struct param_def *params;
    size_t n_params;
    const char *summary;
};

const struct method_def *method_def(enum method method);
/* METHOD_COUNT if there is none. */
enum method method_find(const char *name);
/* Errors: ERR_METHOD, naming the nearest. */
int method_unknown(const char *name, struct err *err);
/* "NAME must be FORMAT, found …": a parameter that is there and of the right type, but of a wrong
 * value. Returns ERR_PARAMS. */
int method_refuse(struct err *err, const json_t *params, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Checks names, types and required ones. Errors: ERR_PARAMS naming the parameter (and the nearest
 * known). */
int method_check(enum method method, const json_t *params, struct err *err);
/* The result of server.describe: every method, its params and the error names. New reference. */
json_t *method_describe(void);

#endif
