/* main.c: traind-worker: runs one job, or says what it would need, or which devices there are.
 *
 * The command line picks a row of `commands`; its function does the work and returns an error,
 * which is reported here, once, in both languages (reporter_fail). doc/processes.md is the
 * contract. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "engine/worker/command.h"
#include "proto/descriptors.h"

/* The one thing that a signal handler may touch. */
static volatile sig_atomic_t stop_requested;

static const char usage_text[] =
    "usage: traind-worker probe [--cpu-devices N] [--json]\n"
    "       traind-worker plan JOB [--devices LIST] [--cpu-devices N] [--profile [--trace FILE]] "
    "[--json]\n"
    "       traind-worker run JOB [--devices LIST] [--cpu-devices N] [--output DIR] [--json]\n"
    "       traind-worker inspect FILE [--json]\n"
    "       traind-worker diff FILE FILE [--json]\n"
    "       traind-worker convert IN OUT --to parallel|single [--json]\n";

static const char help_text[] =
    "\n"
    "JOB is a job document, or - for standard input; FILE, IN and OUT are weights (safetensors).\n"
    "  --devices LIST     run on these devices (cpu:0,cpu:1), whatever the document says\n"
    "  --cpu-devices N    offer N CPU devices (default: one a core)\n"
    "  --output DIR       write there, whatever the document says\n"
    "  --profile          run the step of one device, and say what each node of it takes\n"
    "  --trace FILE       write that as a Chrome trace, for Perfetto\n"
    "  --to FORM          parallel: one «module.» more before every key; single: one less\n"
    "  --json             print one JSON object (run: reports, one a line)\n"
    "  --help, --version\n";

enum {
    OPTION_DEVICES = 1 << 0,
    OPTION_CPU_DEVICES = 1 << 1,
    OPTION_OUTPUT = 1 << 2,
    OPTION_JSON = 1 << 3,
    OPTION_TO = 1 << 4,
    OPTION_HELP = 1 << 5,
    OPTION_VERSION = 1 << 6,
    OPTION_PROFILE = 1 << 7,
    OPTION_TRACE = 1 << 8,
};

static const struct option option_table[] = {
    {"devices", required_argument, NULL, OPTION_DEVICES},
    {"cpu-devices", required_argument, NULL, OPTION_CPU_DEVICES},
    {"output", required_argument, NULL, OPTION_OUTPUT},
    {"to", required_argument, NULL, OPTION_TO},
    {"profile", no_argument, NULL, OPTION_PROFILE},
    {"trace", required_argument, NULL, OPTION_TRACE},
    {"json", no_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {0},
};

static const struct command {
    const char *name;
    const char *takes; /* in words */
    int words;         /* how many they are */
    bool takes_job;    /* the word is a document's path, which errors are about */
    bool prints;       /* its result is what it prints; a run goes on where nobody reads */
    int options;       /* that it takes, besides those that end the program */
    command_fn run;
} commands[] = {
    {"probe", "no arguments", 0, false, true, OPTION_CPU_DEVICES | OPTION_JSON, command_probe},
    {"plan", "one job document", 1, true, true,
     OPTION_DEVICES | OPTION_CPU_DEVICES | OPTION_PROFILE | OPTION_TRACE | OPTION_JSON,
     command_plan},
    {"run", "one job document", 1, true, false,
     OPTION_DEVICES | OPTION_CPU_DEVICES | OPTION_OUTPUT | OPTION_JSON, command_run},
    {"inspect", "one file of weights", 1, false, true, OPTION_JSON, command_inspect},
    {"diff", "two files of weights", 2, false, true, OPTION_JSON, command_diff},
    {"convert", "two files of weights", 2, false, true, OPTION_TO | OPTION_JSON, command_convert},
};

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

static int parse_count(const char *text, size_t *ret_count, struct err *err)
{
    char *end;
    errno = 0;
    long count = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || count < 1 || count > LIMIT_DEVICES)
        return err_set(err, ERR_USAGE, "--cpu-devices %.64s: not a number from 1 to %d", text,
                       LIMIT_DEVICES);
    *ret_count = (size_t)count;
    return 0;
}

