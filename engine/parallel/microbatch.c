/* microbatch.c: see microbatch.h. */
#include "engine/parallel/microbatch.h"

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* Samples of every micro-batch but the last. */
static int64_t part_size(const struct microbatch_rule *rule, int64_t samples)
{
    if (rule->split_size > 0)
        return rule->split_size;
    return rule->microbatches > 0 ? divide_up(samples, rule->microbatches) : samples;
}

int64_t microbatch_count(const struct microbatch_rule *rule, int64_t samples)
{
    return samples > 0 ? divide_up(samples, part_size(rule, samples)) : 0;
}

/* Part `index` of rows that are cut every `size`; the division says without overflow whether there
 * is one. */
static struct microbatch_rows cut(struct microbatch_rows rows, int64_t size, int64_t index)
{
    if (rows.n == 0 || index > (rows.n - 1) / size)
        return (struct microbatch_rows){rows.first + rows.n, 0};
    int64_t begin = index * size;
    return (struct microbatch_rows){rows.first + begin, smaller(size, rows.n - begin)};
}

struct microbatch_rows microbatch_chunk(struct microbatch_rows rows, int64_t n, int64_t index)
{
    return cut(rows, divide_up(rows.n, n), index);
}

struct microbatch_rows microbatch_cut(const struct microbatch_rule *rule,
                                      struct microbatch_rows rows, int64_t index)
{
    return cut(rows, part_size(rule, rows.n), index);
}

struct microbatch_rows microbatch_overlap(struct microbatch_rows a, struct microbatch_rows b)
{
    int64_t begin = a.first > b.first ? a.first : b.first;
    int64_t end = smaller(a.first + a.n, b.first + b.n);
    return (struct microbatch_rows){begin, end > begin ? end - begin : 0};
}
