/* chunk.h: torch.chunk: PURE. */
#ifndef ENGINE_PARALLEL_CHUNK_H
#define ENGINE_PARALLEL_CHUNK_H

#include <stdint.h>

/* Splits `batch` samples for at most `n` devices: ceil(batch / n) each, the last one fewer, devices
 * that get none 0. ret_sizes has n entries. Returns the number of chunks. */
int chunk_sizes(int64_t batch, int n, int64_t *ret_sizes);

/* Of n chunks that `devices` devices run, n >= devices: the first that a device has; of device
 * `devices`: n. Each has a consecutive run; they differ by one at most. */
int chunk_first(int n, int devices, int device);

#endif
