/* reduce.cu: sums over rows, squares and statistics, in one order whatever the GPU; and what is
 * scaled by them. */
#include "engine/backend/cuda/real.cuh"
#include "engine/backend/cuda/reduce.h"

namespace engine
{

constexpr int COLUMNS = 32, LANES = 8;

/* A block: 32 columns of a run of rows, each summed by 8 threads. */
template <typename T>
__global__ void column_sums(const T *x, int64_t rows, int64_t columns, int64_t rows_a_part,
                            float *sums)
{
    __shared__ float room[LANES][COLUMNS];
    int64_t column = (int64_t)blockIdx.x * COLUMNS + threadIdx.x;
    int64_t from = (int64_t)blockIdx.y * rows_a_part;
    int64_t to = from + rows_a_part < rows ? from + rows_a_part : rows;
    float sum = 0;
    for (int64_t r = from + threadIdx.y; column < columns && r < to; r += LANES)
        sum += widen(x[r * columns + column]);
    room[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || column >= columns)
        return;
    for (int k = 1; k < LANES; k++)
        sum += room[k][threadIdx.x];
    sums[(int64_t)blockIdx.y * columns + column] = sum;
}

template <typename T>
void run_column_sums(const void *x, int64_t rows, int64_t columns, float *sum, float *scratch,
                     cudaStream_t stream)
{
    int64_t parts = column_parts(rows), rows_a_part = (rows + parts - 1) / parts;
    dim3 grid((unsigned)((columns + COLUMNS - 1) / COLUMNS), (unsigned)parts);
    LAUNCH(column_sums<T>, grid, dim3(COLUMNS, LANES), 0, stream, (const T *)x, rows, columns,
           rows_a_part, parts > 1 ? scratch : sum);
    if (parts > 1)
        LAUNCH(column_sums<float>, dim3(grid.x), dim3(COLUMNS, LANES), 0, stream,
               (const float *)scratch, parts, columns, parts, sum);
}

__global__ void sum_parts(const double *part, int64_t n, double *ret_sums)
{
    __shared__ double sums[BLOCK];
    double sum = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
        sum += part[(int64_t)blockIdx.x * n + i];
    sum = block_reduce(sum, sums, Sum());
    if (threadIdx.x == 0)
        ret_sums[blockIdx.x] = sum;
}

__global__ void scale(float *x, int64_t n, const device_step *step)
{
    float factor = (float)step->gradient_scale;
    for (int64_t i = thread_index(); i < n; i += n_threads())
        x[i] *= factor;
}

__global__ void square_parts(const float *x, int64_t n, double *parts)
{
    __shared__ double room[BLOCK];
    int64_t size = (n + NORM_PARTS - 1) / NORM_PARTS, from = blockIdx.x * size;
    int64_t to = from + size < n ? from + size : n;
    double sum = 0;
    for (int64_t i = from + threadIdx.x; i < to; i += blockDim.x)
        sum += (double)x[i] * (double)x[i];
    sum = block_reduce(sum, room, Sum());
    if (threadIdx.x == 0)
        parts[blockIdx.x] = sum;
}

/* torch.nn.utils.clip_grad_norm_. */
__global__ void clip_scale(const double *total, double max_norm, float *ret_scale)
{
    float scale = (float)(max_norm / (sqrt(*total) + 1e-6));
    *ret_scale = scale > 1 ? 1 : scale;
}

/* Sums over some of the elements, which are shifted by the first one, so that a variance far below
 * the mean's square survives. */
struct Moments {
    double shifted, shifted_squares, squares, nans, most;
};

struct AddMoments {
    __device__ Moments operator()(Moments a, Moments b) const
    {
        return {a.shifted + b.shifted, a.shifted_squares + b.shifted_squares, a.squares + b.squares,
                a.nans + b.nans, a.most > b.most ? a.most : b.most};
    }
};

__device__ inline double shift_of(const float *x)
{
    return isfinite(x[0]) ? (double)x[0] : 0;
}

__global__ void moments(const float *x, int64_t n, Moments *parts, const device_step *step)
{
    __shared__ Moments room[BLOCK];
    if (!step->record)
        return;
    int64_t size = (n + STATISTICS_PARTS - 1) / STATISTICS_PARTS, from = blockIdx.x * size;
    int64_t to = from + size < n ? from + size : n;
    double shift = shift_of(x);
    Moments sum = {0, 0, 0, 0, 0};
    for (int64_t i = from + threadIdx.x; i < to; i += blockDim.x) {
        double value = (double)x[i], d = value - shift;
        sum = AddMoments()(sum, {d, d * d, value * value, isnan(x[i]) ? 1.0 : 0.0, fabs(value)});
    }
    sum = block_reduce(sum, room, AddMoments());
    if (threadIdx.x == 0)
        parts[blockIdx.x] = sum;
}

/* In the order of enum statistic: mean, deviation, norm, largest magnitude, NaNs. */
__global__ void statistics(const float *x, int64_t n, bool scaled, const Moments *parts,
                           double *out, const device_step *step)
{
    __shared__ Moments room[STATISTICS_PARTS];
    if (!step->record)
        return;
    Moments sum = block_reduce(parts[threadIdx.x], room, AddMoments());
    if (threadIdx.x > 0)
        return;
    double count = (double)n, scale = scaled ? step->gradient_scale : 1;
    double squares = sum.shifted_squares - sum.shifted * sum.shifted / count; /* about the mean */
    out[0] = scale * (shift_of(x) + sum.shifted / count);
    out[1] = scale * sqrt((squares > 0 || isnan(squares) ? squares : 0) / (count - 1));
    out[2] = scale * sqrt(sum.squares);
    out[3] = scale * (sum.nans > 0 ? nan("") : sum.most);
    out[4] = sum.nans;
}

} // namespace engine

