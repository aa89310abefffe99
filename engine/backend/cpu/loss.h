/* loss.h: what the kernels of losses share. */
#ifndef ENGINE_BACKEND_CPU_LOSS_H
#define ENGINE_BACKEND_CPU_LOSS_H

#include <stdint.h>

/* Adds partial sums in their order, whoever computed them. */
static inline double loss_sum(const double *part, int64_t n)
{
    double total = 0;
    for (int64_t i = 0; i < n; i++)
        total += part[i];
    return total;
}

/* The same for n_sums runs of as many parts each. */
static inline void loss_sums(const double *part, int64_t n, double *ret_sums, int64_t n_sums)
{
    for (int64_t i = 0; i < n_sums; i++)
        ret_sums[i] = loss_sum(part + i * (n / n_sums), n / n_sums);
}

#endif
