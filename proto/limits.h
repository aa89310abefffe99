/* limits.h: every bound that a user can meet, in one place. */
#ifndef PROTO_LIMITS_H
#define PROTO_LIMITS_H

enum {
    LIMIT_LINE_BYTES = 8 << 20,     /* one JSON-RPC line */
    LIMIT_DOCUMENT_BYTES = 4 << 20, /* one job document */
    LIMIT_DEPTH = 64,               /* nesting of a document, counted from its root */
    LIMIT_REPORT_BYTES = 64 << 10,  /* one line of report.jsonl */
    LIMIT_REPORTS_PER_SECOND =
        200, /* lines the shim keeps of a worker's reports; the rest is dropped */
    LIMIT_LOG_BYTES = 64 << 20, /* a job's log; then one line says that it was cut */
    LIMIT_REPORT_FILE_BYTES = 256 << 20,
    LIMIT_NAME_BYTES = 256,  /* a job's or a layer's name */
    LIMIT_PATH_BYTES = 4096, /* a path in a document */
    LIMIT_RANK = 6,          /* dimensions of a tensor, the batch included */
    LIMIT_INPUTS = 8,        /* of a model, of a layer */
    LIMIT_WORKERS = 64,      /* of a loader */
    LIMIT_LAYERS = 10000,
    LIMIT_DEVICES = 64,
};

#endif
