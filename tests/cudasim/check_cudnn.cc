/* check_cudnn.cc: BatchNorm, pooling, softmax, activations and tensor operations against PyTorch's;
 * what is refused. */
#include <cmath>

#include "tests/cudasim/cudnn_test.hpp"

using namespace sim;

static const Type both_types[] = {Type::f32, Type::bf16};

static double tolerance_of(Type type)
{
    return type == Type::bf16 ? 8e-3 : 2e-6;
}

START_TEST(norm_trains)
{
    for (Type type : both_types) {
        Handle handle;
        View shape = nhwc(type, {3, 4, 2, 5}), channel = floats({1, 4, 1, 1});
        Tensor x(shape, golden("norm.x")), y(shape), scale(channel, golden("norm.scale"));
        Buffer bias(channel, golden("norm.bias")), mean(channel, golden("norm.mean"));
        Buffer variance(channel, golden("norm.variance")), saved_mean(channel),
            saved_inverse(channel);
        EXPECT_OK(cudnnBatchNormalizationForwardTraining(
            handle, CUDNN_BATCHNORM_SPATIAL_PERSISTENT, &one, &zero, x.descriptor, x.data(),
            y.descriptor, y.data(), scale.descriptor, scale.data(), bias.get(), 0.25, mean.get(),
            variance.get(), 1e-3, saved_mean.get(), saved_inverse.get()));
        expect_near(y.buffer.read(), golden("norm.y"), "y", tolerance_of(type));
        expect_near(mean.read(), golden("norm.running_mean"), "the running mean");
        expect_near(variance.read(), golden("norm.running_variance"), "the running variance");
        Tensor dy(shape, golden("norm.dy")), dx(shape);
        Buffer dscale(channel), dbias(channel);
        EXPECT_OK(cudnnBatchNormalizationBackward(
            handle, CUDNN_BATCHNORM_SPATIAL_PERSISTENT, &one, &zero, &one, &zero, x.descriptor,
            x.data(), dy.descriptor, dy.data(), dx.descriptor, dx.data(), scale.descriptor,
            scale.data(), dscale.get(), dbias.get(), 1e-3, saved_mean.get(), saved_inverse.get()));
        expect_near(dx.buffer.read(), golden("norm.dx"), "dx", tolerance_of(type));
        expect_near(dscale.read(), golden("norm.dscale"), "dscale");
        expect_near(dbias.read(), golden("norm.dbias"), "dbias");
    }
}
END_TEST

START_TEST(norm_infers)
{
    Handle handle;
    View shape = floats({3, 4, 2, 5}), channel = floats({1, 4, 1, 1});
    Tensor x(shape, golden("norm.x")), y(shape), scale(channel, golden("norm.scale"));
    Buffer bias(channel, golden("norm.bias")), mean(channel, golden("norm.mean"));
    Buffer variance(channel, golden("norm.variance"));
    EXPECT_OK(cudnnBatchNormalizationForwardInference(
        handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, x.descriptor, x.data(), y.descriptor,
        y.data(), scale.descriptor, scale.data(), bias.get(), mean.get(), variance.get(), 1e-3));
    expect_near(y.buffer.read(), golden("norm.eval"), "y");
}
END_TEST

START_TEST(norm_refuses)
{
    Handle handle;
    View shape = floats({3, 4, 2, 5}), channel = floats({1, 4, 1, 1});
    Tensor x(shape, golden("norm.x")), y(shape), scale(channel, golden("norm.scale"));
    Tensor wrong(floats({1, 5, 1, 1})), low(view_packed(Type::bf16, {1, 4, 1, 1}));
    auto run = [&](const Tensor &param, void *mean, void *variance, double epsilon) {
        return cudnnBatchNormalizationForwardTraining(
            handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, x.descriptor, x.data(), y.descriptor,
            y.data(), param.descriptor, param.data(), scale.data(), 1, mean, variance, epsilon,
            nullptr, nullptr);
    };
    EXPECT(run(wrong, nullptr, nullptr, 1e-3), CUDNN_STATUS_BAD_PARAM);
    EXPECT(run(low, nullptr, nullptr, 1e-3), CUDNN_STATUS_BAD_PARAM);
    EXPECT(run(scale, scale.data(), nullptr, 1e-3), CUDNN_STATUS_BAD_PARAM);
    EXPECT(run(scale, nullptr, nullptr, -1), CUDNN_STATUS_BAD_PARAM);
    EXPECT_OK(run(scale, nullptr, nullptr, 1e-3));
}
END_TEST