static int take_option(int option, struct command_options *options, struct err *err)
{
    if (option == OPTION_DEVICES)
        options->devices = optarg;
    else if (option == OPTION_OUTPUT)
        options->output = optarg;
    else if (option == OPTION_TO)
        options->to = optarg;
    else if (option == OPTION_TRACE)
        options->trace = optarg;
    else if (option == OPTION_PROFILE)
        options->profile = true;
    else if (option == OPTION_JSON)
        options->json = true;
    else
        return parse_count(optarg, &options->cpu_devices, err);
    return 0;
}

static int take_arguments(int argc, char **argv, int given, const struct command **ret_command,
                          struct command_options *options, struct err *err)
{
    const struct command *command = optind < argc ? find_command(argv[optind]) : NULL;
    if (optind == argc)
        return err_set(err, ERR_USAGE, "a command is missing");
    if (command == NULL)
        return err_set(err, ERR_USAGE, "%.64s: no such command", argv[optind]);
    if (argc - optind - 1 != command->words)
        return err_set(err, ERR_USAGE, "%s takes %s", command->name, command->takes);
    for (const struct option *o = option_table; o->name != NULL; o++)
        if ((given & ~command->options & o->val) != 0)
            return err_set(err, ERR_USAGE, "%s does not take --%s", command->name, o->name);
    if (options->trace != NULL && !options->profile)
        return err_set(err, ERR_USAGE, "--trace needs --profile");
    options->words = argv + optind + 1;
    options->document = command->takes_job ? options->words[0] : NULL;
    *ret_command = command;
    return 0;
}

/* *ret_command stays NULL where --help or --version was all. */
static int parse(int argc, char **argv, const struct command **ret_command,
                 struct command_options *options, struct err *err)
{
    int option, given = 0, rc = 0;
    opterr = 0;
    while (rc == 0 && (option = getopt_long(argc, argv, ":", option_table, NULL)) != -1) {
        if (option == OPTION_HELP || option == OPTION_VERSION) {
            if (option == OPTION_HELP)
                printf("%s%s", usage_text, help_text);
            else
                printf("traind-worker %s\n", PACKAGE_VERSION);
            return 0;
        }
        given |= option;
        if (option == ':' || option == '?')
            rc = err_set(err, ERR_USAGE, "%s: %s", argv[optind - 1],
                         option == ':' ? "a value is missing" : "no such option");
        else
            rc = take_option(option, options, err);
    }
    return rc != 0 ? rc : take_arguments(argc, argv, given, ret_command, options, err);
}

static void on_stop(int signal_number)
{
    (void)signal_number;
    stop_requested = 1;
}

/* SIGTERM and the first Ctrl-C ask for a checkpoint; a second Ctrl-C ends at once. A reader that
 * goes away, or a file that may not grow, is an error of write(), not a signal. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    action.sa_flags |= (int)SA_RESETHAND;
    sigaction(SIGINT, &action, NULL);
    action = (struct sigaction){.sa_handler = SIG_IGN};
    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL);
}

static int check_printed(struct err *err)
{
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return 0;
    return err_errno(err, errno, "cannot write to standard output");
}

static const char *document_name(const struct command_options *options)
{
    const char *path = options->document;
    return path != NULL && strcmp(path, "-") == 0 ? "job" : path;
}

int main(int argc, char **argv)
{
    const struct command *command = NULL;
    struct command_options options = {.stop = &stop_requested};
    struct reporter reporter;
    struct err err = ERR_INIT;
    if (descriptors_reserve() != 0)
        return EXIT_FAILURE;
    int rc = parse(argc, argv, &command, &options, &err);
    if (rc == 0 && command == NULL)
        rc = check_printed(&err);
    else if (rc == 0)
        rc = reporter_open(&reporter, document_name(&options), options.json, &err);
    if (rc != 0) {
        fprintf(stderr, "traind-worker: %s\n%s", err.message, rc == ERR_USAGE ? usage_text : "");
        return err_exit_status(rc);
    }
    if (command == NULL)
        return EXIT_SUCCESS;
    catch_signals();
    rc = command->run(&options, &reporter, &err);
    if (rc == 0 && command->prints)
        rc = check_printed(&err);
    if (rc != 0)
        reporter_fail(&reporter, &err);
    reporter_close(&reporter);
    return rc == 0 ? EXIT_SUCCESS : err_exit_status(rc);
}
