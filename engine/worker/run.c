/* run.c: `traind-worker run`: trains a job. */
#include <stdlib.h>
#include <string.h>

#include "engine/train/trainer.h"
#include "engine/worker/command.h"
#include "engine/worker/document.h"
#include "engine/worker/machine.h"

static void report(void *context, const struct report *what)
{
    reporter_report(context, what);
}

static void say(void *context, const char *line)
{
    reporter_say(context, line);
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
    struct job *job = NULL;
    struct machine machine = {0};
    struct device_config devices[LIMIT_DEVICES];
    char output[LIMIT_PATH_BYTES];
    struct trainer_config config = {
        .backend = &backend_cpu,
        .devices = devices,
        .stop = options->stop,
        .sink = {report, say, reporter},
    };
    int rc = document_load(options->document, options->devices, &job, err);
    if (rc != 0)
        goto out;
    rc = machine_probe(options->cpu_devices, &machine, err);
    if (rc != 0)
        goto out;
    rc = machine_resolve(&machine, &job->parallel, devices, &config.n_devices, err);
    if (rc != 0)
        goto out;
    config.job = job;
    config.output = choose_output(options, job, output);
    rc = trainer_run(&config, err);
out:
    machine_done(&machine);
    job_free(job);
    return rc;
}
