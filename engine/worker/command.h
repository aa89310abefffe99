/* command.h: the commands of traind-worker: probe, plan, run; inspect, diff, convert. */
#ifndef ENGINE_WORKER_COMMAND_H
#define ENGINE_WORKER_COMMAND_H

#include <signal.h>

#include "engine/worker/reporter.h"

struct command_options {
    char *const *words;   /* what follows the command, as many as it takes */
    const char *document; /* a path or "-"; NULL: the command takes none */
    const char *devices;  /* --devices, or NULL */
    const char *output;   /* --output, or NULL */
    const char *to;       /* --to, or NULL */
    const char *trace;    /* --trace, or NULL */
    bool profile;
    size_t cpu_devices; /* 0: one a core */
    bool json;
    const volatile sig_atomic_t *stop; /* set by SIGTERM and SIGINT */
};

typedef int (*command_fn)(const struct command_options *options, struct reporter *reporter,
                          struct err *err);

/* Each prints its result; a failure is the caller's to report. */
int command_probe(const struct command_options *options, struct reporter *reporter,
                  struct err *err);
int command_plan(const struct command_options *options, struct reporter *reporter, struct err *err);
int command_run(const struct command_options *options, struct reporter *reporter, struct err *err);
int command_inspect(const struct command_options *options, struct reporter *reporter,
                    struct err *err);
int command_diff(const struct command_options *options, struct reporter *reporter, struct err *err);
int command_convert(const struct command_options *options, struct reporter *reporter,
                    struct err *err);

#endif