using namespace engine;

int64_t column_parts(int64_t rows)
{
    int64_t parts = (rows + COLUMN_PART_ROWS - 1) / COLUMN_PART_ROWS;
    return parts < 1 ? 1 : parts < COLUMN_PARTS ? parts : (int64_t)COLUMN_PARTS;
}

cudaError_t launch_column_sums(bool bf16, const void *x, int64_t rows, int64_t columns, float *sum,
                               float *scratch, cudaStream_t stream)
{
    if (bf16)
        run_column_sums<engine::bf16>(x, rows, columns, sum, scratch, stream);
    else
        run_column_sums<float>(x, rows, columns, sum, scratch, stream);
    return cudaGetLastError();
}

cudaError_t launch_sum_parts(const double *part, int64_t n, double *ret_sums, int64_t sums,
                             cudaStream_t stream)
{
    LAUNCH(sum_parts, (unsigned)sums, threads_for(n), 0, stream, part, n, ret_sums);
    return cudaGetLastError();
}

cudaError_t launch_scale(float *x, int64_t n, const struct device_step *step, cudaStream_t stream)
{
    LAUNCH(engine::scale, blocks_for(n), BLOCK, 0, stream, x, n, step);
    return cudaGetLastError();
}

cudaError_t launch_square_sum(const float *x, int64_t n, double *scratch, double *ret_total,
                              cudaStream_t stream)
{
    LAUNCH(square_parts, NORM_PARTS, threads_for(n / NORM_PARTS), 0, stream, x, n, scratch);
    cudaError_t status = cudaGetLastError();
    return status != cudaSuccess ? status
                                 : launch_sum_parts(scratch, NORM_PARTS, ret_total, 1, stream);
}

cudaError_t launch_clip_scale(const double *total, double max_norm, float *ret_scale,
                              cudaStream_t stream)
{
    LAUNCH(clip_scale, 1, 1, 0, stream, total, max_norm, ret_scale);
    return cudaGetLastError();
}

cudaError_t launch_statistics(const float *x, int64_t n, bool scaled, double *scratch,
                              double *ret_statistics, const struct device_step *step,
                              cudaStream_t stream)
{
    LAUNCH(moments, STATISTICS_PARTS, threads_for(n / STATISTICS_PARTS), 0, stream, x, n,
           (Moments *)scratch, step);
    LAUNCH(engine::statistics, 1, STATISTICS_PARTS, 0, stream, x, n, scaled,
           (const Moments *)scratch, ret_statistics, step);
    return cudaGetLastError();
}