START_TEST(pools_are_pytorchs)
{
    static const struct {
        cudnnPoolingMode_t mode;
        const char *name;
    } rows[] = {
        {CUDNN_POOLING_MAX_DETERMINISTIC, "pool.max"},
        {CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, "pool.average"},
        {CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, "pool.average_inside"},
    };
    for (auto &row : rows)
        for (Type type : both_types) {
            Handle handle;
            PoolDescriptor pool;
            std::string name = row.name;
            Tensor x(nhwc(type, {2, 3, 6, 5}), golden(name + ".x")), y(nhwc(type, {2, 3, 3, 6}));
            Tensor dy(nhwc(type, {2, 3, 3, 6}), golden(name + ".dy")), dx(nhwc(type, {2, 3, 6, 5}));
            EXPECT_OK(
                cudnnSetPooling2dDescriptor(pool, row.mode, CUDNN_PROPAGATE_NAN, 3, 2, 1, 1, 2, 1));
            EXPECT_OK(cudnnPoolingForward(handle, pool, &one, x.descriptor, x.data(), &zero,
                                          y.descriptor, y.data()));
            expect_near(y.buffer.read(), golden(name + ".y"), row.name, tolerance_of(type));
            EXPECT_OK(cudnnPoolingBackward(handle, pool, &one, y.descriptor, y.data(),
                                           dy.descriptor, dy.data(), x.descriptor, x.data(), &zero,
                                           dx.descriptor, dx.data()));
            expect_near(dx.buffer.read(), golden(name + ".dx"), row.name, tolerance_of(type));
        }
}
END_TEST

START_TEST(pooling_refuses)
{
    Handle handle;
    PoolDescriptor pool;
    Tensor x(floats({2, 3, 6, 5}), golden("pool.max.x")), wrong(floats({2, 3, 3, 5}));
    EXPECT_OK(cudnnSetPooling2dDescriptor(pool, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 3, 2, 1, 1,
                                          2, 1));
    EXPECT(cudnnPoolingForward(handle, pool, &one, x.descriptor, x.data(), &zero, wrong.descriptor,
                               wrong.data()),
           CUDNN_STATUS_BAD_PARAM);
}
END_TEST

START_TEST(softmax_is_pytorchs)
{
    static const struct {
        cudnnSoftmaxAlgorithm_t algo;
        const char *name;
    } rows[] = {
        {CUDNN_SOFTMAX_FAST, "softmax"},
        {CUDNN_SOFTMAX_ACCURATE, "softmax"},
        {CUDNN_SOFTMAX_LOG, "log_softmax"},
    };
    for (auto &row : rows) {
        Handle handle;
        std::string name = row.name;
        View shape = floats({2, 5, 3, 2});
        Tensor x(shape, golden(name + ".x")), y(shape), dy(shape, golden(name + ".dy")), dx(shape);
        EXPECT_OK(cudnnSoftmaxForward(handle, row.algo, CUDNN_SOFTMAX_MODE_CHANNEL, &one,
                                      x.descriptor, x.data(), &zero, y.descriptor, y.data()));
        expect_near(y.buffer.read(), golden(name + ".y"), row.name);
        EXPECT_OK(cudnnSoftmaxBackward(handle, row.algo, CUDNN_SOFTMAX_MODE_CHANNEL, &one,
                                       y.descriptor, y.data(), dy.descriptor, dy.data(), &zero,
                                       dx.descriptor, dx.data()));
        expect_near(dx.buffer.read(), golden(name + ".dx"), row.name, 1e-5);
    }
}
END_TEST

/* The fast form takes no maximum away: a float overflows at 89. */
START_TEST(fast_softmax_overflows)
{
    Handle handle;
    View shape = floats({1, 2, 1, 1});
    Tensor x(shape, {100, 0}), y(shape);
    EXPECT_OK(cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_INSTANCE, &one,
                                  x.descriptor, x.data(), &zero, y.descriptor, y.data()));
    expect_near(y.buffer.read(), {1, 0}, "accurate");
    EXPECT_OK(cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_MODE_INSTANCE, &one,
                                  x.descriptor, x.data(), &zero, y.descriptor, y.data()));
    ck_assert(std::isnan(y.buffer.read()[0]));
}
END_TEST

