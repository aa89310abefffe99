/* cudnn_conv_algo.cc: which algorithms a convolution has, what each needs, and the calls that ask
 * for it.
 *
 * All compute the same. What differs is what a caller must get right: the workspace, the shapes and
 * layouts an algorithm does not do, and whether it is deterministic. Each table lists the fastest
 * first; ahead of all, backwards, stand those that are not deterministic, as on a real device.
 */
#include <algorithm>

#include "tests/cudasim/cudnn_conv.hpp"

namespace sim
{

static bool always(const ConvDescriptors &)
{
    return true;
}

/* Planes of floats: what needs them written out. */
static bool planes_f32(const ConvDescriptors &d)
{
    return d.x->type == Type::f32 && d.w->format == CUDNN_TENSOR_NCHW && d.x->stride[3] == 1;
}

static bool winograd(const ConvDescriptors &d)
{
    const cudnnConvolutionStruct &c = *d.conv;
    const View &w = d.w->view;
    return planes_f32(d) && w.dim[2] == 3 && w.dim[3] == 3 && c.stride[0] == 1 &&
           c.stride[1] == 1 && c.dilation[0] == 1 && c.dilation[1] == 1 && c.groups == 1;
}

static size_t nothing(const Conv &)
{
    return 0;
}

static size_t offsets(const Conv &v) /* of the filter's elements in x */
{
    return size_t(v.c / v.groups * v.r * v.s) * sizeof(int32_t);
}

static size_t columns(const Conv &v) /* x, unfolded */
{
    return size_t(v.c * v.r * v.s * v.p * v.q) * sizeof(float);
}

static size_t tiles(const Conv &v)
{
    return size_t(16 * v.k * v.c + 16 * (v.k + v.c) * ((v.p + 1) / 2) * ((v.q + 1) / 2)) *
           sizeof(float);
}

static const ConvAlgo forward_algos[] = {
    {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, true, always, offsets},
    {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED, true, winograd, tiles},
    {CUDNN_CONVOLUTION_FWD_ALGO_GEMM, true, planes_f32, columns},
    {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, true, always, nothing},
};
static const ConvAlgo data_algos[] = {
    {CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, false, always, nothing},
    {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, true, always, offsets},
    {CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED, true, winograd, tiles},
};
static const ConvAlgo filter_algos[] = {
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, false, always, nothing},
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, false, planes_f32, offsets},
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, true, always, columns},
    {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED, true, winograd, tiles},
};

static const struct {
    const ConvAlgo *begin, *end;
    int max_count; /* what the real library answers */
} tables[] = {
    {std::begin(forward_algos), std::end(forward_algos), CUDNN_CONVOLUTION_FWD_ALGO_COUNT},
    {std::begin(data_algos), std::end(data_algos), CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT},
    {std::begin(filter_algos), std::end(filter_algos), CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT},
};

const ConvAlgo *conv_algo_find(Direction direction, const ConvDescriptors &descriptors, int algo)
{
    auto table = tables[int(direction)];
    const ConvAlgo *row =
        std::find_if(table.begin, table.end, [=](auto &r) { return r.algo == algo; });
    return row != table.end && row->supports(descriptors) ? row : nullptr;
}

/* Where a search runs each algorithm, and with how much workspace. Without it a search only
 * guesses. */
struct Trial {
    cudnnHandle_t handle;
    ConvPointers pointers;
};

/* Fills the results of the algorithms that do, then those that lack workspace. Perf is one of the
 * API's three types. */
template <typename Perf>
static cudnnStatus_t list(const char *call, Direction direction, const ConvDescriptors &d,
                          const Trial *trial, int requested, int *returned, Perf *results)
{
    Conv conv;
    REFUSE_IF(!returned || !results || requested < 1, CUDNN_STATUS_BAD_PARAM,
              "%s: no place for results", call);
    REFUSED(conv_describe(call, d, &conv));
    std::vector<Perf> found;
    auto table = tables[int(direction)];
    for (const ConvAlgo *row = table.begin; row < table.end; row++) {
        if (!row->supports(d))
            continue;
        Perf perf = {};
        perf.algo = decltype(perf.algo)(row->algo);
        perf.memory = row->workspace_bytes(conv);
        perf.determinism = row->deterministic ? CUDNN_DETERMINISTIC : CUDNN_NON_DETERMINISTIC;
        perf.mathType = d.conv->math;
        perf.time = trial ? float(found.size() + 1) : -1;
        if (trial)
            perf.status =
                conv_launch(trial->handle, call, direction, d, row->algo, trial->pointers);
        if (perf.status != CUDNN_STATUS_SUCCESS)
            perf.time = -1;
        found.push_back(perf);
    }
    std::stable_partition(found.begin(), found.end(),
                          [](auto &perf) { return perf.status == CUDNN_STATUS_SUCCESS; });
    *returned = std::min(requested, int(found.size()));
    std::copy_n(found.begin(), *returned, results);
    return CUDNN_STATUS_SUCCESS;
}

/* Runs every algorithm on the caller's memory, as the real search does: the output and the
 * workspace are lost. */
