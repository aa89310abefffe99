/* setup.c: see setup.h. */
#include "engine/worker/setup.h"

#include "engine/parallel/choose.h"
#include "engine/worker/document.h"
#include "proto/device_id.h"

int64_t setup_device_bytes(const struct setup *setup)
{
    return setup->backend->shares_memory ? setup->machine.memory_bytes / setup->n_devices
                                         : setup->devices[0].memory_bytes;
}

/* What hangs on how many devices there are, which "all" says only now. */
static int settle_devices(struct setup *setup, struct err *err)
{
    size_t n = (size_t)setup->n_devices;
    int rc = job_check_devices(setup->job, n, err);
    if (rc == 0)
        rc = choose_stages(setup->job, n, setup_device_bytes(setup), err);
    return rc;
}

static int find_devices(const struct command_options *options, struct setup *setup, struct err *err)
{
    int rc = machine_resolve(&setup->machine, &setup->job->parallel, &setup->backend,
                             setup->devices, &setup->n_devices, err);
    if (rc == 0)
        return settle_devices(setup, err);
    if (options->devices == NULL)
        return rc;
    err->path[0] = '\0'; /* the fault is the command line's, not the document's */
    return err_context(err, "--devices %s", options->devices);
}

/* All devices of a job are of one type. */
static bool may_use_gpus(const struct job_parallel *parallel)
{
    struct device_id id = {.type = parallel->device_type};
    struct err ignored;
    if (parallel->devices != NULL && parallel->n_devices > 0 &&
        device_id_parse(parallel->devices[0], &id, &ignored) != 0)
        return false;
    return id.type != DEVICE_CPU;
}

int setup_open(const struct command_options *options, struct setup *setup, struct err *err)
{
    *setup = (struct setup){0};
    int rc = document_load(options->document, options->devices, &setup->job, err);
    if (rc == 0)
        rc = machine_probe(options->cpu_devices, may_use_gpus(&setup->job->parallel),
                           &setup->machine, err);
    if (rc == 0)
        rc = find_devices(options, setup, err);
    if (rc != 0)
        setup_close(setup);
    return rc;
}

void setup_close(struct setup *setup)
{
    machine_done(&setup->machine);
    job_free(setup->job);
    setup->job = NULL;
}