START_TEST(activations_are_pytorchs)
{
    static const struct {
        cudnnActivationMode_t mode;
        double coef;
        const char *name;
    } rows[] = {
        {CUDNN_ACTIVATION_SIGMOID, 0, "sigmoid"},
        {CUDNN_ACTIVATION_RELU, 0, "relu"},
        {CUDNN_ACTIVATION_TANH, 0, "tanh"},
        {CUDNN_ACTIVATION_CLIPPED_RELU, 0.75, "clipped_relu"},
        {CUDNN_ACTIVATION_ELU, 0.75, "elu"},
        {CUDNN_ACTIVATION_SWISH, 0, "swish"},
    };
    for (auto &row : rows) {
        Handle handle;
        ActivationDescriptor activation;
        std::string name = row.name;
        View shape = floats({2, 5, 3, 2});
        Tensor x(shape, golden(name + ".x")), y(shape), dy(shape, golden(name + ".dy")), dx(shape);
        EXPECT_OK(
            cudnnSetActivationDescriptor(activation, row.mode, CUDNN_PROPAGATE_NAN, row.coef));
        EXPECT_OK(cudnnActivationForward(handle, activation, &one, x.descriptor, x.data(), &zero,
                                         y.descriptor, y.data()));
        expect_near(y.buffer.read(), golden(name + ".y"), row.name);
        EXPECT_OK(cudnnActivationBackward(handle, activation, &one, y.descriptor, y.data(),
                                          dy.descriptor, dy.data(), x.descriptor, x.data(), &zero,
                                          dx.descriptor, dx.data()));
        expect_near(dx.buffer.read(), golden(name + ".dx"), row.name, 1e-5);
    }
}
END_TEST

START_TEST(tensors_are_joined)
{
    Handle handle;
    OpDescriptor op;
    Tensor a(floats({1, 2, 1, 3}), {1, 2, 3, 4, 5, 6}), b(floats({1, 2, 1, 1}), {10, 20});
    Tensor c(floats({1, 2, 1, 3}), {1, 1, 1, 1, 1, 1});
    EXPECT_OK(
        cudnnSetOpTensorDescriptor(op, CUDNN_OP_TENSOR_MUL, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN));
    EXPECT_OK(cudnnOpTensor(handle, op, &one, a.descriptor, a.data(), &one, b.descriptor, b.data(),
                            &one, c.descriptor, c.data()));
    expect_near(c.buffer.read(), {11, 21, 31, 81, 101, 121}, "a b + c");
    const float three = 3;
    EXPECT_OK(cudnnScaleTensor(handle, c.descriptor, c.data(), &three));
    expect_near(c.buffer.read(), {33, 63, 93, 243, 303, 363}, "scaled");
    EXPECT_OK(cudnnSetTensor(handle, c.descriptor, c.data(), &three));
    expect_near(c.buffer.read(), {3, 3, 3, 3, 3, 3}, "set");
    EXPECT(cudnnOpTensor(handle, op, &one, b.descriptor, b.data(), &one, a.descriptor, a.data(),
                         &one, c.descriptor, c.data()),
           CUDNN_STATUS_BAD_PARAM);
}
END_TEST

START_TEST(layouts_are_changed)
{
    Handle handle;
    doubles values(24);
    for (size_t i = 0; i < values.size(); i++)
        values[i] = double(i);
    Tensor planes(floats({2, 3, 2, 2}), values), pixels(nhwc(Type::f32, {2, 3, 2, 2}));
    EXPECT_OK(cudnnTransformTensor(handle, &one, planes.descriptor, planes.data(), &zero,
                                   pixels.descriptor, pixels.data()));
    expect_near(pixels.buffer.read(), values, "pixels");
    float raw[3]; /* the channels of the first pixel */
    EXPECT_OK(cudaMemcpy(raw, pixels.data(), sizeof raw, cudaMemcpyDeviceToHost));
    ck_assert(raw[0] == 0 && raw[1] == 4 && raw[2] == 8);
}
END_TEST

START_TEST(tensors_are_reduced)
{
    Handle handle;
    ReduceDescriptor reduce;
    Tensor a(floats({2, 2, 1, 2}), {1, 2, 3, 4, 5, 6, 7, 8}), c(floats({1, 2, 1, 1}));
    Buffer workspace(view_packed(Type::u8, {4096}));
    size_t bytes;
    EXPECT_OK(cudnnSetReduceTensorDescriptor(reduce, CUDNN_REDUCE_TENSOR_ADD, CUDNN_DATA_FLOAT,
                                             CUDNN_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_NO_INDICES,
                                             CUDNN_32BIT_INDICES));
    EXPECT_OK(cudnnGetReductionWorkspaceSize(handle, reduce, a.descriptor, c.descriptor, &bytes));
    EXPECT_OK(cudnnReduceTensor(handle, reduce, nullptr, 0, workspace.get(), bytes, &one,
                                a.descriptor, a.data(), &zero, c.descriptor, c.data()));
    expect_near(c.buffer.read(), {14, 22}, "sums");
    EXPECT(cudnnReduceTensor(handle, reduce, nullptr, 0, workspace.get(), bytes - 1, &one,
                             a.descriptor, a.data(), &zero, c.descriptor, c.data()),
           CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
}
END_TEST

int main()
{
    return run_suite("cudnn",
                     {norm_trains, norm_infers, norm_refuses, pools_are_pytorchs, pooling_refuses,
                      softmax_is_pytorchs, fast_softmax_overflows, activations_are_pytorchs,
                      tensors_are_joined, layouts_are_changed, tensors_are_reduced});
}
