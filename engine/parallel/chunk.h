/* chunk.h: torch.chunk: PURE. */
#ifndef ENGINE_PARALLEL_CHUNK_H
#define ENGINE_PARALLEL_CHUNK_H

#include <stdint.h>

/* Splits `batch` samples for at most `n` devices: ceil(batch / n) each, the last one fewer, devices
 * that get none 0. ret_sizes has n entries. Returns the number of chunks. */
int chunk_sizes(int64_t batch, int n, int64_t *ret_sizes);

#endif
