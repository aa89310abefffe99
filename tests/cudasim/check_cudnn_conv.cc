/* check_cudnn_conv.cc: convolution against PyTorch's, in both layouts and types; its algorithms;
 * what is refused. */
#include <algorithm>
#include <cstring>

#include "tests/cudasim/cudnn_test.hpp"

using namespace sim;

struct Case {
    const char *name;
    std::vector<int64_t> x, w, y;
    int pad[2], stride[2], dilation[2], groups;
};

static const Case cases[] = {
    {"conv.plain", {2, 3, 6, 5}, {4, 3, 3, 3}, {2, 4, 4, 3}, {0, 0}, {1, 1}, {1, 1}, 1},
    {"conv.strided", {2, 3, 9, 8}, {4, 3, 3, 2}, {2, 4, 5, 4}, {1, 2}, {2, 3}, {1, 1}, 1},
    {"conv.dilated", {2, 2, 9, 9}, {3, 2, 3, 3}, {2, 3, 9, 7}, {2, 2}, {1, 1}, {2, 3}, 1},
    {"conv.grouped", {2, 6, 5, 5}, {4, 3, 3, 3}, {2, 4, 5, 5}, {1, 1}, {1, 1}, {1, 1}, 2},
    {"conv.pointwise", {3, 5, 4, 4}, {2, 5, 1, 1}, {3, 2, 2, 2}, {0, 0}, {2, 2}, {1, 1}, 1},
};

struct Layout {
    cudnnTensorFormat_t format;
    Type type;
    double tolerance;
};

static const Layout layouts[] = {
    {CUDNN_TENSOR_NCHW, Type::f32, 2e-6},
    {CUDNN_TENSOR_NHWC, Type::f32, 2e-6},
    {CUDNN_TENSOR_NHWC, Type::bf16, 8e-3},
};

static View view_of(const Layout &layout, const std::vector<int64_t> &dim)
{
    return layout.format == CUDNN_TENSOR_NHWC ? nhwc(layout.type, dim)
                                              : view_packed(layout.type, dim);
}

