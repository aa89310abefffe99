/* main.c: trainctl, the client of traind. Parses the command line, runs one row of the table of
 * commands (cmd.c), prints its error and returns its exit status. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "client/ctl.h"
#include "client/terminal.h"
#include "proto/descriptors.h"

/* "trainctl: job.json:14:7: /model/layers/3/kernel_size: …" on standard error; under --json one
 * object on standard output as well. */
static void print_error(const struct ctl *ctl, const struct err *error)
{
    char where[512];
    struct text text = {0};
    const char *message = document_where(&ctl->document, error, where, sizeof where);
    text_add(&text, "trainctl: ");
    text_safe(&text, &ctl->style, where);
    if (error->path[0] != '\0') {
        text_safe(&text, &ctl->style, error->path);
        text_add(&text, ": ");
    }
    text_safe(&text, &ctl->style, message);
    fprintf(stderr, "%s\n", text.failed ? "trainctl: out of memory" : text_str(&text));
    text_done(&text);
    if (!args_has(&ctl->args, OPT_JSON))
        return;
    struct err ignored = ERR_INIT;
    json_t *object = json_pack("{s:{s:s, s:s, s:s}}", "error", "name", err_name(error->code),
                               "path", error->path, "message", error->message);
    if (object != NULL)
        ctl_print_json(object, &ignored);
    json_decref(object);
}

static int print_help(const struct ctl *ctl, struct err *err)
{
    const struct args *args = &ctl->args;
    const char *name = args->command;
    struct text text = {0};
    if (name != NULL && strcmp(name, "help") == 0)
        name = args->n_words > 0 ? args->words[0] : NULL;
    const struct cmd *cmd = name != NULL ? cmd_find(name) : NULL;
    if (name != NULL && cmd == NULL)
        return cmd_unknown(name, err);
    cmd_help(&text, cmd);
    return ctl_print(&text, err);
}

static int print_version(struct err *err)
{
    struct text text = {0};
    text_add(&text, "trainctl " PACKAGE_VERSION "\n");
    return ctl_print(&text, err);
}

static int check_usage(const struct cmd *cmd, const struct args *args, struct err *err)
{
    if (args->n_words < cmd->min_words)
        return err_set(err, ERR_USAGE, "%s needs %s: trainctl %s %s", cmd->name, cmd->args,
                       cmd->name, cmd->args);
    if (args->n_words > cmd->max_words)
        return err_set(err, ERR_USAGE, "%s: there is a word too many: '%s'", cmd->name,
                       args->words[cmd->max_words]);
    return args_allow(args, cmd->options | OPT_EVERYWHERE, err);
}

static int run(struct ctl *ctl, struct err *err)
{
    const char *name = ctl->args.command;
    if (args_has(&ctl->args, OPT_HELP) || (name != NULL && strcmp(name, "help") == 0))
        return print_help(ctl, err);
    if (args_has(&ctl->args, OPT_VERSION) || (name != NULL && strcmp(name, "version") == 0))
        return print_version(err);
    if (name == NULL)
        return err_set(err, ERR_USAGE, "what shall be done? See `trainctl help`");
    const struct cmd *cmd = cmd_find(name);
    if (cmd == NULL)
        return cmd_unknown(name, err);
    int rc = check_usage(cmd, &ctl->args, err);
    return rc < 0 ? rc : cmd->run(ctl, err);
}

int main(int argc, char **argv)
{
    struct ctl ctl = {0};
    struct err err = ERR_INIT;
    if (descriptors_reserve() != 0)
        return STATUS_FAILED;
    terminal_style(&ctl.style);
    int rc = args_parse(argc, argv, &ctl.args, &err);
    if (rc == 0)
        rc = run(&ctl, &err);
    if (rc < 0)
        print_error(&ctl, &err);
    ctl_disconnect(&ctl);
    document_done(&ctl.document);
    args_done(&ctl.args);
    return rc < 0 ? err_exit_status(rc) : ctl.status;
}
