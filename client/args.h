/* args.h: the command line, parsed by one table of options. Pure. */
#ifndef CLIENT_ARGS_H
#define CLIENT_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/err.h"

/* X(NAME, letter or 0, long name, name of its value or NULL, help) */
#define OPTIONS(X)                                                                                 \
    X(HELP, 'h', "help", NULL, "show this help")                                                   \
    X(VERSION, 0, "version", NULL, "print this program's version")                                 \
    X(JSON, 0, "json", NULL, "print JSON, one object a line")                                      \
    X(SOCKET, 0, "socket", "PATH", "the daemon's socket (or set TRAIND_SOCKET)")                   \
    X(WATCH, 'w', "watch", NULL, "follow the job until it ends")                                   \
    X(FOLLOW, 'f', "follow", NULL, "go on until the job ends")                                     \
    X(ANY, 0, "any", NULL, "return when one of the jobs has ended")                                \
    X(TIMEOUT, 0, "timeout", "SECONDS", "give up after so long, with status 1")                    \
    X(STATE, 0, "state", "STATE,...", "only jobs in these states")                                 \
    X(MINE, 'm', "mine", NULL, "only my own jobs")                                                 \
    X(PRIORITY, 0, "priority", "N", "the larger goes first; raising it is an administrator's")     \
    X(TIME_LIMIT, 0, "time-limit", "TIME", "2h, 30m, 1-12:00:00 or none")                          \
    X(REASON, 0, "reason", "TEXT", "why; kept in the job's history")                               \
    X(DEVICES, 0, "devices", "LIST", "plan for these devices instead of the document's")           \
    X(CPU_DEVICES, 0, "cpu-devices", "N", "plan for a machine with N CPU devices")                 \
    X(SET, 0, "set", "NAME=VALUE,...", "arguments of the preset, such as num_classes=10")          \
    X(OUTPUT, 'o', "output", "FILE", "where pictures go: FILE.svg or FILE.png; tune: a directory") \
    X(OF, 0, "of", "WHAT,...", "only these of loss, accuracy, lr, throughput")                     \
    X(TO, 0, "to", "FORM", "parallel (keys begin with «module.») or single")                       \
    X(PROFILE, 0, "profile", NULL, "also run a step of one device, and say where its time goes")   \
    X(TRACE, 0, "trace", "FILE", "write the profile as a Chrome trace, for Perfetto")

enum option_id {
#define X(name, letter, text, value, help) OPT_##name,
    OPTIONS(X)
#undef X
        OPT_COUNT
};

struct option_def {
    char letter;
    const char *name, *value, *help;
};

const struct option_def *option_def(enum option_id id);

/* A set of options: a bit each. */
#define OPT_BIT(name) (1u << OPT_##name)
enum { OPT_EVERYWHERE = OPT_BIT(HELP) | OPT_BIT(JSON) | OPT_BIT(SOCKET) };

struct args {
    const char *command; /* the first word, or NULL */
    const char **words;  /* what follows it: in argv's memory; freed by args_done */
    size_t n_words;
    unsigned given;                /* OPT_BITs */
    const char *values[OPT_COUNT]; /* of the given options that take one */
};

/* Parses argv[1 …]. Options may stand anywhere; "--" ends them; "-" is a word. Which options the
 * command takes is args_allow's question. Errors: ERR_USAGE naming the option (and the nearest
 * known), ERR_NOMEM. */
int args_parse(int argc, char *const *argv, struct args *ret_args, struct err *err);
void args_done(struct args *args);

/* Refuses options outside `allowed`. Errors: ERR_USAGE. */
int args_allow(const struct args *args, unsigned allowed, struct err *err);

static inline bool args_has(const struct args *args, enum option_id id)
{
    return (args->given & 1u << id) != 0;
}

/* A job's id: digits only, 1 or more. Errors: ERR_USAGE. */
int args_id(const char *word, int64_t *ret_id, struct err *err);
/* A whole number. Errors: ERR_USAGE naming the option. */
int args_integer(const struct args *args, enum option_id id, int64_t *ret_value, struct err *err);
/* A number of seconds, 0 or more. Errors: ERR_USAGE naming the option. */
int args_seconds(const struct args *args, enum option_id id, double *ret_seconds, struct err *err);

#endif
