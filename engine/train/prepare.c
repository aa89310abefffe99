/* prepare.c: see prepare.h. */
#include "engine/train/prepare.h"

#include <string.h>

#include "engine/data/order.h"
#include "engine/ops/registry.h"

static int open_data(const struct job *job, struct prepared *prepared, struct err *err)
{
    const struct model *model = prepared->model;
    struct dataset_want want = {
        .inputs = model->inputs,
        .n_inputs = model->n_inputs,
        .target = model->target,
        .target_dtype = model->target_dtype,
        .classes = model->classes,
        .ignored = model->ignored,
        .predicting = job->train.mode == MODE_PREDICT,
        .training = true,
        .seed = (uint64_t)job->train.seed,
    };
    bool trains = job_trains(job), validates = job->data.has_validation;
    int rc = 0;
    if (trains)
        rc =
            dataset_open(&job->data.train, &job->data, &want, "/data/train", &prepared->train, err);
    want.training = false;
    if (rc == 0 && validates)
        rc = dataset_open(&job->data.validation, &job->data, &want, "/data/validation",
                          &prepared->validation, err);
    if (rc == 0 && !trains && !validates) /* all that is given is measured */
        rc = dataset_open(&job->data.train, &job->data, &want, "/data/train", &prepared->validation,
                          err);
    return rc;
}

static int count_steps(const struct job *job, struct prepared *prepared, struct err *err)
{
    const struct job_train *train = &job->train;
    int64_t samples = dataset_samples(prepared->train);
    prepared->epoch_batches = order_batches(samples, train->batch_size, job->data.drop_last);
    if (prepared->epoch_batches == 0)
        return err_at(err, ERR_JOB_INVALID, "/train/batch_size",
                      "%lld is more than the %lld samples, and drop_last leaves no batch",
                      (long long)train->batch_size, (long long)samples);
    prepared->epoch_steps = order_steps(prepared->epoch_batches, train->accumulate);
    prepared->steps = train->max_steps;
    if (train->epochs > 0 &&
        __builtin_mul_overflow(train->epochs, prepared->epoch_steps, &prepared->steps))
        return err_at(err, ERR_JOB_INVALID, "/train/epochs",
                      "%lld epochs of %lld steps are beyond counting", (long long)train->epochs,
                      (long long)prepared->epoch_steps);
    prepared->epochs = (prepared->steps - 1) / prepared->epoch_steps + 1;
    return 0;
}

/* The distinct sizes of an epoch's batches. */
static size_t batch_sizes(int64_t samples, int64_t batch_size, int64_t batches, int64_t *ret_sizes)
{
    ret_sizes[0] = order_batch_samples(samples, batch_size, 0);
    ret_sizes[1] = order_batch_samples(samples, batch_size, batches - 1);
    return ret_sizes[1] != ret_sizes[0] ? 2 : 1;
}

/* Adds batch `i` of an epoch, if there is one and the job comes to it. */
static void add_batch(struct prepared *prepared, const struct job *job, int64_t i)
{
    struct strategy_config *strategy = &prepared->strategy;
    int64_t accumulate = job->train.accumulate;
    if (i < 0 || i >= prepared->epoch_batches ||
        i >= order_batches_before(prepared->epoch_batches, accumulate, prepared->steps))
        return;
    const struct strategy_batch batch = {
        .n = order_batch_samples(dataset_samples(prepared->train), job->train.batch_size, i),
        .part = order_part(prepared->epoch_batches, accumulate, i),
    };
    for (size_t k = 0; k < strategy->n_train_batches; k++)
        if (prepared->train_batches[k].n == batch.n &&
            prepared->train_batches[k].part == batch.part)
            return;
    prepared->train_batches[strategy->n_train_batches++] = batch;
}

/* Of a whole window its first, second and last batch stand for all; so do those of the last window.
 */
static void add_batches(struct prepared *prepared, const struct job *job)
{
    int64_t accumulate = job->train.accumulate, end = prepared->epoch_batches - 1;
    int64_t last_window = end - end % accumulate;
    const int64_t some[] = {0, 1, accumulate - 1, last_window, last_window + 1, end - 1, end};
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        add_batch(prepared, job, some[i]);
}

/* Bits depend on the number of threads: shards have one number everywhere, the smallest device's.
 */
static void take_devices(const struct trainer_config *config, struct device_config *devices)
{
    int n = config->n_devices, threads = config->devices[0].n_threads;
    memcpy(devices, config->devices, (size_t)n * sizeof *devices);
    for (int i = 0; i < n; i++)
        threads = devices[i].n_threads < threads ? devices[i].n_threads : threads;
    for (int i = 0; i < n && config->job->parallel.shards > 0; i++)
        devices[i].n_threads = threads;
}

int prepare(const struct trainer_config *config, struct prepared *ret_prepared, struct err *err)
{
    const struct job *job = config->job;
    struct prepared *prepared = ret_prepared;
    *prepared = (struct prepared){.model = NULL};
    int rc = config->backend->check_precision(job->train.precision, err);
    if (rc == 0)
        rc = model_build(job, &op_registry, &prepared->model, err);
    if (rc == 0)
        rc = open_data(job, prepared, err);
    if (rc == 0 && prepared->train != NULL)
        rc = count_steps(job, prepared, err);
    if (rc != 0)
        return rc;
    take_devices(config, prepared->devices);
    prepared->strategy = (struct strategy_config){
        .backend = config->backend,
        .model = prepared->model,
        .devices = prepared->devices,
        .n_devices = config->n_devices,
        .train_batches = prepared->train_batches,
        .eval_batches = prepared->eval_batches,
        .hang = config->sink.hang,
        .hang_context = config->sink.context,
        .keep_outputs = prepared->train == NULL,
    };
    if (prepared->train != NULL)
        add_batches(prepared, job);
    if (prepared->validation != NULL) {
        int64_t samples = dataset_samples(prepared->validation);
        int64_t batches = order_batches(samples, job->train.batch_size, false);
        prepared->strategy.n_eval_batches =
            batch_sizes(samples, job->train.batch_size, batches, prepared->eval_batches);
    }
    return 0;
}

void prepared_done(struct prepared *prepared)
{
    dataset_close(prepared->train);
    dataset_close(prepared->validation);
    model_free(prepared->model);
    *prepared = (struct prepared){.model = NULL};
}

static struct loader_config loader_of(const struct prepared *prepared,
                                      const struct dataset *dataset)
{
    const struct job *job = prepared->model->job;
    return (struct loader_config){
        .dataset = dataset,
        .batch_size = job->train.batch_size,
        .seed = (uint64_t)job->train.seed,
        .workers = job->data.workers,
    };
}

struct loader_config prepared_train_loader(const struct prepared *prepared, int64_t step)
{
    const struct job *job = prepared->model->job;
    struct loader_config config = loader_of(prepared, prepared->train);
    int64_t accumulate = job->train.accumulate;
    config.shuffle = job->data.shuffle;
    config.drop_last = job->data.drop_last;
    config.first_batch = order_batches_before(prepared->epoch_batches, accumulate, step);
    config.n_batches = order_batches_before(prepared->epoch_batches, accumulate, prepared->steps);
    return config;
}

struct loader_config prepared_eval_loader(const struct prepared *prepared)
{
    struct loader_config config = loader_of(prepared, prepared->validation);
    config.n_batches =
        order_batches(dataset_samples(prepared->validation), config.batch_size, false);
    return config;
}
