/* accumulate.c: what a window's mean divides by is known when its last batch is there (targets may
 * not all count). So gradients are summed undivided and the last batch's graph scales them. */
#include "engine/train/accumulate.h"

#include "engine/data/order.h"
#include "engine/train/trace.h"

struct pass { /* sums so far */
    double loss_sum, divisor;
    struct accumulated made;
};

static bool is_mean(const struct job_train *train)
{
    return train->accumulate_reduction == ACCUMULATE_MEAN;
}

static void add(const struct job *job, const struct strategy_result *result, struct pass *pass)
{
    bool sum = job->loss.reduction == REDUCTION_SUM;
    pass->made.n_replicas = result->n_replicas;
    for (int i = 0; i < result->n_replicas; i++) {
        struct replica_result *replica = &pass->made.replicas[i];
        replica->samples += result->replicas[i].samples;
        replica->loss_sum += result->replicas[i].loss_sum;
        replica->loss_divisor = sum ? 1 : replica->loss_divisor + result->replicas[i].loss_divisor;
        pass->loss_sum += result->replicas[i].loss_sum;
    }
    pass->made.loss =
        is_mean(&job->train) ? pass->loss_sum / pass->divisor : pass->made.loss + result->loss;
}

/* A mean over nothing: PyTorch's loss is NaN then, and its weights after the step too. */
static int refuse_ignored(const struct job *job, const struct step *step, struct err *err)
{
    return err_set(err, ERR_DATA_INVALID,
                   "no target of step %lld (epoch %lld) counts: all are %lld, which ignore_index "
                   "names, or weigh 0, and a mean of no losses is not a number",
                   (long long)step->number, (long long)step->epoch + 1,
                   (long long)job->loss.ignore_index);
}

static int run_batch(const struct trainer_config *config, const struct prepared *prepared,
                     struct strategy *strategy, const struct loader_batch *next,
                     enum step_part part, struct step step, struct pass *pass, struct err *err)
{
    const struct job *job = config->job;
    struct strategy_result result;
    double divisor = graph_loss_divisor(prepared->model, next->batch.targets, next->batch.n);
    bool later = job->train.accumulate > 1 && is_mean(&job->train);
    pass->divisor = job->loss.reduction == REDUCTION_SUM ? 1 : pass->divisor + divisor;
    step.epoch = next->epoch;
    step.first_sample = next->first_sample;
    step.loss_divisor = later ? 1 : divisor;
    step.gradient_scale = 1 / pass->divisor;
    if (later ? step_part_ends(part) && pass->divisor == 0 : divisor == 0)
        return refuse_ignored(job, &step, err);
    int rc = strategy_train(strategy, &next->batch, part, &step, &result, err);
    if (rc != 0)
        return rc;
    pass->made.samples += next->batch.n;
    pass->made.records = result.records;
    pass->made.n_records = result.n_records;
    add(job, &result, pass);
    if (job->train.trace_shapes)
        trace_batch(config, prepared, &next->batch, &result);
    return 0;
}

int accumulate_step(const struct trainer_config *config, const struct prepared *prepared,
                    struct strategy *strategy, struct loader *loader, struct step step,
                    struct accumulated *ret_made, struct err *err)
{
    struct pass pass = {.divisor = 0};
    enum step_part part = STEP_FIRST;
    int rc = 0;
    while (rc == 0) {
        struct loader_batch next;
        bool more = false;
        rc = loader_next(loader, &next, &more, err);
        if (rc == 0 && !more)
            rc = err_set(err, ERR_INTERNAL, "the loader ended before the job");
        if (rc != 0)
            break;
        part = order_part(prepared->epoch_batches, config->job->train.accumulate, next.index);
        rc = run_batch(config, prepared, strategy, &next, part, step, &pass, err);
        if (step_part_ends(part))
            break;
    }
    if (rc == 0)
        *ret_made = pass.made;
    return rc;
}
