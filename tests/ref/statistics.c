/* statistics.c: torch's x.mean(), x.std(), x.norm(), x.abs().max(), x.isnan().sum(). */
#include <math.h>

#include "engine/ops/attr.h"
#include "tests/ref/ref.h"

void ref_statistics(const struct node *node, double *const *in, double *const *out,
                    const struct step *step)
{
    const struct statistics_attr *attr = node->attr;
    const double *x = in[0], scale = attr->scaled ? step->gradient_scale : 1;
    int64_t n = shape_count(&node->in[0]->shape);
    double mean = 0, squares = 0, deviations = 0, most = 0, nans = 0;
    for (int64_t i = 0; i < n; i++) {
        mean += x[i] / (double)n;
        squares += x[i] * x[i];
        most = isnan(x[i]) || isnan(most) ? (double)NAN : fmax(most, fabs(x[i]));
        nans += isnan(x[i]) ? 1 : 0;
    }
    for (int64_t i = 0; i < n; i++)
        deviations += (x[i] - mean) * (x[i] - mean);
    out[0][STATISTIC_MEAN] = scale * mean;
    out[0][STATISTIC_STD] = scale * sqrt(deviations / (double)(n - 1));
    out[0][STATISTIC_NORM] = scale * sqrt(squares);
    out[0][STATISTIC_MAX] = scale * most;
    out[0][STATISTIC_NANS] = nans;
}
