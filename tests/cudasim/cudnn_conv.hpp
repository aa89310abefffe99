/* cudnn_conv.hpp: a convolution as its two files see it. */
#ifndef TESTS_CUDASIM_CUDNN_CONV_HPP
#define TESTS_CUDASIM_CUDNN_CONV_HPP

#include "tests/cudasim/cudnn.hpp"
#include "tests/cudasim/loops.hpp"

struct cudnnConvolutionStruct {
    int pad[2], stride[2], dilation[2], groups; /* stride 0: not set */
    cudnnConvolutionMode_t mode;
    cudnnDataType_t compute;
    cudnnMathType_t math;
};

namespace sim
{

enum class Direction { forward, data, filter };

/* The descriptors of one convolution; y is its output, whichever of the three is computed. */
struct ConvDescriptors {
    const View *x;
    const cudnnFilterStruct *w;
    const cudnnConvolutionStruct *conv;
    const View *y;
};

/* What the descriptors describe together; refuses what does not fit. */
cudnnStatus_t conv_describe(const char *call, const ConvDescriptors &descriptors, Conv *ret_conv);

/* One algorithm of a direction, as the library's tables list it. */
struct ConvAlgo {
    int algo; /* of the direction's own enumeration */
    bool deterministic;
    bool (*supports)(const ConvDescriptors &descriptors);
    size_t (*workspace_bytes)(const Conv &conv);
};

/* NULL: the library has none of that number, or not for these descriptors. */
const ConvAlgo *conv_algo_find(Direction direction, const ConvDescriptors &descriptors, int algo);

struct ConvPointers {
    const void *x, *w, *y; /* one of them is written */
    void *workspace;
    size_t workspace_bytes;
    const void *alpha, *beta;
};

/* The common way of the three directions: checks everything, puts the work on the handle's stream.
 */
cudnnStatus_t conv_launch(cudnnHandle_t handle, const char *call, Direction direction,
                          const ConvDescriptors &descriptors, int algo,
                          const ConvPointers &pointers);

} // namespace sim

#endif
