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

#include "engine/data/order.h"

enum { SLOTS = 3 }; /* one at work, one ready, one being made */

struct slot {
    float *inputs;
    void *targets;
    struct loader_batch batch;
};

struct loader {
    struct loader_config config;
    int64_t samples, batches; /* of an epoch */
    int64_t total;            /* batches to give */
    int64_t *order;           /* [samples], of the epoch being made: the thread's own */
    struct slot slots[SLOTS];

    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t filled, taken, freed;
    bool stop;
};

/* The most that a batch has. */
static int64_t slot_samples(const struct loader_config *config)
{
    return order_batch_samples(dataset_samples(config->dataset), config->batch_size, 0);
}

static size_t input_bytes(const struct loader_config *config)
{
    return (size_t)(slot_samples(config) * shape_count(&config->input)) * sizeof(float);
}

static size_t target_bytes(const struct loader_config *config)
{
    int64_t count = config->target_dtype == DTYPE_I64 ? 1 : shape_count(&config->target);
    return (size_t)(slot_samples(config) * count) * dtype_size(config->target_dtype);
}

static size_t order_bytes(const struct loader_config *config)
{
    return (size_t)dataset_samples(config->dataset) * sizeof(int64_t);
}

size_t loader_bytes(const struct loader_config *config)
{
    return order_bytes(config) + SLOTS * (input_bytes(config) + target_bytes(config));
}

/* Makes batch `number`, counted from the start of epoch 0. */
static void fill(struct loader *loader, struct slot *slot, int64_t number)
{
    const struct loader_config *config = &loader->config;
    int64_t epoch = number / loader->batches, index = number % loader->batches;
    if (index == 0 || number == config->first_batch)
        order_epoch(config->seed, epoch, config->shuffle, loader->samples, loader->order);
    int64_t first = index * config->batch_size;
    int64_t n = order_batch_samples(loader->samples, config->batch_size, index);
    dataset_gather(config->dataset, loader->order + first, n, slot->inputs, slot->targets);
    slot->batch = (struct loader_batch){
        .batch = {.n = n, .data = slot->inputs, .targets = slot->targets},
        .epoch = epoch,
        .index = index,
        .first_sample = first,
        .last_of_epoch = index == loader->batches - 1,
    };
}

static void *prefetch(void *context)
{
    struct loader *loader = context;
    for (int64_t i = 0; i < loader->total; i++) {
        pthread_mutex_lock(&loader->lock);
        while (!loader->stop && loader->filled - loader->freed == SLOTS)
            pthread_cond_wait(&loader->changed, &loader->lock);
        bool stop = loader->stop;
        pthread_mutex_unlock(&loader->lock);
        if (stop)
            break;
        fill(loader, &loader->slots[i % SLOTS], loader->config.first_batch + i);
        pthread_mutex_lock(&loader->lock);
        loader->filled++;
        pthread_cond_signal(&loader->changed);
        pthread_mutex_unlock(&loader->lock);
    }
    return NULL;
}

static int start_thread(struct loader *loader, struct err *err)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int errnum = pthread_create(&loader->thread, NULL, prefetch, loader);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return errnum == 0 ? 0
                       : err_set(err, ERR_NOMEM, "cannot start the loader: %s", strerror(errnum));
}

static void loader_free(struct loader *loader)
{
    for (int i = 0; i < SLOTS; i++) {
        free(loader->slots[i].inputs);
        free(loader->slots[i].targets);
    }
    free(loader->order);
    pthread_cond_destroy(&loader->changed);
    pthread_mutex_destroy(&loader->lock);
    free(loader);
}

static int allocate(struct loader *loader, struct err *err)
{
    loader->order = malloc(order_bytes(&loader->config));
    bool short_of = loader->order == NULL;
    for (int i = 0; i < SLOTS; i++) {
        struct slot *slot = &loader->slots[i];
        slot->inputs = malloc(input_bytes(&loader->config));
        slot->targets = malloc(target_bytes(&loader->config));
        short_of = short_of || slot->inputs == NULL || slot->targets == NULL;
    }
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
        rc = start_thread(loader, err);
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

bool loader_next(struct loader *loader, struct loader_batch *ret_batch)
{
    pthread_mutex_lock(&loader->lock);
    loader->freed = loader->taken;
    pthread_cond_signal(&loader->changed);
    bool more = loader->taken < loader->total;
    while (more && loader->filled == loader->taken)
        pthread_cond_wait(&loader->changed, &loader->lock);
    if (more)
        *ret_batch = loader->slots[loader->taken++ % SLOTS].batch;
    pthread_mutex_unlock(&loader->lock);
    return more;
}