/* A case's descriptors and operands in one layout. */
struct Operands {
    Handle handle;
    ConvDescriptor conv;
    FilterDescriptor filter;
    std::string name;
    View wv;
    Tensor x, y, db;
    Buffer w;
    Operands(const Case &c, const Layout &layout, const char *y_values)
        : name(c.name), wv(view_of(layout, c.w)), x(view_of(layout, c.x), golden(name + ".x")),
          y(view_of(layout, c.y), golden(name + y_values)),
          db(view_packed(layout.type, {1, c.y[1], 1, 1})), w(wv, golden(name + ".w"))
    {
        EXPECT_OK(cudnnSetConvolution2dDescriptor(conv, c.pad[0], c.pad[1], c.stride[0],
                                                  c.stride[1], c.dilation[0], c.dilation[1],
                                                  CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
        EXPECT_OK(cudnnSetConvolutionGroupCount(conv, c.groups));
        EXPECT_OK(cudnnSetFilter4dDescriptor(filter, data_type(layout.type), layout.format,
                                             int(c.w[0]), int(c.w[1]), int(c.w[2]), int(c.w[3])));
    }
};

/* The first algorithm that is deterministic. */
template <typename Perf> static const Perf &deterministic(const Perf *results, int count)
{
    for (int i = 0; i < count; i++)
        if (results[i].determinism == CUDNN_DETERMINISTIC &&
            results[i].status == CUDNN_STATUS_SUCCESS)
            return results[i];
    ck_abort_msg("no deterministic algorithm");
    return results[0];
}

static void forward(const Case &c, const Layout &layout)
{
    Operands o(c, layout, ".dy"); /* overwritten */
    int n, k, p, q, count;
    EXPECT_OK(
        cudnnGetConvolution2dForwardOutputDim(o.conv, o.x.descriptor, o.filter, &n, &k, &p, &q));
    ck_assert(n == c.y[0] && k == c.y[1] && p == c.y[2] && q == c.y[3]);
    cudnnConvolutionFwdAlgoPerf_t results[8];
    Buffer workspace(view_packed(Type::u8, {1 << 20}));
    EXPECT_OK(cudnnFindConvolutionForwardAlgorithmEx(o.handle, o.x.descriptor, o.x.data(), o.filter,
                                                     o.w.get(), o.conv, o.y.descriptor, o.y.data(),
                                                     8, &count, results, workspace.get(), 1 << 20));
    Tensor bias(view_packed(layout.type, {1, c.y[1], 1, 1}), golden(o.name + ".b"));
    for (int i = 0; i < count; i++) {
        EXPECT_OK(results[i].status);
        EXPECT_OK(cudnnConvolutionForward(o.handle, &one, o.x.descriptor, o.x.data(), o.filter,
                                          o.w.get(), o.conv, results[i].algo, workspace.get(),
                                          results[i].memory, &zero, o.y.descriptor, o.y.data()));
        EXPECT_OK(cudnnAddTensor(o.handle, &one, bias.descriptor, bias.data(), &one, o.y.descriptor,
                                 o.y.data()));
        expect_near(o.y.buffer.read(), golden(o.name + ".y"), c.name, layout.tolerance * 2);
    }
}

static void backward(const Case &c, const Layout &layout)
{
    Operands o(c, layout, ".dy");
    int count;
    Buffer workspace(view_packed(Type::u8, {1 << 20})), dw(o.wv);
    Tensor dx(view_of(layout, c.x));
    cudnnConvolutionBwdDataAlgoPerf_t data[8];
    EXPECT_OK(cudnnGetConvolutionBackwardDataAlgorithm_v7(o.handle, o.filter, o.y.descriptor,
                                                          o.conv, dx.descriptor, 8, &count, data));
    EXPECT_OK(cudnnConvolutionBackwardData(o.handle, &one, o.filter, o.w.get(), o.y.descriptor,
                                           o.y.data(), o.conv, deterministic(data, count).algo,
                                           workspace.get(), 1 << 20, &zero, dx.descriptor,
                                           dx.data()));
    expect_near(dx.buffer.read(), golden(o.name + ".dx"), "dx", layout.tolerance);
    cudnnConvolutionBwdFilterAlgoPerf_t filter[8];
    EXPECT_OK(cudnnGetConvolutionBackwardFilterAlgorithm_v7(
        o.handle, o.x.descriptor, o.y.descriptor, o.conv, o.filter, 8, &count, filter));
    EXPECT_OK(cudnnConvolutionBackwardFilter(
        o.handle, &one, o.x.descriptor, o.x.data(), o.y.descriptor, o.y.data(), o.conv,
        deterministic(filter, count).algo, workspace.get(), 1 << 20, &zero, o.filter, dw.get()));
    expect_near(dw.read(), golden(o.name + ".dw"), "dw", layout.tolerance);
    EXPECT_OK(cudnnConvolutionBackwardBias(o.handle, &one, o.y.descriptor, o.y.data(), &zero,
                                           o.db.descriptor, o.db.data()));
    expect_near(o.db.buffer.read(), golden(o.name + ".db"), "db", layout.tolerance);
}

START_TEST(forward_is_pytorchs)
{
    for (auto &c : cases)
        for (auto &layout : layouts)
            forward(c, layout);
}
END_TEST

START_TEST(backward_is_pytorchs)
{
    for (auto &c : cases)
        for (auto &layout : layouts)
            backward(c, layout);
}
END_TEST

START_TEST(gradients_are_added_with_beta)
{
    Operands o(cases[0], layouts[0], ".dy");
    Buffer dw(o.wv, golden("conv.plain.dw")), workspace(view_packed(Type::u8, {1 << 20}));
    EXPECT_OK(cudnnConvolutionBackwardFilter(
        o.handle, &one, o.x.descriptor, o.x.data(), o.y.descriptor, o.y.data(), o.conv,
        CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, workspace.get(), 1 << 20, &one, o.filter, dw.get()));
    doubles wanted = golden("conv.plain.dw");
    for (double &value : wanted)
        value *= 2;
    expect_near(dw.read(), wanted, "dw twice");
}
END_TEST

START_TEST(fused_with_bias_and_relu)
{
    Operands o(cases[0], layouts[0], ".dy");
    Tensor bias(floats({1, 4, 1, 1}), golden("conv.plain.b")),
        z(floats(cases[0].y), golden("conv.plain.dy"));
    ActivationDescriptor relu;
    EXPECT_OK(cudnnSetActivationDescriptor(relu, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0));
    EXPECT_OK(cudnnConvolutionBiasActivationForward(
        o.handle, &one, o.x.descriptor, o.x.data(), o.filter, o.w.get(), o.conv,
        CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0, &one, z.descriptor, z.data(),
        bias.descriptor, bias.data(), relu, o.y.descriptor, o.y.data()));
    doubles wanted = golden("conv.plain.y");
    for (size_t i = 0; i < wanted.size(); i++)
        wanted[i] = std::max(0.0, wanted[i] + golden("conv.plain.dy")[i]);
    expect_near(o.y.buffer.read(), wanted, "y");
}
END_TEST

/* An algorithm that says that it is not deterministic is not, one that says so is. */
START_TEST(determinism_is_as_told)
{
    Operands o(cases[0], layouts[0], ".dy");
    Buffer workspace(view_packed(Type::u8, {1 << 20}));
    auto gradient = [&](cudnnConvolutionBwdFilterAlgo_t algo) {
        Buffer dw(o.wv);
        EXPECT_OK(cudnnConvolutionBackwardFilter(
            o.handle, &one, o.x.descriptor, o.x.data(), o.y.descriptor, o.y.data(), o.conv, algo,
            workspace.get(), 1 << 20, &zero, o.filter, dw.get()));
        return dw.read();
    };
    ck_assert(gradient(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1) ==
              gradient(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1));
    ck_assert(gradient(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0) !=
              gradient(CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0));
}
END_TEST

START_TEST(overlap_is_reported)
{
    Operands o(cases[0], layouts[0], ".dy");
    char *x = static_cast<char *>(o.x.data());
    EXPECT_OK(cudnnConvolutionForward(o.handle, &one, o.x.descriptor, x, o.filter, o.w.get(),
                                      o.conv, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, nullptr, 0,
                                      &zero, o.y.descriptor, x + 64));
    expect_finding("overlap");
}
END_TEST

START_TEST(convolution_refuses)
{
    Operands o(cases[0], layouts[0], ".dy");
    Buffer workspace(view_packed(Type::u8, {1 << 20}));
    Tensor small(floats({2, 4, 4, 2})), low(view_packed(Type::bf16, cases[0].y));
    size_t bytes;
    auto run = [&](const void *x, cudnnConvolutionFwdAlgo_t algo, size_t workspace_bytes,
                   const Tensor &y) {
        return cudnnConvolutionForward(o.handle, &one, o.x.descriptor, x, o.filter, o.w.get(),
                                       o.conv, algo, workspace.get(), workspace_bytes, &zero,
                                       y.descriptor, y.data());
    };
    auto gemm = CUDNN_CONVOLUTION_FWD_ALGO_GEMM, plain = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM;
    EXPECT_OK(cudnnGetConvolutionForwardWorkspaceSize(o.handle, o.x.descriptor, o.filter, o.conv,
                                                      o.y.descriptor, gemm, &bytes));
    EXPECT_OK(run(o.x.data(), gemm, bytes, o.y));
    EXPECT(run(o.x.data(), gemm, bytes - 1, o.y), CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
    EXPECT(run(nullptr, plain, 0, o.y), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
    EXPECT(run((char *)o.x.data() + 2, plain, 0, o.y), CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
    EXPECT(run(o.x.data(), plain, 0, small), CUDNN_STATUS_BAD_PARAM);
    EXPECT(run(o.x.data(), plain, 0, low), CUDNN_STATUS_BAD_PARAM);
    EXPECT(run(o.x.data(), CUDNN_CONVOLUTION_FWD_ALGO_FFT, 1 << 20, o.y),
           CUDNN_STATUS_NOT_SUPPORTED);
    char sentence[256];
    cudnnGetLastErrorString(sentence, sizeof sentence);
    ck_assert_ptr_nonnull(strstr(sentence, "cudnnConvolutionForward"));
    EXPECT_OK(
        cudnnSetFilter4dDescriptor(o.filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, 4, 3, 3, 3));
    EXPECT(run(o.x.data(), plain, 0, o.y), CUDNN_STATUS_NOT_SUPPORTED_LAYOUT);
}
END_TEST

int main()
{
    return run_suite("cudnn_conv",
                     {forward_is_pytorchs, backward_is_pytorchs, gradients_are_added_with_beta,
                      fused_with_bias_and_relu, determinism_is_as_told, overlap_is_reported,
                      convolution_refuses});
}
