/* chunk.c: see chunk.h. */
#include "engine/parallel/chunk.h"

int chunk_sizes(int64_t batch, int n, int64_t *ret_sizes)
{
    int64_t size = batch / n + (batch % n != 0);
    int chunks = 0;
    for (int i = 0; i < n; i++) {
        ret_sizes[i] = batch < size ? batch : size;
        batch -= ret_sizes[i];
        chunks += ret_sizes[i] > 0;
    }
    return chunks;
}
