/* cudnn_pointwise.cc: what works element by element: sums and products of tensors, copies between
 * layouts, fills, reductions, activations. */
#include <algorithm>
#include <cmath>

#include "tests/cudasim/cudnn.hpp"

struct cudnnOpTensorStruct {
    cudnnOpTensorOp_t op;
};

struct cudnnReduceTensorStruct {
    cudnnReduceTensorOp_t op;
    cudnnReduceTensorIndices_t indices;
};

namespace sim
{

/* `view` repeated along the dimensions where it has one element and `whole` more. */
static View broadcast(const View &view, const View &whole)
{
    View wide = view;
    for (int i = 0; i < view.rank; i++)
        if (view.dim[i] == 1)
            wide.dim[i] = whole.dim[i], wide.stride[i] = 0;
    return wide;
}

static bool broadcasts(const View &view, const View &whole)
{
    return view_same_dims(broadcast(view, whole), whole);
}

/* y = alpha * f(value of a, value of b) + beta * y, where a and b may be broadcast and b absent. */
using Binary = double (*)(double a, double b);

struct Blend {
    double a, b, y; /* factors */
};

static cudnnStatus_t launch_binary(const char *call, cudnnHandle_t handle, Binary f, Blend factors,
                                   const View &a, const void *a_data, const View &b,
                                   const void *b_data, const View &y, void *y_data)
{
    View wide_a = broadcast(a, y), wide_b = broadcast(b, y);
    Launch launch(call, handle->stream);
    launch.in(a_data, a);
    launch.in(b_data, b);
    launch.out(y_data, y, factors.y != 0);
    return cudnn_launched(launch.enqueue([=](Memory memory) {
        doubles left = view_load(wide_a, memory[0]), right(left.size(), 0.0);
        if (memory[1])
            right = view_load(wide_b, memory[1]);
        for (size_t i = 0; i < left.size(); i++)
            left[i] = f(factors.a * left[i], factors.b * right[i]);
        view_store(y, memory[2], left, 1, factors.y);
    }),
                          call);
}

static double op_add(double a, double b)
{
    return a + b;
}
static double op_mul(double a, double b)
{
    return a * b;
}
static double op_min(double a, double b)
{
    return std::min(a, b);
}
static double op_max(double a, double b)
{
    return std::max(a, b);
}
static double op_sqrt(double a, double)
{
    return std::sqrt(a);
}
static double op_not(double a, double)
{
    return 1 - a;
}

static const struct {
    Binary f;
    bool unary;
} tensor_ops[] = {{op_add, false}, {op_mul, false}, {op_min, false},
                  {op_max, false}, {op_sqrt, true}, {op_not, true}};

/* Reductions: start, add one value, end with the number of values. */
static double keep(double sum, double)
{
    return sum;
}
static const struct {
    double start;
    double (*add)(double sum, double value);
    double (*end)(double sum, double count);
} reductions[] = {
    {0, op_add, keep},
    {1, op_mul, keep},
    {HUGE_VAL, op_min, keep},
    {-HUGE_VAL, op_max, keep},
    {0, [](double sum, double v) { return std::max(sum, std::fabs(v)); }, keep},
    {0, op_add, [](double sum, double count) { return sum / count; }},
    {0, [](double sum, double v) { return sum + std::fabs(v); }, keep},
    {0, [](double sum, double v) { return sum + v * v; },
     [](double sum, double) { return std::sqrt(sum); }},
    {1, [](double sum, double v) { return v == 0 ? sum : sum * v; }, keep},
};
static_assert(std::size(reductions) == CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS + 1, "a row an op");

/* c: a's dims, or 1 where they are summed. */
static doubles reduce(cudnnReduceTensorOp_t op, const View &a, const View &c, const doubles &values)
{
    auto &row = reductions[op];
    doubles totals(size_t(view_count(c)), row.start);
    View target = view_packed(Type::f64, {c.dim, c.dim + c.rank});
    doubles index(totals.size());
    for (size_t i = 0; i < index.size(); i++)
        index[i] = double(i);
    doubles to = view_load(broadcast(target, a), index.data());
    for (size_t i = 0; i < values.size(); i++)
        totals[size_t(to[i])] = row.add(totals[size_t(to[i])], values[i]);
    for (double &total : totals)
        total = row.end(total, double(values.size() / totals.size()));
    return totals;
}

} // namespace sim

using namespace sim;

cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void *alpha,
                             const cudnnTensorDescriptor_t a_desc, const void *a, const void *beta,
                             const cudnnTensorDescriptor_t c_desc, void *c)
{
    static const char call[] = "cudnnAddTensor";
    REFUSED(
        cudnn_check(handle, call, {{"A", cudnn_view(a_desc), a}, {"C", cudnn_view(c_desc), c}}));
    const View &va = a_desc->view, &vc = c_desc->view;
    REFUSE_IF(!alpha || !beta, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s: no alpha or beta", call);
    REFUSE_IF(va.type != vc.type || va.rank != vc.rank || !broadcasts(va, vc),
              CUDNN_STATUS_BAD_PARAM, "%s: A %s is not added to C %s", call, cudnn_dims(va).c_str(),
              cudnn_dims(vc).c_str());
    Blend factors = {cudnn_scalar(vc, alpha), 0, cudnn_scalar(vc, beta)};
    return launch_binary(call, handle, op_add, factors, va, a, va, nullptr, vc, c);
}

cudnnStatus_t cudnnTransformTensor(cudnnHandle_t handle, const void *alpha,
                                   const cudnnTensorDescriptor_t x_desc, const void *x,
                                   const void *beta, const cudnnTensorDescriptor_t y_desc, void *y)
{
    static const char call[] = "cudnnTransformTensor";
    REFUSED(
        cudnn_check(handle, call, {{"x", cudnn_view(x_desc), x}, {"y", cudnn_view(y_desc), y}}));
    const View &vx = x_desc->view, &vy = y_desc->view;
    REFUSE_IF(!alpha || !beta, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s: no alpha or beta", call);
    REFUSE_IF(!view_same_dims(vx, vy) || vx.type != vy.type, CUDNN_STATUS_BAD_PARAM,
              "%s: x is %s, y is %s", call, cudnn_dims(vx).c_str(), cudnn_dims(vy).c_str());
    Blend factors = {cudnn_scalar(vy, alpha), 0, cudnn_scalar(vy, beta)};
    return launch_binary(call, handle, op_add, factors, vx, x, vx, nullptr, vy, y);
}

cudnnStatus_t cudnnScaleTensor(cudnnHandle_t handle, const cudnnTensorDescriptor_t y_desc, void *y,
                               const void *alpha)
{
    static const char call[] = "cudnnScaleTensor";
    REFUSED(cudnn_check(handle, call, {{"y", cudnn_view(y_desc), y}}));
    REFUSE_IF(!alpha, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s: no alpha", call);
    const View view = y_desc->view;
    double factor = cudnn_scalar(view, alpha);
    Launch launch(call, handle->stream);
    launch.out(y, view, true);
    return cudnn_launched(launch.enqueue([=](Memory memory) {
        view_store(view, memory[0], view_load(view, memory[0]), factor);
    }),
                          call);
}

cudnnStatus_t cudnnSetTensor(cudnnHandle_t handle, const cudnnTensorDescriptor_t y_desc, void *y,
                             const void *value)
{
    static const char call[] = "cudnnSetTensor";
    REFUSED(cudnn_check(handle, call, {{"y", cudnn_view(y_desc), y}}));
    REFUSE_IF(!value, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s: no value", call);
    const View view = y_desc->view;
    double number = number_load(view.type, value, 0); /* of the tensor's own type */
    Launch launch(call, handle->stream);
    launch.out(y, view);
    return cudnn_launched(launch.enqueue([=](Memory memory) {
        view_store(view, memory[0], doubles(size_t(view_count(view)), number));
    }),
                          call);
}

cudnnStatus_t cudnnCreateOpTensorDescriptor(cudnnOpTensorDescriptor_t *descriptor)
{
    REFUSE_IF(!descriptor, CUDNN_STATUS_BAD_PARAM, "cudnnCreateOpTensorDescriptor: NULL");
    *descriptor = new cudnnOpTensorStruct{};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyOpTensorDescriptor(cudnnOpTensorDescriptor_t descriptor)
{
    delete descriptor;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t descriptor, cudnnOpTensorOp_t op,
                                         cudnnDataType_t compute, cudnnNanPropagation_t)
{
    REFUSE_IF(!descriptor || unsigned(op) >= std::size(tensor_ops) ||
                  cudnn_type(compute) == Type::none,
              CUDNN_STATUS_BAD_PARAM, "cudnnSetOpTensorDescriptor: no such op or type");
    descriptor->op = op;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnOpTensor(cudnnHandle_t handle, const cudnnOpTensorDescriptor_t op,
                            const void *alpha1, const cudnnTensorDescriptor_t a_desc, const void *a,
                            const void *alpha2, const cudnnTensorDescriptor_t b_desc, const void *b,
                            const void *beta, const cudnnTensorDescriptor_t c_desc, void *c)
{
    static const char call[] = "cudnnOpTensor";
    REFUSED(
        cudnn_check(handle, call, {{"A", cudnn_view(a_desc), a}, {"C", cudnn_view(c_desc), c}}));
    REFUSE_IF(!op || !alpha1 || !beta, CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
              "%s: no descriptor, alpha1 or beta", call);
    const View &va = a_desc->view, &vc = c_desc->view;
    REFUSE_IF(!view_same_dims(va, vc), CUDNN_STATUS_BAD_PARAM, "%s: A is %s, C is %s", call,
              cudnn_dims(va).c_str(), cudnn_dims(vc).c_str());
    Blend factors = {cudnn_scalar(vc, alpha1), 0, cudnn_scalar(vc, beta)};
    Binary f = tensor_ops[op->op].f;
    if (tensor_ops[op->op].unary)
        return launch_binary(call, handle, f, factors, va, a, va, nullptr, vc, c);
    REFUSED(cudnn_check(handle, call, {{"B", cudnn_view(b_desc), b}}));
    REFUSE_IF(!alpha2, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s: no alpha2", call);
    const View &vb = b_desc->view;
    REFUSE_IF(vb.rank != vc.rank || !broadcasts(vb, vc), CUDNN_STATUS_BAD_PARAM,
              "%s: B is %s, C is %s", call, cudnn_dims(vb).c_str(), cudnn_dims(vc).c_str());
    factors.b = cudnn_scalar(vc, alpha2);
    return launch_binary(call, handle, f, factors, va, a, vb, b, vc, c);
}

cudnnStatus_t cudnnCreateReduceTensorDescriptor(cudnnReduceTensorDescriptor_t *descriptor)
{
    REFUSE_IF(!descriptor, CUDNN_STATUS_BAD_PARAM, "cudnnCreateReduceTensorDescriptor: NULL");
    *descriptor = new cudnnReduceTensorStruct{};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyReduceTensorDescriptor(cudnnReduceTensorDescriptor_t descriptor)
{
    delete descriptor;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetReduceTensorDescriptor(cudnnReduceTensorDescriptor_t descriptor,
                                             cudnnReduceTensorOp_t op, cudnnDataType_t compute,
                                             cudnnNanPropagation_t,
                                             cudnnReduceTensorIndices_t indices, cudnnIndicesType_t)
{
    REFUSE_IF(!descriptor || unsigned(op) >= std::size(reductions) ||
                  cudnn_type(compute) == Type::none,
              CUDNN_STATUS_BAD_PARAM, "cudnnSetReduceTensorDescriptor: no such op or type");
    *descriptor = {op, indices};
    return CUDNN_STATUS_SUCCESS;
}

/* The real size is the library's business; this one makes a caller that ignores it fail. */
cudnnStatus_t cudnnGetReductionWorkspaceSize(cudnnHandle_t handle,
                                             const cudnnReduceTensorDescriptor_t descriptor,
                                             const cudnnTensorDescriptor_t a_desc,
                                             const cudnnTensorDescriptor_t c_desc, size_t *size)
{
    REFUSE_IF(!handle || !descriptor || !a_desc || !c_desc || !size, CUDNN_STATUS_BAD_PARAM,
              "cudnnGetReductionWorkspaceSize: NULL");
    bool same = view_same_dims(a_desc->view, c_desc->view);
    *size = same ? 0 : size_t(view_count(c_desc->view)) * sizeof(double);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnReduceTensor(cudnnHandle_t handle,
                                const cudnnReduceTensorDescriptor_t descriptor, void *, size_t,
                                void *workspace, size_t workspace_bytes, const void *alpha,
                                const cudnnTensorDescriptor_t a_desc, const void *a,
                                const void *beta, const cudnnTensorDescriptor_t c_desc, void *c)
{
    static const char call[] = "cudnnReduceTensor";
    REFUSED(
        cudnn_check(handle, call, {{"A", cudnn_view(a_desc), a}, {"C", cudnn_view(c_desc), c}}));
    REFUSE_IF(!descriptor || !alpha || !beta, CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
              "%s: no descriptor, alpha or beta", call);
    REFUSE_IF(descriptor->indices != CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_STATUS_NOT_SUPPORTED,
              "%s: indices are not simulated", call);
    const View va = a_desc->view, vc = c_desc->view;
    REFUSE_IF(va.rank != vc.rank || !broadcasts(vc, va), CUDNN_STATUS_BAD_PARAM,
              "%s: A is %s, C is %s", call, cudnn_dims(va).c_str(), cudnn_dims(vc).c_str());
    size_t needed = 0;
    REFUSED(cudnnGetReductionWorkspaceSize(handle, descriptor, a_desc, c_desc, &needed));
    REFUSE_IF(workspace_bytes < needed || (needed && !workspace),
              CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "%s: a workspace of %zu bytes, needs %zu",
              call, workspace_bytes, needed);
    double factor = cudnn_scalar(vc, alpha), old = cudnn_scalar(vc, beta);
    auto op = descriptor->op;
    Launch launch(call, handle->stream);
    launch.in(a, va);
    launch.out(c, vc, old != 0);
    launch.scratch(workspace, needed);
    return cudnn_launched(launch.enqueue([=](Memory memory) {
        view_store(vc, memory[1], reduce(op, va, vc, view_load(va, memory[0])), factor, old);
    }),
                          call);
}
