/* order.h: which sample comes when: a PURE function of (seed, epoch), and the arithmetic of steps
 * and epochs. */
#ifndef ENGINE_DATA_ORDER_H
#define ENGINE_DATA_ORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/graph/graph.h"

/* Fills ret_index[0..n) with the epoch's permutation (0, 1, 2 … without shuffle). */
void order_epoch(uint64_t seed, int64_t epoch, bool shuffle, int64_t n, int64_t *ret_index);
/* Batches of an epoch; a batch never crosses its end. 0 where drop_last leaves none. */
int64_t order_batches(int64_t n, int64_t batch_size, bool drop_last);
/* Samples of batch `i` (from 0) of an epoch. */
int64_t order_batch_samples(int64_t n, int64_t batch_size, int64_t i);

/* The same for steps of `accumulate` batches each: a window that holds an epoch's end is short. */
int64_t order_steps(int64_t batches, int64_t accumulate);
/* Where batch `i` of an epoch stands in its window. */
enum step_part order_part(int64_t batches, int64_t accumulate, int64_t i);
/* Batches before step `step` (from 0), counted from the start of epoch 0. */
int64_t order_batches_before(int64_t batches, int64_t accumulate, int64_t step);

#endif
