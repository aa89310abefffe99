/* err.h: one error type for every module and program.
 *
 * A function that can fail returns 0 or a negative `enum err_code` and fills `struct err`, its last
 * parameter, with the sentence a user will read. The layer that knows where the fault is sets the
 * path; each layer above may put its context in front once (err_context). Libraries never log.
 * Path and message are always valid UTF-8 without control characters, whatever was put in ('?'
 * stands for what was not), and are cut between characters where they are too long.
 */
#ifndef PROTO_ERR_H
#define PROTO_ERR_H

/* X(NAME, stable name, JSON-RPC code, exit status of trainctl and traind-worker).
 * Stable names are part of the protocol: never change or reuse one. */
#define ERR_CODES(X)                                                                               \
    X(PARSE, "rpc.parse", -32700, 1)         /* a line is not JSON */                              \
    X(REQUEST, "rpc.request", -32600, 1)     /* JSON, but not a request */                         \
    X(METHOD, "rpc.method", -32601, 2)       /* no such method */                                  \
    X(PARAMS, "rpc.params", -32602, 2)       /* a parameter is unknown, missing or wrong */        \
    X(INTERNAL, "internal", -32603, 1)       /* our own fault */                                   \
    X(USAGE, "usage", -32000, 2)             /* a command line is wrong */                         \
    X(NOMEM, "memory", -32001, 1)            /* an allocation failed */                            \
    X(IO, "io", -32002, 1)                   /* a file or pipe failed; the sentence has errno */   \
    X(JOB_INVALID, "job.invalid", -32010, 1) /* the document breaks a rule; has a path */          \
    X(JOB_UNSUPPORTED, "job.unsupported", -32011, 1) /* known, but not in this version */          \
    X(MODEL_SHAPE, "model.shape", -32012, 1)         /* layers do not fit together */              \
    X(DATA_INVALID, "data.invalid", -32013, 1)       /* a data file is broken or does not fit */   \
    X(WEIGHTS_INVALID, "weights.invalid", -32014,                                                  \
      1)                                           /* a weights file is broken or does not fit */  \
    X(CHECKPOINT, "checkpoint", -32015, 1)         /* a checkpoint is broken or of another job */  \
    X(DEVICE_UNKNOWN, "device.unknown", -32016, 1) /* no such device, or more than there are */    \
    X(DEVICE_FAILED, "device.failed", -32017, 1)   /* a device or its library failed */            \
    X(LOSS_NAN, "loss.nan", -32018, 1)             /* the loss is not a finite number */           \
    X(OUTPUT, "output", -32019, 1)                 /* the output directory cannot be used */       \
    X(CANCELLED, "cancelled", -32020, 1)           /* stopped because somebody asked */            \
    X(NOT_FOUND, "not_found", -32030, 3)           /* no such job */                               \
    X(DENIED, "denied", -32031, 4)                 /* the caller may not */                        \
    X(JOB_STATE, "job.state", -32032, 1)           /* the job's state forbids it */                \
    X(BUSY, "busy", -32033, 1)                     /* too many connections, requests or jobs */    \
    X(WATCH_GONE, "watch.gone", -32034, 1)         /* `since` is too old */                        \
    X(UNREACHABLE, "unreachable", -32040, 5)       /* no daemon answers */

enum err_code {
#define X(name, stable, rpc, status) ERR_INDEX_##name,
    ERR_CODES(X)
#undef X
        ERR_COUNT
};

/* Return values: -1 - index, so that 0 is success. */
enum {
#define X(name, stable, rpc, status) ERR_##name = -1 - ERR_INDEX_##name,
    ERR_CODES(X)
#undef X
};

struct err {
    int code;          /* 0 or one of ERR_* */
    char path[256];    /* a JSON Pointer into the document, or "" */
    char message[768]; /* one sentence for a person, UTF-8, without a final full stop */
};

#define ERR_INIT                                                                                   \
    {                                                                                              \
        0, "", ""                                                                                  \
    }

/* Sets code and message (printf format) and clears the path. Returns `code`. Any thread. */
int err_set(struct err *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The same, with a JSON Pointer. */
int err_at(struct err *err, int code, const char *path, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Sets ERR_IO: "FORMAT: strerror(errnum)". Returns ERR_IO. */
int err_errno(struct err *err, int errnum, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Puts "FORMAT: " in front of the message; code and path stay. Returns err->code. */
int err_context(struct err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Tables behind a code; an unknown code counts as ERR_INTERNAL. */
const char *err_name(int code); /* "job.invalid" */
int err_rpc_code(int code);     /* -32010 */
int err_exit_status(int code);  /* 1 */
/* The code with this stable name, or ERR_INTERNAL. */
int err_from_name(const char *name);

#endif
