/* launch.h: how a kernel is started, so that one source is compiled for a GPU and, by a simulator,
 * for the host.
 *
 * Rules that make this possible: LAUNCH alone starts kernels; a kernel is not static and lies in a
 * named namespace; every pointer it follows is an argument of its own (none in a structure, none
 * in the device's memory); no inline PTX, CUB, cooperative groups or wmma; no default stream.
 */
#ifndef ENGINE_BACKEND_CUDA_LAUNCH_H
#define ENGINE_BACKEND_CUDA_LAUNCH_H

/* The kernel, in parentheses where commas are in its name; the dimensions of grid and block;
 * dynamic shared memory in bytes; the stream; its arguments. cudaGetLastError() tells of a launch
 * that failed. */
#ifndef LAUNCH /* a simulator has its own */
#define LAUNCH(kernel, grid, block, shared_bytes, stream, ...)                                     \
    kernel<<<(grid), (block), (shared_bytes), (stream)>>>(__VA_ARGS__)
#endif

#endif