template <typename Perf>
static cudnnStatus_t search(cudnnHandle_t handle, const char *call, Direction direction,
                            const ConvDescriptors &d, ConvPointers pointers, int requested,
                            int *returned, Perf *results)
{
    REFUSE_IF(!handle, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s: no handle", call);
    static const float one = 1, zero = 0;
    pointers.alpha = &one;
    pointers.beta = &zero;
    Trial trial = {handle, pointers};
    REFUSED(list(call, direction, d, &trial, requested, returned, results));
    return cudnn_launched(cudaStreamSynchronize(handle->stream), call);
}

static cudnnStatus_t workspace_size(const char *call, Direction direction, const ConvDescriptors &d,
                                    int algo, size_t *size)
{
    Conv conv;
    REFUSE_IF(!size, CUDNN_STATUS_BAD_PARAM, "%s: no place for the size", call);
    REFUSED(conv_describe(call, d, &conv));
    const ConvAlgo *row = conv_algo_find(direction, d, algo);
    REFUSE_IF(!row, CUDNN_STATUS_NOT_SUPPORTED, "%s: algorithm %d does not do this", call, algo);
    *size = row->workspace_bytes(conv);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t max_count(const char *call, Direction direction, int *count)
{
    REFUSE_IF(!count, CUDNN_STATUS_BAD_PARAM, "%s: no place for the count", call);
    *count = tables[int(direction)].max_count;
    return CUDNN_STATUS_SUCCESS;
}

} // namespace sim

using namespace sim;

cudnnStatus_t cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t, int *count)
{
    return max_count("cudnnGetConvolutionForwardAlgorithmMaxCount", Direction::forward, count);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithmMaxCount(cudnnHandle_t, int *count)
{
    return max_count("cudnnGetConvolutionBackwardDataAlgorithmMaxCount", Direction::data, count);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(cudnnHandle_t, int *count)
{
    return max_count("cudnnGetConvolutionBackwardFilterAlgorithmMaxCount", Direction::filter,
                     count);
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t, const cudnnTensorDescriptor_t x,
                                                     const cudnnFilterDescriptor_t w,
                                                     const cudnnConvolutionDescriptor_t conv,
                                                     const cudnnTensorDescriptor_t y,
                                                     const int requested, int *returned,
                                                     cudnnConvolutionFwdAlgoPerf_t *results)
{
    return list("cudnnGetConvolutionForwardAlgorithm_v7", Direction::forward,
                {cudnn_view(x), w, conv, cudnn_view(y)}, nullptr, requested, returned, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t conv, const cudnnTensorDescriptor_t dx, const int requested,
    int *returned, cudnnConvolutionBwdDataAlgoPerf_t *results)
{
    return list("cudnnGetConvolutionBackwardDataAlgorithm_v7", Direction::data,
                {cudnn_view(dx), w, conv, cudnn_view(dy)}, nullptr, requested, returned, results);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t conv, const cudnnFilterDescriptor_t dw, const int requested,
    int *returned, cudnnConvolutionBwdFilterAlgoPerf_t *results)
{
    return list("cudnnGetConvolutionBackwardFilterAlgorithm_v7", Direction::filter,
                {cudnn_view(x), dw, conv, cudnn_view(dy)}, nullptr, requested, returned, results);
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x_desc, const void *x,
    const cudnnFilterDescriptor_t w_desc, const void *w, const cudnnConvolutionDescriptor_t conv,
    const cudnnTensorDescriptor_t y_desc, void *y, const int requested, int *returned,
    cudnnConvolutionFwdAlgoPerf_t *results, void *workspace, size_t bytes)
{
    return search(handle, "cudnnFindConvolutionForwardAlgorithmEx", Direction::forward,
                  {cudnn_view(x_desc), w_desc, conv, cudnn_view(y_desc)},
                  {x, w, y, workspace, bytes, nullptr, nullptr}, requested, returned, results);
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w_desc, const void *w,
    const cudnnTensorDescriptor_t dy_desc, const void *dy, const cudnnConvolutionDescriptor_t conv,
    const cudnnTensorDescriptor_t dx_desc, void *dx, const int requested, int *returned,
    cudnnConvolutionBwdDataAlgoPerf_t *results, void *workspace, size_t bytes)
{
    return search(handle, "cudnnFindConvolutionBackwardDataAlgorithmEx", Direction::data,
                  {cudnn_view(dx_desc), w_desc, conv, cudnn_view(dy_desc)},
                  {dx, w, dy, workspace, bytes, nullptr, nullptr}, requested, returned, results);
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x_desc, const void *x,
    const cudnnTensorDescriptor_t dy_desc, const void *dy, const cudnnConvolutionDescriptor_t conv,
    const cudnnFilterDescriptor_t dw_desc, void *dw, const int requested, int *returned,
    cudnnConvolutionBwdFilterAlgoPerf_t *results, void *workspace, size_t bytes)
{
    return search(handle, "cudnnFindConvolutionBackwardFilterAlgorithmEx", Direction::filter,
                  {cudnn_view(x_desc), dw_desc, conv, cudnn_view(dy_desc)},
                  {x, dw, dy, workspace, bytes, nullptr, nullptr}, requested, returned, results);
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t,
                                                      const cudnnTensorDescriptor_t x,
                                                      const cudnnFilterDescriptor_t w,
                                                      const cudnnConvolutionDescriptor_t conv,
                                                      const cudnnTensorDescriptor_t y,
                                                      cudnnConvolutionFwdAlgo_t algo, size_t *size)
{
    return workspace_size("cudnnGetConvolutionForwardWorkspaceSize", Direction::forward,
                          {cudnn_view(x), w, conv, cudnn_view(y)}, algo, size);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t conv, const cudnnTensorDescriptor_t dx,
    cudnnConvolutionBwdDataAlgo_t algo, size_t *size)
{
    return workspace_size("cudnnGetConvolutionBackwardDataWorkspaceSize", Direction::data,
                          {cudnn_view(dx), w, conv, cudnn_view(dy)}, algo, size);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t conv, const cudnnFilterDescriptor_t dw,
    cudnnConvolutionBwdFilterAlgo_t algo, size_t *size)
{
    return workspace_size("cudnnGetConvolutionBackwardFilterWorkspaceSize", Direction::filter,
                          {cudnn_view(x), dw, conv, cudnn_view(dy)}, algo, size);
}
