/* microbatch.h: which rows of a batch each worker of a pipeline gets: PURE.
 *
 * The batch is chunked over pipelines by torch.chunk; a pipeline's chunk is cut in micro-batches:
 * of `split_size` samples each as by Tensor.split, or in `microbatches` as by torch.chunk; each
 * micro-batch is chunked over a stage's devices by torch.chunk. A pipeline, a micro-batch or a
 * device may get no rows: fewer samples than there are takers.
 */
#ifndef ENGINE_PARALLEL_MICROBATCH_H
#define ENGINE_PARALLEL_MICROBATCH_H

#include <stdint.h>

struct microbatch_rule { /* at most one is given; neither: one micro-batch */
    int64_t split_size;
    int64_t microbatches;
};

struct microbatch_rows {
    int64_t first, n; /* of the batch; n 0: none */
};

/* How many micro-batches a chunk of `samples` makes: none has no samples. 0 of 0. */
int64_t microbatch_count(const struct microbatch_rule *rule, int64_t samples);

/* Entry `index` of torch.chunk(rows, n). */
struct microbatch_rows microbatch_chunk(struct microbatch_rows rows, int64_t n, int64_t index);
/* Micro-batch `index` of a pipeline's rows; none from microbatch_count on. */
struct microbatch_rows microbatch_cut(const struct microbatch_rule *rule,
                                      struct microbatch_rows rows, int64_t index);
/* What both have; n 0 if nothing. */
struct microbatch_rows microbatch_overlap(struct microbatch_rows a, struct microbatch_rows b);

#endif
