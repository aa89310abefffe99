/* results.c: see results.h. */
#include "engine/parallel/results.h"

static int read_buffer(const struct results *results, const struct plan_buffer *buffer, void *to,
                       size_t bytes, struct err *err)
{
    if (buffer->space == SPACE_NONE)
        return 0;
    const char *from = (const char *)results->base[buffer->space] + buffer->offset;
    return results->backend->read(results->device, to, from, bytes, err);
}

int results_loss(const struct results *results, int64_t n, double *losses, double *ret_sum,
                 struct err *err)
{
    double one = 0, *list = losses != NULL ? losses : &one, sum = 0;
    int64_t count = losses != NULL ? n : 1;
    const struct plan_buffer *loss = &results->plan->loss;
    int rc = read_buffer(results, loss, list, (size_t)count * sizeof *list, err);
    for (int64_t i = 0; rc == 0 && loss->space != SPACE_NONE && i < count; i++)
        sum += list[i];
    if (rc == 0)
        *ret_sum = sum;
    return rc;
}

int results_samples(const struct results *results, int64_t n, const struct host_samples *to,
                    struct err *err)
{
    const struct plan *plan = results->plan;
    const struct model *model = plan->graph->model;
    int rc = read_buffer(results, &plan->prediction, to->predictions,
                         (size_t)(n * model->loss_terms) * sizeof *to->predictions, err);
    if (rc != 0 || to->outputs == NULL)
        return rc;
    return read_buffer(results, &plan->output, to->outputs,
                       (size_t)(n * shape_count(&model->output)) * sizeof *to->outputs, err);
}

int results_observe(const struct results *results, unsigned kinds, int device,
                    struct observed *observed, struct err *err)
{
    const struct plan *plan = results->plan;
    const struct model *model = plan->graph->model;
    double statistics[STATISTIC_COUNT];
    int rc = 0, n = plan->recorded != NULL ? model->n_recorded : 0;
    for (int i = 0; rc == 0 && i < n; i++) {
        const struct plan_buffer *buffer = &plan->recorded[i];
        if (buffer->space == SPACE_NONE || (kinds >> model->recorded[i].kind & 1) == 0)
            continue;
        rc = read_buffer(results, buffer, statistics, sizeof statistics, err);
        if (rc == 0)
            observed_add(observed, device, plan->graph, i, statistics);
    }
    return rc;
}
