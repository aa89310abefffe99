/* chunk.c: see chunk.h. */
#include "engine/parallel/chunk.h"

#include "engine/parallel/microbatch.h"

int chunk_sizes(int64_t batch, int n, int64_t *ret_sizes)
{
    const struct microbatch_rows all = {0, batch};
    int chunks = 0;
    for (int i = 0; i < n; i++) {
        ret_sizes[i] = microbatch_chunk(all, n, i).n;
        chunks += ret_sizes[i] > 0;
    }
    return chunks;
}

int chunk_first(int n, int devices, int device)
{
    return (device * n + devices - 1) / devices;
}
