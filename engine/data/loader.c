/* loader.c: a ring of slots between the prefetch thread, which fills them, and the trainer.
 *
 *     thread: fill slot `filled`, filled++   while filled - freed < SLOTS
 *     caller: take slot `taken`,  taken++, and with that free the one taken before
 *
 * Counters only grow; `filled` is the thread's, `taken` and `freed` the caller's, all under `lock`.
 * What is in a slot belongs to the thread from its freeing to its filling, else to the caller.
 */
#include "engine/data/loader.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/thread.h"
#include "engine/data/order.h"
#include "engine/parallel/chunk.h"

enum { SLOTS = 3 }; /* one at work, one ready, one being made */

struct slot {
    void *inputs[MODEL_MAX_INPUTS], *targets;
    struct loader_batch batch;
};

/* Makes a part of a batch; part 0 is made on the prefetch thread itself. */
struct worker {
    struct thread *thread;
    const struct dataset *dataset;
    struct dataset_rows rows;
    void *inputs[MODEL_MAX_INPUTS], *targets;
    struct err err;
};

struct loader {
    struct loader_config config;
    int64_t samples, batches; /* of an epoch */
    int64_t total;            /* batches to give */
    int64_t *order;           /* [samples], of the epoch being made: the thread's own */
    struct slot slots[SLOTS];

    int n_workers;
    struct worker workers[LIMIT_WORKERS];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t filled, taken, freed;
    bool stop;
    struct err failure; /* of batch `filled`, code 0: none; the thread has ended then */
};

/* The most that a batch has. */
static int64_t slot_samples(const struct loader_config *config)
{
    return order_batch_samples(dataset_samples(config->dataset), config->batch_size, 0);
}

static size_t order_bytes(const struct loader_config *config)
{
    return (size_t)dataset_samples(config->dataset) * sizeof(int64_t);
}

size_t loader_bytes(const struct loader_config *config)
{
    size_t sample = dataset_target_bytes(config->dataset);
    for (int i = 0; i < dataset_inputs(config->dataset); i++)
        sample += dataset_input_bytes(config->dataset, i);
    return order_bytes(config) + SLOTS * (size_t)slot_samples(config) * sample;
}

static void work(void *context)
{
    struct worker *worker = context;
    worker->err = (struct err)ERR_INIT;
    dataset_gather(worker->dataset, &worker->rows, worker->inputs, worker->targets, &worker->err);
}

/* Hands each worker its rows, does the first part, waits for the others. The error that counts is
 * that of the first row that has one. */
static int gather(struct loader *loader, const struct dataset_rows *rows, const struct slot *slot,
                  struct err *err)
{
    const struct dataset *dataset = loader->config.dataset;
    int64_t sizes[LIMIT_WORKERS], first = 0;
    int parts = chunk_sizes(rows->n, loader->n_workers, sizes);
    for (int w = 0; w < parts; w++) {
        struct worker *worker = &loader->workers[w];
        worker->rows =
            (struct dataset_rows){rows->index + first, sizes[w], rows->epoch, rows->first + first};
        for (int i = 0; i < dataset_inputs(dataset); i++)
            worker->inputs[i] =
                (char *)slot->inputs[i] + (size_t)first * dataset_input_bytes(dataset, i);
        worker->targets = (char *)slot->targets + (size_t)first * dataset_target_bytes(dataset);
        first += sizes[w];
        if (w > 0)
            thread_submit(worker->thread, work, worker);
    }
    work(&loader->workers[0]);
    for (int w = 1; w < parts; w++)
        thread_wait(loader->workers[w].thread);
    for (int w = 0; w < parts; w++)
        if (loader->workers[w].err.code != 0) {
            *err = loader->workers[w].err;
            return err->code;
        }
    return 0;
}

/* Makes batch `number`, counted from the start of epoch 0. */
static int fill(struct loader *loader, struct slot *slot, int64_t number, struct err *err)
{
    const struct loader_config *config = &loader->config;
    int64_t epoch = number / loader->batches, index = number % loader->batches;
    if (index == 0 || number == config->first_batch)
        order_epoch(config->seed, epoch, config->shuffle, loader->samples, loader->order);
    int64_t first = index * config->batch_size;
    int64_t n = order_batch_samples(loader->samples, config->batch_size, index);
    const struct dataset_rows rows = {loader->order + first, n, epoch, first};
    int rc = gather(loader, &rows, slot, err);
    if (rc != 0)
        return rc;
    slot->batch = (struct loader_batch){
        .batch = {.n = n, .targets = slot->targets},
        .epoch = epoch,
        .index = index,
        .first_sample = first,
    };
    for (int i = 0; i < MODEL_MAX_INPUTS; i++)
        slot->batch.batch.inputs[i] = slot->inputs[i];
    return 0;
}

