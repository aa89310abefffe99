/* convert.cu: the same tensor in another type, or in another order of its dimensions. */
#include "engine/backend/cuda/real.cuh"

namespace engine
{

template <typename From, typename To> __global__ void cast(const From *from, To *to, int64_t n)
{
    for (int64_t i = thread_index(); i < n; i += n_threads())
        put(&to[i], widen(from[i]));
}

template <typename T> __global__ void resize(const T *from, T *to, resize_launch r)
{
    int64_t row = r.to[1] * r.inner, n = r.planes * r.to[0] * row;
    for (int64_t i = thread_index(); i < n; i += n_threads()) {
        int64_t plane = i / (r.to[0] * row), h = i / row % r.to[0], at = i % row;
        bool inside = h < r.from[0] && at < r.from[1] * r.inner;
        int64_t source = (plane * r.from[0] + h) * r.from[1] * r.inner + at;
        put(&to[i], inside ? widen(from[source]) : 0);
    }
}

template <typename T>
void run_resize(const void *from, void *to, const resize_launch *r, cudaStream_t stream)
{
    LAUNCH(resize<T>, blocks_for(r->planes * r->to[0] * r->to[1] * r->inner), BLOCK, 0, stream,
           (const T *)from, (T *)to, *r);
}

constexpr int TILE = 32, TILE_ROWS = 8;

/* A tile a block, through shared memory: reads and writes are both of whole lines. */
template <typename T>
__global__ void transpose(const T *from, T *to, int64_t rows, int64_t columns, int64_t tiles)
{
    __shared__ T tile[TILE][TILE + 1];
    int64_t across = (columns + TILE - 1) / TILE;
    for (int64_t b = blockIdx.x; b < tiles; b += gridDim.x) {
        int64_t down = (rows + TILE - 1) / TILE, matrix = b / (across * down);
        int64_t row = b / across % down * TILE, column = b % across * TILE;
        const T *in = from + matrix * rows * columns;
        T *out = to + matrix * rows * columns;
        for (int64_t r = threadIdx.y; r < TILE; r += TILE_ROWS)
            if (row + r < rows && column + threadIdx.x < columns)
                tile[r][threadIdx.x] = in[(row + r) * columns + column + threadIdx.x];
        __syncthreads();
        for (int64_t c = threadIdx.y; c < TILE; c += TILE_ROWS)
            if (column + c < columns && row + threadIdx.x < rows)
                out[(column + c) * rows + row + threadIdx.x] = tile[threadIdx.x][c];
        __syncthreads();
    }
}

template <typename T>
void run_transpose(const void *from, void *to, int64_t batch, int64_t rows, int64_t columns,
                   cudaStream_t stream)
{
    int64_t tiles = batch * ((rows + TILE - 1) / TILE) * ((columns + TILE - 1) / TILE);
    unsigned blocks = (unsigned)(tiles < 65535 ? tiles : 65535);
    LAUNCH(transpose<T>, blocks, dim3(TILE, TILE_ROWS), 0, stream, (const T *)from, (T *)to, rows,
           columns, tiles);
}

} // namespace engine

using namespace engine;

cudaError_t launch_cast(bool to_bf16, const void *from, void *to, int64_t n, cudaStream_t stream)
{
    if (to_bf16)
        LAUNCH((cast<float, bf16>), blocks_for(n), BLOCK, 0, stream, (const float *)from,
               (bf16 *)to, n);
    else
        LAUNCH((cast<bf16, float>), blocks_for(n), BLOCK, 0, stream, (const bf16 *)from,
               (float *)to, n);
    return cudaGetLastError();
}

cudaError_t launch_transpose(bool bf16, const void *from, void *to, int64_t batch, int64_t rows,
                             int64_t columns, cudaStream_t stream)
{
    if (bf16)
        run_transpose<engine::bf16>(from, to, batch, rows, columns, stream);
    else
        run_transpose<float>(from, to, batch, rows, columns, stream);
    return cudaGetLastError();
}

cudaError_t launch_resize(bool bf16, const void *from, void *to, const struct resize_launch *resize,
                          cudaStream_t stream)
{
    (bf16 ? run_resize<engine::bf16> : run_resize<float>)(from, to, resize, stream);
    return cudaGetLastError();
}
