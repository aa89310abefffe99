/* shim_options.c: parses the command line that doc/processes.md gives. */
#include "daemon/shim_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool parse_id(const char *text, unsigned *ret_id)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    /* The largest value means "leave it as it is" to setresuid. */
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value >= UINT32_MAX)
        return false;
    *ret_id = (unsigned)value;
    return true;
}

static bool parse_grace(const char *text, int64_t *ret_ns)
{
    char *end;
    double seconds = strtod(text, &end);
    if (end == text || *end != '\0' || !(seconds >= 0) || seconds > 86400)
        return false;
    *ret_ns = (int64_t)(seconds * 1e9);
    return true;
}

/* One function an option, a row each; the argument is `optarg`. */
struct parse {
    struct shim_options *options;
    bool uid_given, gid_given;
};

static bool set_dir(struct parse *parse, char *arg)
{
    parse->options->dir = arg;
    return true;
}

static bool set_id(struct parse *parse, char *arg)
{
    parse->options->id = arg;
    return true;
}

static bool set_cwd(struct parse *parse, char *arg)
{
    parse->options->cwd = arg;
    return true;
}

static bool set_uid(struct parse *parse, char *arg)
{
    return parse->uid_given = parse_id(arg, &parse->options->uid);
}

static bool set_gid(struct parse *parse, char *arg)
{
    return parse->gid_given = parse_id(arg, &parse->options->gid);
}

static bool set_user(struct parse *parse, char *arg)
{
    parse->options->user = arg;
    return true;
}

static bool set_grace(struct parse *parse, char *arg)
{
    return parse_grace(arg, &parse->options->grace_ns);
}

static bool add_env(struct parse *parse, char *arg)
{
    if (arg[0] == '=' || strchr(arg, '=') == NULL)
        return false;
    parse->options->env[parse->options->n_env++] = arg;
    return true;
}

static const struct row {
    const char *name;
    bool (*set)(struct parse *parse, char *arg);
} rows[] = {
    {"dir", set_dir}, {"id", set_id},     {"cwd", set_cwd},     {"uid", set_uid},
    {"gid", set_gid}, {"user", set_user}, {"grace", set_grace}, {"env", add_env},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static bool complain(const char *what)
{
    fprintf(stderr,
            "traind-shim: %s\nusage: traind-shim --dir JOBDIR --id ID --cwd DIR [--uid UID --gid "
            "GID --user NAME] [--grace SECONDS] [--env NAME=VALUE]... -- PROGRAM ARG...\n",
            what);
    return false;
}

bool shim_options_parse(int argc, char **argv, struct shim_options *ret_options)
{
    struct option longs[N_ROWS + 1] = {{NULL, 0, NULL, 0}};
    for (int i = 0; i < N_ROWS; i++)
        longs[i] = (struct option){rows[i].name, required_argument, NULL, i};
    *ret_options = (struct shim_options){.grace_ns = INT64_C(10000000000)};
    ret_options->env = calloc((size_t)argc + 1, sizeof *ret_options->env);
    if (ret_options->env == NULL)
        return complain("out of memory");
    struct parse parse = {.options = ret_options};
    int at;
    while ((at = getopt_long(argc, argv, "+", longs, NULL)) != -1) {
        if (at < 0 || at >= N_ROWS)
            return complain("an option is unknown");
        if (!rows[at].set(&parse, optarg)) {
            fprintf(stderr, "traind-shim: --%s: '%s' is not valid\n", rows[at].name, optarg);
            return complain("an option is wrong");
        }
    }
    ret_options->program = argv + optind;
    ret_options->drop = parse.uid_given;
    if (optind >= argc)
        return complain("no program is given");
    if (ret_options->dir == NULL || ret_options->id == NULL || ret_options->cwd == NULL)
        return complain("--dir, --id and --cwd are required");
    if (parse.uid_given != parse.gid_given)
        return complain("--uid and --gid belong together");
    return true;
}
