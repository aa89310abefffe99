/* cudnn_test.hpp: short-lived descriptors for the tests of cuDNN. */
#ifndef TESTS_CUDASIM_CUDNN_TEST_HPP
#define TESTS_CUDASIM_CUDNN_TEST_HPP

#include <cudnn.h>

#include "tests/cudasim/library_test.hpp"

namespace sim
{

static const float one = 1, zero = 0;

/* A descriptor of some kind that goes with its scope. */
template <typename T, cudnnStatus_t (*create)(T *), cudnnStatus_t (*destroy)(T)> struct Descriptor {
    T get;
    Descriptor()
    {
        EXPECT_OK(create(&get));
    }
    Descriptor(const Descriptor &) = delete;
    ~Descriptor()
    {
        destroy(get);
    }
    operator T() const
    {
        return get;
    }
};

using Handle = Descriptor<cudnnHandle_t, cudnnCreate, cudnnDestroy>;
using FilterDescriptor =
    Descriptor<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor>;
using ConvDescriptor = Descriptor<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor,
                                  cudnnDestroyConvolutionDescriptor>;
using PoolDescriptor = Descriptor<cudnnPoolingDescriptor_t, cudnnCreatePoolingDescriptor,
                                  cudnnDestroyPoolingDescriptor>;
using ActivationDescriptor =
    Descriptor<cudnnActivationDescriptor_t, cudnnCreateActivationDescriptor,
               cudnnDestroyActivationDescriptor>;
using OpDescriptor = Descriptor<cudnnOpTensorDescriptor_t, cudnnCreateOpTensorDescriptor,
                                cudnnDestroyOpTensorDescriptor>;
using ReduceDescriptor =
    Descriptor<cudnnReduceTensorDescriptor_t, cudnnCreateReduceTensorDescriptor,
               cudnnDestroyReduceTensorDescriptor>;
using TensorDescriptor =
    Descriptor<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;

inline cudnnDataType_t data_type(Type type)
{
    return type == Type::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

inline void set_descriptor(cudnnTensorDescriptor_t descriptor, const View &view)
{
    int dim[view_rank_max], stride[view_rank_max];
    for (int i = 0; i < view.rank; i++)
        dim[i] = int(view.dim[i]), stride[i] = int(view.stride[i]);
    EXPECT_OK(cudnnSetTensorNdDescriptor(descriptor, data_type(view.type), view.rank, dim, stride));
}

/* A tensor: descriptor and memory. */
struct Tensor {
    TensorDescriptor descriptor;
    Buffer buffer;
    explicit Tensor(const View &view) : buffer(view)
    {
        set_descriptor(descriptor, view);
    }
    Tensor(const View &view, const doubles &values) : buffer(view, values)
    {
        set_descriptor(descriptor, view);
    }
    void *data() const
    {
        return buffer.get();
    }
};

/* (n, c, h, w) with the channels innermost. */
inline View nhwc(Type type, const std::vector<int64_t> &dim)
{
    View view = view_packed(type, dim);
    view.stride[0] = dim[1] * dim[2] * dim[3];
    view.stride[1] = 1;
    view.stride[2] = dim[3] * dim[1];
    view.stride[3] = dim[1];
    return view;
}

} // namespace sim

#endif
