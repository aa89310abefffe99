/* order.c: see order.h. */
#include "engine/data/order.h"

#include "engine/base/rng.h"

/* Fisher–Yates. A 64-bit draw modulo i + 1 is biased by less than i / 2^64. */
void order_epoch(uint64_t seed, int64_t epoch, bool shuffle, int64_t n, int64_t *ret_index)
{
    for (int64_t i = 0; i < n; i++)
        ret_index[i] = i;
    if (!shuffle)
        return;
    struct rng_key key = rng_key(seed, RNG_SHUFFLE, (uint64_t)epoch);
    for (int64_t i = n - 1; i > 0; i--) {
        uint32_t word[4];
        rng_block(key, (uint64_t)i, 0, word);
        uint64_t draw = (uint64_t)word[0] << 32 | word[1];
        int64_t j = (int64_t)(draw % ((uint64_t)i + 1));
        int64_t swap = ret_index[i];
        ret_index[i] = ret_index[j];
        ret_index[j] = swap;
    }
}

int64_t order_batches(int64_t n, int64_t batch_size, bool drop_last)
{
    return n / batch_size + (!drop_last && n % batch_size != 0);
}

int64_t order_batch_samples(int64_t n, int64_t batch_size, int64_t i)
{
    int64_t left = n - i * batch_size;
    return left < batch_size ? left : batch_size;
}

int64_t order_steps(int64_t batches, int64_t accumulate)
{
    return batches / accumulate + (batches % accumulate != 0);
}

enum step_part order_part(int64_t batches, int64_t accumulate, int64_t i)
{
    bool first = i % accumulate == 0;
    bool last = i % accumulate == accumulate - 1 || i == batches - 1;
    if (first)
        return last ? STEP_WHOLE : STEP_FIRST;
    return last ? STEP_LAST : STEP_MIDDLE;
}

int64_t order_batches_before(int64_t batches, int64_t accumulate, int64_t step)
{
    int64_t steps = order_steps(batches, accumulate);
    return step / steps * batches + step % steps * accumulate;
}
