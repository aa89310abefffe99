/* setup.c: see setup.h. */
#include "engine/worker/setup.h"

#include <stdio.h>

#include "engine/parallel/choose.h"
#include "engine/worker/document.h"

int64_t setup_device_bytes(const struct setup *setup)
{
    return setup->machine.memory_bytes / setup->n_devices;
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
    int rc = machine_resolve(&setup->machine, &setup->job->parallel, setup->devices,
                             &setup->n_devices, err);
    if (rc == 0)
        return settle_devices(setup, err);
    if (options->devices == NULL)
        return rc;
    err->path[0] = '\0'; /* the fault is the command line's, not the document's */
    return err_context(err, "--devices %s", options->devices);
}

static int refuse_with_stages(const char *path, const char *what, const char *allowed,
                              struct err *err)
{
    return err_at(err, ERR_JOB_UNSUPPORTED, path,
                  "%s is not in this version with stages: allowed is %s", what, allowed);
}

/* A layer's iterations are those of its device's micro-batches: several devices would drift apart.
 */
static bool shares_stages(const struct job_parallel *parallel)
{
    for (size_t s = 0; s < parallel->n_stages; s++)
        if (parallel->stages[s].n_devices > 1)
            return true;
    return parallel->replicas > 1;
}

static int check_layers(const struct job *job, struct err *err)
{
    bool shares = shares_stages(&job->parallel);
    for (size_t i = 0; i < job->model.n_layers; i++) {
        const struct job_layer *layer = &job->model.layers[i];
        bool recurrent =
            layer->type == LAYER_LSTM || layer->type == LAYER_GRU || layer->type == LAYER_RNN;
        char path[64];
        snprintf(path, sizeof path, "/model/layers/%zu/total_length", i);
        if (recurrent && !layer->recurrent.total_length)
            return refuse_with_stages(path, "total_length false", "true", err);
        snprintf(path, sizeof path, "/model/layers/%zu/spectral_norm", i);
        if (layer->spectral_norm && shares)
            return refuse_with_stages(path, "spectral_norm in a stage that several devices share",
                                      "one device a stage", err);
    }
    return 0;
}

/* What stages do not do yet. */
static int check_stages(const struct job *job, struct err *err)
{
    if (job->parallel.mode != PARALLEL_STAGES)
        return 0;
    if (job->parallel.batch_norm == STATISTICS_SYNCHRONIZED)
        return refuse_with_stages("/parallel/batch_norm", "synchronized", "\"per_replica\"", err);
    if (job->parallel.shard_optimizer)
        return refuse_with_stages("/parallel/shard_optimizer", "shard_optimizer", "false", err);
    if (job->train.n_record > 0)
        return refuse_with_stages("/train/record", "record", "[]", err);
    return check_layers(job, err);
}

int setup_open(const struct command_options *options, struct setup *setup, struct err *err)
{
    *setup = (struct setup){0};
    int rc = document_load(options->document, options->devices, &setup->job, err);
    if (rc == 0)
        rc = machine_probe(options->cpu_devices, &setup->machine, err);
    if (rc == 0)
        rc = find_devices(options, setup, err);
    if (rc == 0)
        rc = check_stages(setup->job, err);
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
