/* statistics.c: mean, standard deviation, norm, largest magnitude and NaN count, in one pass.
 *
 * Elements are shifted by the first one, so that a variance far below the mean's square survives.
 * The tensor is cut in the same parts for any number of threads: the same bits.
 */
#include <math.h>
#include <string.h>

#include "engine/backend/cpu/own.h"
#include "engine/base/team.h"
#include "engine/ops/attr.h"

enum { PARTS = 64, LANES = 8 };

struct part { /* sums over some of the elements */
    double shifted, shifted_squares, squares, nans;
    float most;
};

struct input {
    const float *x;
    int64_t count;
    double shift;
    struct part *part;
};

/* Of n elements, n at most LANES. */
static void add_lanes(const float *x, int64_t n, double shift, struct part *lane)
{
#pragma omp simd
    for (int64_t k = 0; k < n; k++) {
        double value = (double)x[k], d = value - shift;
        lane[k].shifted += d;
        lane[k].shifted_squares += d * d;
        lane[k].squares += value * value;
        lane[k].nans += isnan(x[k]) ? 1 : 0;
        lane[k].most = fabsf(x[k]) > lane[k].most ? fabsf(x[k]) : lane[k].most;
    }
}

static void add_part(const struct part *part, struct part *sum)
{
    sum->shifted += part->shifted;
    sum->shifted_squares += part->shifted_squares;
    sum->squares += part->squares;
    sum->nans += part->nans;
    sum->most = part->most > sum->most ? part->most : sum->most;
}

static struct part sum_elements(const float *x, int64_t n, double shift)
{
    struct part lane[LANES] = {{0}}, sum = {0};
    for (int64_t i = 0; i < n; i += LANES)
        add_lanes(x + i, n - i < LANES ? n - i : LANES, shift, lane);
    for (int k = 0; k < LANES; k++)
        add_part(&lane[k], &sum);
    return sum;
}

static void sum_parts(int64_t begin, int64_t end, void *context)
{
    const struct input *input = context;
    int64_t size = (input->count + PARTS - 1) / PARTS;
    for (int64_t p = begin; p < end; p++) {
        int64_t from = p * size < input->count ? p * size : input->count;
        int64_t n = input->count - from < size ? input->count - from : size;
        input->part[p] = sum_elements(input->x + from, n, input->shift);
    }
}

static void finish(const struct input *input, const struct part *sum, double scale, double *out)
{
    double n = (double)input->count;
    double squares = sum->shifted_squares - sum->shifted * sum->shifted / n; /* about the mean */
    out[STATISTIC_MEAN] = scale * (input->shift + sum->shifted / n);
    out[STATISTIC_STD] = scale * sqrt((squares > 0 || isnan(squares) ? squares : 0) / (n - 1));
    out[STATISTIC_NORM] = scale * sqrt(sum->squares);
    out[STATISTIC_MAX] = scale * (sum->nans > 0 ? (double)NAN : (double)sum->most);
    out[STATISTIC_NANS] = sum->nans;
}

static int statistics_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    const struct statistics_attr *attr = own->node->attr;
    if (!args->step->record)
        return 0;
    struct input input = {args->in[0], shape_count(&own->node->in[0]->shape), 0, args->scratch};
    struct part sum = {0};
    if (isfinite(input.x[0]))
        input.shift = (double)input.x[0];
    team_for(PARTS, PARTS * (int64_t)OWN_GRAIN / input.count + 1, sum_parts, &input);
    for (int p = 0; p < PARTS; p++)
        add_part(&input.part[p], &sum);
    finish(&input, &sum, attr->scaled ? args->step->gradient_scale : 1, args->out[0]);
    return 0;
}

/* Where no padding of channels lies among the elements their order does not matter. */
static int statistics_query(const struct node *node, const struct layout *const *in,
                            struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    struct grid grid;
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc)
        return rc;
    if (layout_grid(in[0], &grid) && grid.channels % grid.block == 0)
        ret_choice->in[0] = in[0];
    ret_choice->scratch_bytes = PARTS * sizeof(struct part);
    return 0;
}

const struct kernel kernel_statistics = {"statistics", statistics_query, own_create, statistics_run,
                                         own_destroy};
