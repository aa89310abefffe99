/* cmd.c: the table of commands, and the help that is made from it. */
#include <stdint.h>
#include <string.h>

#include "client/ctl.h"
#include "proto/json.h"

static const struct cmd commands[] = {
    {"submit", "FILE|-", "queue a job and print its id; -w follows it", OPT_BIT(WATCH), 1, 1,
     cmd_submit},
    {"list", "", "the jobs, newest last", OPT_BIT(STATE) | OPT_BIT(MINE), 0, 0, cmd_list},
    {"show", "ID", "all about one job", 0, 1, 1, cmd_show},
    {"watch", "[ID...]", "follow jobs until they end (default: your own that have not ended)", 0, 0,
     SIZE_MAX, cmd_watch},
    {"top", "", "the devices and everybody's jobs on the whole screen", 0, 0, 0, cmd_top},
    {"logs", "ID", "what the job printed; -f goes on until it ends", OPT_BIT(FOLLOW), 1, 1,
     cmd_logs},
    {"wait", "ID...", "wait silently until the jobs have ended", OPT_BIT(ANY) | OPT_BIT(TIMEOUT), 1,
     SIZE_MAX, cmd_wait},
    {"cancel", "ID...", "end jobs, queued or running", OPT_BIT(REASON), 1, SIZE_MAX, cmd_cancel},
    {"hold", "ID...", "keep queued jobs from starting", OPT_BIT(REASON), 1, SIZE_MAX, cmd_hold},
    {"release", "ID...", "let held jobs start", OPT_BIT(REASON), 1, SIZE_MAX, cmd_release},
    {"update", "ID...", "change the priority or the time limit of jobs",
     OPT_BIT(PRIORITY) | OPT_BIT(TIME_LIMIT) | OPT_BIT(REASON), 1, SIZE_MAX, cmd_update},
    {"devices", "", "the devices and who has them", 0, 0, 0, cmd_devices},
    {"drain", "DEVICE...|all", "let nothing start on devices; what runs there goes on",
     OPT_BIT(REASON), 1, SIZE_MAX, cmd_drain},
    {"resume", "DEVICE...|all", "let jobs start on drained devices again", OPT_BIT(REASON), 1,
     SIZE_MAX, cmd_resume},
    {"check", "FILE|-", "look for mistakes in a job, without a daemon",
     OPT_BIT(DEVICES) | OPT_BIT(CPU_DEVICES), 1, 1, cmd_check},
    {"plan", "FILE|-", "a job's memory, steps and layers, without a daemon; --profile measures",
     OPT_BIT(DEVICES) | OPT_BIT(CPU_DEVICES) | OPT_BIT(PROFILE) | OPT_BIT(TRACE), 1, 1, cmd_plan},
    {"tune", "FILE|-|ID",
     "queue a job that measures split sizes of stages, follow it, show a table and draw pictures",
     OPT_BIT(OUTPUT), 1, 1, cmd_tune},
    {"plot", "ID|DIRECTORY...",
     "loss, accuracy, learning rate, throughput of jobs; -o as a picture",
     OPT_BIT(OUTPUT) | OPT_BIT(OF), 1, SIZE_MAX, cmd_plot},
    {"model", "show NAME | summary FILE|-",
     "a preset's layers as JSON; a job's layers and their cost",
     OPT_BIT(SET) | OPT_BIT(DEVICES) | OPT_BIT(CPU_DEVICES), 2, 2, cmd_model},
    {"weights", "inspect FILE | diff A B | convert IN OUT --to FORM",
     "files of weights: list, compare, with or without «module.»", OPT_BIT(TO), 2, 3, cmd_weights},
    {"completion", "SHELL", "what makes bash, zsh or fish complete these words", 0, 1, SIZE_MAX,
     cmd_completion},
    {"info", "", "the daemon: version, jobs, devices, who it takes you for", 0, 0, 0, cmd_info},
};

enum { COMMANDS = sizeof commands / sizeof *commands };

const struct cmd *cmd_find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

const struct cmd *cmd_at(size_t i)
{
    return i < COMMANDS ? &commands[i] : NULL;
}

int cmd_unknown(const char *name, struct err *err)
{
    const char *names[COMMANDS];
    for (size_t i = 0; i < COMMANDS; i++)
        names[i] = commands[i].name;
    const char *near = json_nearest(name, names, COMMANDS);
    return near == NULL
               ? err_set(err, ERR_USAGE, "there is no command '%s': see `trainctl help`", name)
               : err_set(err, ERR_USAGE, "there is no command '%s': did you mean '%s'?", name,
                         near);
}

static void add_options(struct text *text, unsigned options)
{
    for (int i = 0; i < OPT_COUNT; i++) {
        const struct option_def *def = option_def((enum option_id)i);
        char name[64];
        if ((options & 1u << i) == 0)
            continue;
        snprintf(name, sizeof name, "--%s%s%s", def->name, def->value != NULL ? " " : "",
                 def->value != NULL ? def->value : "");
        if (def->letter != '\0')
            text_fmt(text, "  -%c, %-20s %s\n", def->letter, name, def->help);
        else
            text_fmt(text, "      %-20s %s\n", name, def->help);
    }
}

static void add_statuses(struct text *text)
{
    text_add(text,
             "\nExit status: 0 ok; 1 failed (also: a job that was waited for or followed did not "
             "complete);\n2 wrong usage; 3 not found; 4 denied; 5 the daemon cannot be reached; "
             "130 detached.\nCtrl-C leaves watch, submit -w and logs -f; the job goes on.\n");
}

void cmd_help(struct text *text, const struct cmd *cmd)
{
    if (cmd != NULL) {
        text_fmt(text, "usage: trainctl %s%s%s [option...]\n\n%s\n\n", cmd->name,
                 cmd->args[0] != '\0' ? " " : "", cmd->args, cmd->summary);
        add_options(text, cmd->options | OPT_EVERYWHERE);
        return;
    }
    text_add(text, "usage: trainctl COMMAND [option...]\n\n");
    for (size_t i = 0; i < COMMANDS; i++) {
        char usage[64];
        snprintf(usage, sizeof usage, "%s %s", commands[i].name, commands[i].args);
        if (strlen(usage) > 16) /* a line of its own */
            text_fmt(text, "  %s\n", usage);
        text_fmt(text, "  %-16s %s\n", strlen(usage) > 16 ? "" : usage, commands[i].summary);
    }
    text_fmt(text, "  %-16s %s\n", "help [COMMAND]", "all about one command");
    text_fmt(text, "  %-16s %s\n\nOf every command:\n", "version", "this program's version");
    add_options(text, OPT_EVERYWHERE);
    add_statuses(text);
}
