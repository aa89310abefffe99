/* strategy.c: the ways to spread a job, by the document's `parallel.mode`. */
#include "engine/parallel/strategy_def.h"

static const struct strategy_def *const strategies[] = {
    [PARALLEL_SINGLE] = &strategy_replicate, /* by one */
    [PARALLEL_REPLICATE] = &strategy_replicate,
    [PARALLEL_STAGES] = &strategy_stages,
};

static const struct strategy_def *chosen(const struct strategy_config *config)
{
    return strategies[config->model->job->parallel.mode];
}

const struct strategy_batch *strategy_largest(const struct strategy_config *config)
{
    const struct strategy_batch *largest = NULL;
    for (size_t i = 0; i < config->n_train_batches; i++)
        if (largest == NULL || config->train_batches[i].n > largest->n)
            largest = &config->train_batches[i];
    return largest;
}

size_t strategy_bytes(const struct strategy_memory *memory)
{
    return memory->variable_bytes + memory->arena_bytes + memory->input_bytes +
           memory->padding_bytes + (size_t)memory->slots * memory->slot_bytes +
           (size_t)memory->outboxes * memory->outbox_bytes;
}

static double mib(int64_t bytes)
{
    return (double)bytes / (1 << 20);
}

/* Of one device, or of all that share a memory. */
struct demand {
    int64_t bytes, variable_bytes;
};

/* The place is that of what is too much: the variables alone, or what grows with the batch. */
static int refuse_memory(const struct strategy_config *config, const struct demand *demand,
                         int device, struct err *err)
{
    int64_t there = config->devices[device].memory_bytes;
    bool together = config->backend->shares_memory && config->n_devices > 1;
    return err_at(err, ERR_JOB_INVALID,
                  demand->variable_bytes >= there ? "/model" : "/train/batch_size",
                  "the job needs %.1f MiB on %s, %.1f of them for variables, and there are %.1f",
                  mib(demand->bytes), together ? "its devices" : config->devices[device].name,
                  mib(demand->variable_bytes), mib(there));
}

/* Before a system that promises more memory than it has ends the job, or another one. */
int strategy_check_memory(const struct strategy_config *config,
                          const struct strategy_memory *memory, struct err *err)
{
    bool together = config->backend->shares_memory;
    struct demand demand = {0};
    for (int d = 0; d < config->n_devices; d++) {
        int64_t there = config->devices[d].memory_bytes;
        demand.bytes += (int64_t)strategy_bytes(&memory[d]);
        demand.variable_bytes += (int64_t)memory[d].variable_bytes;
        if (together && d < config->n_devices - 1)
            continue;
        if (there > 0 && demand.bytes > there)
            return refuse_memory(config, &demand, d, err);
        demand = (struct demand){0};
    }
    return 0;
}

int strategy_plan(const struct strategy_config *config, struct strategy_memory *ret_memory,
                  double *ret_flops, struct err *err)
{
    int rc = chosen(config)->plan(config, ret_memory, ret_flops, err);
    return rc == 0 ? strategy_check_memory(config, ret_memory, err) : rc;
}

int strategy_open(const struct strategy_config *config, struct strategy **ret_strategy,
                  struct err *err)
{
    return chosen(config)->open(config, ret_strategy, err);
}

void strategy_close(struct strategy *strategy)
{
    if (strategy != NULL)
        strategy->def->close(strategy);
}

int strategy_train(struct strategy *strategy, const struct batch *batch, enum step_part part,
                   const struct step *step, struct strategy_result *ret_result, struct err *err)
{
    return strategy->def->train(strategy, batch, part, step, ret_result, err);
}

int strategy_evaluate(struct strategy *strategy, const struct batch *batch, const struct step *step,
                      struct strategy_result *ret_result, struct err *err)
{
    return strategy->def->evaluate(strategy, batch, step, ret_result, err);
}

int strategy_read(struct strategy *strategy, int variable, void *to, struct err *err)
{
    return strategy->def->read(strategy, variable, to, err);
}

int strategy_write(struct strategy *strategy, int variable, const void *from, struct err *err)
{
    return strategy->def->write(strategy, variable, from, err);
}

int strategy_share_buffers(struct strategy *strategy, const struct model *model, void *room,
                           struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < model->n_variables; i++) {
        if (model->variables[i].kind != VARIABLE_BUFFER)
            continue;
        rc = strategy_read(strategy, (int)i, room, err);
        if (rc == 0)
            rc = strategy_write(strategy, (int)i, room, err);
    }
    return rc;
}
