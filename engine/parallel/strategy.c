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
           (size_t)memory->slots * memory->slot_bytes +
           (size_t)memory->outboxes * memory->outbox_bytes;
}

int strategy_plan(const struct strategy_config *config, struct strategy_memory *ret_memory,
                  double *ret_flops, struct err *err)
{
    return chosen(config)->plan(config, ret_memory, ret_flops, err);
}

int strategy_open(const struct strategy_config *config, struct strategy **ret_strategy,
                  struct err *err)
{
    return chosen(config)->open(config, ret_strategy, err);
}

bool strategy_close(struct strategy *strategy)
{
    return strategy == NULL || strategy->def->close(strategy);
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
