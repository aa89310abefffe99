/* observed.c: see observed.h. Means and sums of squares about them are joined by the formula of
 * Chan, Golub and LeVeque (1979). */
#include "engine/parallel/observed.h"

#include <math.h>
#include <stdlib.h>

struct moments {
    double elements; /* 0: nothing has been seen */
    double mean, about_mean /* Σ (x - mean)² */, squares, most, nans;
};

int observed_open(const struct strategy_config *config, struct observed *ret_observed,
                  struct err *err)
{
    size_t n = (size_t)config->model->n_recorded * (size_t)config->n_devices;
    *ret_observed = (struct observed){
        .model = config->model,
        .n_devices = config->n_devices,
        .seen = calloc(n + 1, sizeof *ret_observed->seen),
        .records = calloc(n + 1, sizeof *ret_observed->records),
    };
    if (ret_observed->seen == NULL || ret_observed->records == NULL)
        return err_set(err, ERR_NOMEM, "no memory for what is recorded");
    return 0;
}

void observed_done(struct observed *observed)
{
    free(observed->seen);
    free(observed->records);
    *observed = (struct observed){.model = NULL};
}

void observed_clear(struct observed *observed)
{
    for (int i = 0; i < observed->model->n_recorded * observed->n_devices; i++)
        observed->seen[i] = (struct moments){.elements = 0};
}

static struct moments moments_of(const double *statistics, int64_t elements)
{
    double n = (double)elements, deviation = statistics[STATISTIC_STD];
    return (struct moments){
        .elements = n,
        .mean = statistics[STATISTIC_MEAN],
        .about_mean = elements == 1 ? 0 : deviation * deviation * (n - 1),
        .squares = statistics[STATISTIC_NORM] * statistics[STATISTIC_NORM],
        .most = statistics[STATISTIC_MAX],
        .nans = statistics[STATISTIC_NANS],
    };
}

static struct moments join(const struct moments *a, const struct moments *b)
{
    double n = a->elements + b->elements, apart = b->mean - a->mean;
    return (struct moments){
        .elements = n,
        .mean = a->mean + apart * b->elements / n,
        .about_mean = a->about_mean + b->about_mean + apart * apart * a->elements * b->elements / n,
        .squares = a->squares + b->squares,
        .most = a->most > b->most || isnan(a->most) ? a->most : b->most,
        .nans = a->nans + b->nans,
    };
}

static struct moments *seen_at(const struct observed *observed, int device, int i)
{
    return &observed->seen[device * observed->model->n_recorded + i];
}

void observed_add(struct observed *observed, int device, const struct graph *graph, int i,
                  const double *statistics)
{
    int64_t elements = shape_count(&graph->recorded[i]->producer->in[0]->shape);
    struct moments *seen = seen_at(observed, device, i), piece = moments_of(statistics, elements);
    *seen = seen->elements == 0 ? piece : join(seen, &piece);
}

static struct strategy_record record_of(const struct moments *seen, int i, int device)
{
    return (struct strategy_record){
        .recorded = i,
        .device = device,
        .statistics =
            {
                [STATISTIC_MEAN] = seen->mean,
                [STATISTIC_STD] = sqrt(seen->about_mean / (seen->elements - 1)),
                [STATISTIC_NORM] = sqrt(seen->squares),
                [STATISTIC_MAX] = seen->most,
                [STATISTIC_NANS] = seen->nans,
            },
    };
}

void observed_show(struct observed *observed, struct strategy_result *ret_result)
{
    ret_result->records = observed->records;
    ret_result->n_records = 0;
    for (int i = 0; i < observed->model->n_recorded; i++)
        for (int d = 0; d < observed->n_devices; d++) {
            const struct moments *seen = seen_at(observed, d, i);
            if (seen->elements > 0)
                observed->records[ret_result->n_records++] = record_of(seen, i, d);
        }
}
