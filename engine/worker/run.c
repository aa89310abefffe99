/* run.c: `traind-worker run`: trains a job. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/train/choices.h"
#include "engine/train/trainer.h"
#include "engine/worker/setup.h"

static void report(void *context, const struct report *what)
{
    reporter_report(context, what);
}

static void say(void *context, const char *line)
{
    reporter_say(context, line);
}

static void hang(void *context, const struct err *err)
{
    reporter_fail(context, err);
    _exit(err_exit_status(err->code));
}

/* --output, else the document's, else runs/ID: the daemon's number of the job, or by hand the
 * job's name (whatever of it cannot be a directory's is replaced). */
static const char *choose_output(const struct command_options *options, const struct job *job,
                                 char buf[static LIMIT_PATH_BYTES])
{
    if (options->output != NULL)
        return options->output;
    if (job->output != NULL)
        return job->output;
    const char *id = getenv("TRAIND_JOB_ID");
    snprintf(buf, LIMIT_PATH_BYTES, "runs/%s", id != NULL && *id != '\0' ? id : job->name);
    for (char *c = buf + strlen("runs/"); *c != '\0'; c++)
        if (*c == '/' || (*c == '.' && c[-1] == '/'))
            *c = '_';
    return buf;
}

int command_run(const struct command_options *options, struct reporter *reporter, struct err *err)
{
    struct setup setup;
    char output[LIMIT_PATH_BYTES];
    int rc = setup_open(options, &setup, err);
    if (rc != 0)
        return rc;
    struct trainer_config config = {
        .job = setup.job,
        .backend = setup.backend,
        .devices = setup.devices,
        .n_devices = setup.n_devices,
        .output = choose_output(options, setup.job, output),
        .stop = options->stop,
        .sink = {.report = report, .say = say, .hang = hang, .context = reporter},
    };
    rc = choices_settle(&config, setup.job, setup_device_bytes(&setup), err);
    if (rc == 0)
        rc = trainer_run(&config, err);
    setup_close(&setup);
    return rc;
}
