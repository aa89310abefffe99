/* cudnn_tensor.cc: descriptors of tensors and filters. */
#include <cinttypes>
#include <climits>
#include <string>

#include "tests/cudasim/cudnn.hpp"

namespace sim
{

static const struct {
    cudnnDataType_t data_type;
    Type type;
} data_types[] = {
    {CUDNN_DATA_FLOAT, Type::f32},     {CUDNN_DATA_DOUBLE, Type::f64},
    {CUDNN_DATA_BFLOAT16, Type::bf16}, {CUDNN_DATA_INT8, Type::i8},
    {CUDNN_DATA_UINT8, Type::u8},      {CUDNN_DATA_INT32, Type::i32},
    {CUDNN_DATA_INT64, Type::i64},
};

Type cudnn_type(cudnnDataType_t data_type)
{
    for (auto &row : data_types)
        if (row.data_type == data_type)
            return row.type;
    return Type::none;
}

cudnnDataType_t cudnn_data_type(Type type)
{
    for (auto &row : data_types)
        if (row.type == type)
            return row.data_type;
    return CUDNN_DATA_FLOAT; /* a descriptor that was never set */
}

double cudnn_scalar(const View &view, const void *factor)
{
    return number_load(view.type == Type::f64 ? Type::f64 : Type::f32, factor, 0);
}

View cudnn_packed(cudnnTensorFormat_t format, Type type, const std::vector<int64_t> &dim)
{
    View view = view_packed(type, dim);
    if (format == CUDNN_TENSOR_NCHW)
        return view;
    int64_t stride = view.dim[1]; /* channels are innermost */
    for (int i = view.rank - 1; i > 1; i--) {
        view.stride[i] = stride;
        stride *= view.dim[i];
    }
    view.stride[0] = stride;
    view.stride[1] = 1;
    return view;
}

bool cudnn_is_nhwc(const View &view)
{
    std::vector<int64_t> dim(view.dim, view.dim + view.rank);
    View packed = cudnn_packed(CUDNN_TENSOR_NHWC, view.type, dim);
    for (int i = 0; i < view.rank; i++)
        if (view.dim[i] > 1 && view.stride[i] != packed.stride[i])
            return false;
    return true;
}

std::string cudnn_dims(const View &view)
{
    std::string text = "[";
    for (int i = 0; i < view.rank; i++)
        text += (i ? ", " : "") + std::to_string(view.dim[i]);
    return text + "] " + (view.type == Type::none ? "?" : type_name(view.type));
}

/* Above this the real library has no index. */
static bool too_large(const View &view)
{
    double count = 1;
    for (int i = 0; i < view.rank; i++)
        count *= double(view.dim[i]);
    return count > double(INT_MAX);
}

/* What every setter of a tensor refuses; writes the descriptor only if all is well. */
static cudnnStatus_t set_view(cudnnTensorDescriptor_t descriptor, const View &view)
{
    REFUSE_IF(!descriptor, CUDNN_STATUS_BAD_PARAM, "no tensor descriptor");
    REFUSE_IF(view.type == Type::none, CUDNN_STATUS_BAD_PARAM,
              "no such data type (or not simulated)");
    for (int i = 0; i < view.rank; i++) {
        REFUSE_IF(view.dim[i] <= 0, CUDNN_STATUS_BAD_PARAM, "dimension %d is %" PRId64, i,
                  view.dim[i]);
        REFUSE_IF(view.stride[i] == 0, CUDNN_STATUS_BAD_PARAM, "stride %d is 0", i);
    }
    REFUSE_IF(too_large(view), CUDNN_STATUS_NOT_SUPPORTED, "more than 2^31 - 1 elements");
    descriptor->view = view;
    return CUDNN_STATUS_SUCCESS;
}

static bool known_format(cudnnTensorFormat_t format)
{
    return format == CUDNN_TENSOR_NCHW || format == CUDNN_TENSOR_NHWC;
}

} // namespace sim

using namespace sim;

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t *descriptor)
{
    REFUSE_IF(!descriptor, CUDNN_STATUS_BAD_PARAM, "cudnnCreateTensorDescriptor: NULL");
    *descriptor = new cudnnTensorStruct{};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t descriptor)
{
    delete descriptor;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t descriptor,
                                         cudnnTensorFormat_t format, cudnnDataType_t type, int n,
                                         int c, int h, int w)
{
    REFUSE_IF(!known_format(format), CUDNN_STATUS_BAD_PARAM, "no such format (or not simulated)");
    return set_view(descriptor, cudnn_packed(format, cudnn_type(type), {n, c, h, w}));
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t descriptor, cudnnDataType_t type,
                                           int n, int c, int h, int w, int n_stride, int c_stride,
                                           int h_stride, int w_stride)
{
    const int dim[] = {n, c, h, w}, stride[] = {n_stride, c_stride, h_stride, w_stride};
    return cudnnSetTensorNdDescriptor(descriptor, type, 4, dim, stride);
}