static void *prefetch(void *context)
{
    struct loader *loader = context;
    struct err err = ERR_INIT;
    for (int64_t i = 0; i < loader->total && err.code == 0; i++) {
        pthread_mutex_lock(&loader->lock);
        while (!loader->stop && loader->filled - loader->freed == SLOTS)
            pthread_cond_wait(&loader->changed, &loader->lock);
        bool stop = loader->stop;
        pthread_mutex_unlock(&loader->lock);
        if (stop)
            break;
        int rc = fill(loader, &loader->slots[i % SLOTS], loader->config.first_batch + i, &err);
        pthread_mutex_lock(&loader->lock);
        loader->filled += rc == 0;
        loader->failure = err;
        pthread_cond_signal(&loader->changed);
        pthread_mutex_unlock(&loader->lock);
    }
    return NULL;
}

static int start_workers(struct loader *loader, struct err *err)
{
    int rc = 0;
    loader->n_workers = loader->config.workers > 1 ? (int)loader->config.workers : 1;
    for (int w = 0; w < loader->n_workers && rc == 0; w++) {
        loader->workers[w].dataset = loader->config.dataset;
        if (w > 0)
            rc = thread_start("loader", NULL, 0, 1, &loader->workers[w].thread, err);
    }
    return rc;
}

/* The threads, which take no signals. */
static int start_threads(struct loader *loader, struct err *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = start_workers(loader, err);
    int errnum = rc == 0 ? pthread_create(&loader->thread, NULL, prefetch, loader) : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return errnum == 0 ? rc
                       : err_set(err, ERR_NOMEM, "cannot start the loader: %s", strerror(errnum));
}

static void loader_free(struct loader *loader)
{
    for (int w = 1; w < loader->n_workers; w++)
        thread_stop(loader->workers[w].thread);
    for (int i = 0; i < SLOTS; i++) {
        for (int k = 0; k < MODEL_MAX_INPUTS; k++)
            free(loader->slots[i].inputs[k]);
        free(loader->slots[i].targets);
    }
    free(loader->order);
    pthread_cond_destroy(&loader->changed);
    pthread_mutex_destroy(&loader->lock);
    free(loader);
}

/* Whether there was memory for all of it. */
static bool allocate_slot(const struct loader_config *config, struct slot *slot)
{
    size_t samples = (size_t)slot_samples(config);
    slot->targets = malloc(samples * dataset_target_bytes(config->dataset));
    bool whole = slot->targets != NULL;
    for (int i = 0; i < dataset_inputs(config->dataset); i++) {
        slot->inputs[i] = malloc(samples * dataset_input_bytes(config->dataset, i));
        whole = whole && slot->inputs[i] != NULL;
    }
    return whole;
}

static int allocate(struct loader *loader, struct err *err)
{
    loader->order = malloc(order_bytes(&loader->config));
    bool short_of = loader->order == NULL;
    for (int i = 0; i < SLOTS; i++)
        short_of = !allocate_slot(&loader->config, &loader->slots[i]) || short_of;
    return short_of ? err_set(err, ERR_NOMEM, "no memory for the loader's %zu bytes",
                              loader_bytes(&loader->config))
                    : 0;
}

int loader_start(const struct loader_config *config, struct loader **ret_loader, struct err *err)
{
    struct loader *loader = calloc(1, sizeof *loader);
    if (loader == NULL)
        return err_set(err, ERR_NOMEM, "no memory for a loader");
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->changed, NULL);
    loader->config = *config;
    loader->samples = dataset_samples(config->dataset);
    loader->batches = order_batches(loader->samples, config->batch_size, config->drop_last);
    if (loader->batches > 0 && config->n_batches > config->first_batch)
        loader->total = config->n_batches - config->first_batch;

    int rc = allocate(loader, err);
    if (rc == 0)
        rc = start_threads(loader, err);
    if (rc != 0) {
        loader_free(loader);
        return rc;
    }
    *ret_loader = loader;
    return 0;
}

void loader_stop(struct loader *loader)
{
    if (loader == NULL)
        return;
    pthread_mutex_lock(&loader->lock);
    loader->stop = true;
    pthread_cond_signal(&loader->changed);
    pthread_mutex_unlock(&loader->lock);
    pthread_join(loader->thread, NULL);
    loader_free(loader);
}

int loader_next(struct loader *loader, struct loader_batch *ret_batch, bool *ret_more,
                struct err *err)
{
    int rc = 0;
    pthread_mutex_lock(&loader->lock);
    loader->freed = loader->taken;
    pthread_cond_signal(&loader->changed);
    bool more = loader->taken < loader->total;
    while (more && loader->filled == loader->taken && loader->failure.code == 0)
        pthread_cond_wait(&loader->changed, &loader->lock);
    if (more && loader->filled > loader->taken) {
        *ret_batch = loader->slots[loader->taken++ % SLOTS].batch;
    } else if (more) {
        *err = loader->failure;
        rc = err->code;
    }
    pthread_mutex_unlock(&loader->lock);
    *ret_more = more;
    return rc;
}
