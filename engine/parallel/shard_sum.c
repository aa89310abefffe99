/* shard_sum.c: see shard_sum.h. A sum is in slot i while it is the i-th of the stack. */
#include "engine/parallel/shard_sum.h"

#include <assert.h>
#include <string.h>

#include "engine/graph/op.h"
#include "engine/parallel/chunk.h"

static size_t flat_count(const struct model *model, const struct variable_map *map)
{
    int first = model->first_gradient, last = first + model->n_gradients - 1;
    return (map->offset[last] - map->offset[first]) / sizeof(float) +
           (size_t)shape_count(&model->variables[last].shape);
}

/* The most slots that shards first … end - 1 take, however few a batch fills. */
static size_t slots_of(int first, int end)
{
    struct term terms[TREE_MAX_DEPTH * 2];
    int n = 0, most = 0;
    for (int shard = first; shard < end; shard++) {
        struct term next = {NULL, shard, shard + 1};
        for (; n > 0 && tree_joins(&terms[n - 1], &next); n--)
            next.first = terms[n - 1].first;
        terms[n++] = next;
        most = n > most ? n : most;
    }
    return (size_t)most;
}

static size_t slots_on(const struct strategy_config *config, int device)
{
    int shards = (int)config->model->job->parallel.shards;
    return slots_of(chunk_first(shards, config->n_devices, device),
                    chunk_first(shards, config->n_devices, device + 1));
}

static bool records_gradients(const struct model *model)
{
    for (int i = 0; i < model->n_recorded; i++)
        if (model->recorded[i].kind == RECORDED_PARAMETER_GRAD)
            return true;
    return false;
}

size_t shard_sum_bytes(const struct strategy_config *config, const struct variable_map *map,
                       int device)
{
    const struct job *job = config->model->job;
    if (job->parallel.shards == 0 || config->n_train_batches == 0)
        return 0;
    size_t runs =
        slots_on(config, device) + (job->train.accumulate > 1) + records_gradients(config->model);
    return runs * flat_count(config->model, map) * sizeof(float);
}

int shard_sum_open(struct shard_sum *sum, const struct strategy_config *config,
                   const struct variable_map *map, int device, struct device *opened,
                   void *variables, struct err *err)
{
    const struct model *model = config->model;
    size_t bytes = shard_sum_bytes(config, map, device);
    *sum = (struct shard_sum){0};
    if (bytes == 0)
        return 0;
    sum->count = flat_count(model, map);
    sum->gradients = (float *)((char *)variables + map->offset[model->first_gradient]);
    int rc = memory_alloc(config->backend, opened, config->devices[device].name, bytes,
                          "shards' gradients", &sum->slots, err);
    if (rc != 0)
        return rc;
    float *next = (float *)sum->slots.at + slots_on(config, device) * sum->count;
    if (model->job->train.accumulate > 1) {
        sum->accumulated = next;
        next += sum->count;
    }
    if (records_gradients(model))
        sum->own = next;
    return 0;
}

void shard_sum_close(struct shard_sum *sum, const struct backend *backend, struct device *opened)
{
    memory_free(backend, opened, &sum->slots);
}

void shard_sum_add(struct shard_sum *sum, int shard, bool last)
{
    struct term next = {sum->gradients, shard, shard + 1};
    int n = sum->n_terms;
    for (; n > 0 && tree_joins(&sum->terms[n - 1], &next); n--) {
        float *left = (float *)sum->slots.at + (size_t)(n - 1) * sum->count;
        tree_add(left, next.data, sum->count);
        next = (struct term){left, sum->terms[n - 1].first, next.end};
    }
    if (next.data == sum->gradients && !last) {
        float *slot = (float *)sum->slots.at + (size_t)n * sum->count;
        memcpy(slot, sum->gradients, sum->count * sizeof *slot);
        next.data = slot;
    }
    assert((size_t)n < sizeof sum->terms / sizeof sum->terms[0]);
    sum->terms[n] = next;
    sum->n_terms = n + 1;
}

void shard_sum_keep(struct shard_sum *sum, bool first)
{
    if (sum->own == NULL)
        return;
    if (first)
        memset(sum->own, 0, sum->count * sizeof *sum->own);
    for (int i = 0; i < sum->n_terms; i++)
        tree_add(sum->own, sum->terms[i].data, sum->count);
}

void shard_sum_swap(struct shard_sum *sum)
{
    for (size_t i = 0; sum->own != NULL && i < sum->count; i++) {
        float own = sum->own[i];
        sum->own[i] = sum->gradients[i];
        sum->gradients[i] = own;
    }
}

int shard_sum_finish(struct shard_sum *sum, struct comm *comm, int device, enum step_part part,
                     struct err *err)
{
    const struct comm_sum all = {
        .terms = sum->terms,
        .n_terms = sum->n_terms,
        .before = step_part_adds(part) ? sum->accumulated : NULL,
        .to = step_part_ends(part) ? sum->gradients : sum->accumulated,
        .count = sum->count,
    };
    int rc = comm_sum(comm, device, &all, err);
    sum->n_terms = 0;
    return rc;
}