cudnnStatus_t cudnnGetTensor4dDescriptor(const cudnnTensorDescriptor_t descriptor,
                                         cudnnDataType_t *type, int *n, int *c, int *h, int *w,
                                         int *n_stride, int *c_stride, int *h_stride, int *w_stride)
{
    int *const dim[] = {n, c, h, w}, *const stride[] = {n_stride, c_stride, h_stride, w_stride};
    REFUSE_IF(!descriptor || !type, CUDNN_STATUS_BAD_PARAM, "cudnnGetTensor4dDescriptor: NULL");
    *type = cudnn_data_type(descriptor->view.type);
    for (int i = 0; i < 4; i++) {
        *dim[i] = int(descriptor->view.dim[i]);
        *stride[i] = int(descriptor->view.stride[i]);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t descriptor, cudnnDataType_t type,
                                         int rank, const int dim[], const int stride[])
{
    REFUSE_IF(rank < 2, CUDNN_STATUS_BAD_PARAM, "%d dimensions, fewer than 2", rank);
    REFUSE_IF(rank > CUDNN_DIM_MAX, CUDNN_STATUS_NOT_SUPPORTED, "%d dimensions", rank);
    REFUSE_IF(!dim || !stride, CUDNN_STATUS_BAD_PARAM, "cudnnSetTensorNdDescriptor: NULL");
    View view;
    view.type = cudnn_type(type);
    view.rank = rank;
    for (int i = 0; i < rank; i++)
        view.dim[i] = dim[i], view.stride[i] = stride[i];
    return set_view(descriptor, view);
}

cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t descriptor,
                                           cudnnTensorFormat_t format, cudnnDataType_t type,
                                           int rank, const int dim[])
{
    REFUSE_IF(rank < 2, CUDNN_STATUS_BAD_PARAM, "%d dimensions, fewer than 2", rank);
    REFUSE_IF(rank > CUDNN_DIM_MAX, CUDNN_STATUS_NOT_SUPPORTED, "%d dimensions", rank);
    REFUSE_IF(!known_format(format), CUDNN_STATUS_BAD_PARAM, "no such format (or not simulated)");
    return set_view(descriptor, cudnn_packed(format, cudnn_type(type), {dim, dim + rank}));
}

cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t descriptor, int requested,
                                         cudnnDataType_t *type, int *rank, int dim[], int stride[])
{
    REFUSE_IF(!descriptor || !type || !rank, CUDNN_STATUS_BAD_PARAM,
              "cudnnGetTensorNdDescriptor: NULL");
    *type = cudnn_data_type(descriptor->view.type);
    *rank = descriptor->view.rank;
    for (int i = 0; i < requested && i < *rank; i++) {
        dim[i] = int(descriptor->view.dim[i]);
        stride[i] = int(descriptor->view.stride[i]);
    }
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetTensorSizeInBytes(const cudnnTensorDescriptor_t descriptor, size_t *size)
{
    REFUSE_IF(!descriptor || !size, CUDNN_STATUS_BAD_PARAM, "cudnnGetTensorSizeInBytes: NULL");
    *size = descriptor->view.rank == 0 ? 0 : view_bytes(descriptor->view);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t *descriptor)
{
    REFUSE_IF(!descriptor, CUDNN_STATUS_BAD_PARAM, "cudnnCreateFilterDescriptor: NULL");
    *descriptor = new cudnnFilterStruct{};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t descriptor)
{
    delete descriptor;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t descriptor, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int rank, const int dim[])
{
    REFUSE_IF(rank < 3, CUDNN_STATUS_BAD_PARAM, "a filter of %d dimensions", rank);
    REFUSE_IF(rank > CUDNN_DIM_MAX, CUDNN_STATUS_NOT_SUPPORTED, "a filter of %d dimensions", rank);
    REFUSE_IF(!descriptor || !known_format(format), CUDNN_STATUS_BAD_PARAM,
              "no filter descriptor, or no such format (or not simulated)");
    cudnnTensorStruct tensor;
    cudnnStatus_t status =
        set_view(&tensor, cudnn_packed(format, cudnn_type(type), {dim, dim + rank}));
    if (status != CUDNN_STATUS_SUCCESS)
        return status;
    *descriptor = {tensor.view, format};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t descriptor, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w)
{
    const int dim[] = {k, c, h, w};
    return cudnnSetFilterNdDescriptor(descriptor, type, format, 4, dim);
}

cudnnStatus_t cudnnGetFilterSizeInBytes(const cudnnFilterDescriptor_t descriptor, size_t *size)
{
    REFUSE_IF(!descriptor || !size, CUDNN_STATUS_BAD_PARAM, "cudnnGetFilterSizeInBytes: NULL");
    *size = view_bytes(descriptor->view);
    return CUDNN_STATUS_SUCCESS;
}
