/* order.h: which sample comes when: a PURE function of (seed, epoch), and the arithmetic of steps
 * and epochs. */
#ifndef ENGINE_DATA_ORDER_H
#define ENGINE_DATA_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* Fills ret_index[0..n) with the epoch's permutation (0, 1, 2 … without shuffle). */
void order_epoch(uint64_t seed, int64_t epoch, bool shuffle, int64_t n, int64_t *ret_index);
/* Batches of an epoch; a batch never crosses its end. 0 where drop_last leaves none. */
int64_t order_batches(int64_t n, int64_t batch_size, bool drop_last);
/* Samples of batch `i` (from 0) of an epoch. */
int64_t order_batch_samples(int64_t n, int64_t batch_size, int64_t i);

#endif
