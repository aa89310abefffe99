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

int chunk_first(int n, int devices, int device)
{
    return (device * n + devices - 1) / devices;
}

int chunk_device(int n, int devices, int chunk)
{
    return chunk * devices / n;
}
