/* cudnn_rnn_run.cc: recurrent networks forward, and back to data and to weights.
 *
 * The reserve space carries from call to call what the next needs: forward leaves each
 * pseudo-layer's trace, the data gradient adds the gates' gradients, the weight gradient reads
 * both. Where a call comes without its predecessor it reads memory that nobody wrote.
 */
#include <algorithm>
#include <cstring>

#include "tests/cudasim/cudnn_rnn.hpp"

namespace sim
{

/* What every call takes; descriptors are copied into closures. */
struct RnnArguments {
    const Rnn *rnn;
    const RnnData *x, *y;
    const View *h, *c; /* c: the LSTM's alone */
    const void *weights, *workspace, *reserve;
    size_t weight_bytes, workspace_bytes, reserve_bytes;
};

static cudnnStatus_t check_states(const char *call, const Rnn &rnn, const View *view, int64_t batch)
{
    REFUSE_IF(!view || view->rank != 3 || view->type != rnn.type ||
                  view->dim[0] != rnn_pseudo_layers(rnn) || view->dim[1] != batch ||
                  view->dim[2] != rnn.hidden,
              CUDNN_STATUS_BAD_PARAM,
              "%s: states %s for %lld pseudo-layers, %lld samples, %lld units", call,
              view ? cudnn_dims(*view).c_str() : "NULL", (long long)rnn_pseudo_layers(rnn),
              (long long)batch, (long long)rnn.hidden);
    View packed = view_packed(rnn.type, {view->dim[0], view->dim[1], view->dim[2]});
    REFUSE_IF(!view_same(*view, packed), CUDNN_STATUS_BAD_PARAM, "%s: states with gaps", call);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check_sequences(const char *call, const RnnArguments &a)
{
    const RnnData &x = *a.x, &y = *a.y;
    bool packed = x.layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
    REFUSE_IF(x.type != a.rnn->type || y.type != a.rnn->type || x.vector != a.rnn->inputs ||
                  y.vector != a.rnn->hidden * rnn_directions(*a.rnn),
              CUDNN_STATUS_BAD_PARAM, "%s: x has vectors of %lld %s, y of %lld %s", call,
              (long long)x.vector, type_name(x.type), (long long)y.vector, type_name(y.type));
    REFUSE_IF(x.layout != y.layout || x.steps != y.steps || x.lengths != y.lengths,
              CUDNN_STATUS_BAD_PARAM, "%s: x and y differ in layout, steps or lengths", call);
    REFUSE_IF(!packed && !a.rnn->padded_io, CUDNN_STATUS_BAD_PARAM,
              "%s: unpacked sequences need CUDNN_RNN_PADDED_IO_ENABLED", call);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t check(cudnnHandle_t handle, const char *call, const RnnArguments &a,
                           bool training)
{
    REFUSED(cudnn_check(handle, call, {}));
    REFUSE_IF(!a.rnn || a.rnn->hidden == 0 || !a.x || a.x->lengths.empty() || !a.y ||
                  a.y->lengths.empty(),
              CUDNN_STATUS_BAD_PARAM, "%s: a descriptor is NULL or was never set", call);
    REFUSED(check_sequences(call, a));
    REFUSED(check_states(call, *a.rnn, a.h, a.x->batch));
    if (a.rnn->cell == CUDNN_LSTM && a.c)
        REFUSED(check_states(call, *a.rnn, a.c, a.x->batch));
    size_t weights = size_t(rnn_weight_count(*a.rnn)) * type_bytes(a.rnn->type);
    size_t workspace = rnn_workspace_bytes(*a.rnn, *a.x), reserve = rnn_reserve_bytes(*a.rnn, *a.x);
    REFUSE_IF(!a.weights || a.weight_bytes < weights, CUDNN_STATUS_BAD_PARAM,
              "%s: a weight space of %zu bytes, needs %zu", call, a.weight_bytes, weights);
    REFUSE_IF(!a.workspace || a.workspace_bytes < workspace,
              CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT, "%s: a workspace of %zu bytes, needs %zu",
              call, a.workspace_bytes, workspace);
    REFUSE_IF(training && (!a.reserve || a.reserve_bytes < reserve),
              CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT,
              "%s: a reserve space of %zu bytes, needs %zu", call, a.reserve_bytes, reserve);
    return CUDNN_STATUS_SUCCESS;
}

/* Every closure's constants. */
struct RnnPlan {
    Rnn rnn;
    RnnData x, y;
    RnnReserve reserve;
    int64_t directions;
    View states, lengths;
};

static RnnPlan plan_of(const RnnArguments &a)
{
    return {*a.rnn,
            *a.x,
            *a.y,
            rnn_reserve(*a.rnn, *a.x),
            rnn_directions(*a.rnn),
            view_packed(a.rnn->type, {rnn_pseudo_layers(*a.rnn), a.x->batch, a.rnn->hidden}),
            view_packed(Type::i32, {a.x->batch})};
}

static RnnShape shape_of(const RnnPlan &p, int64_t pseudo)
{
    return {
        Cell(p.rnn.cell),           p.x.steps,  p.x.batch, rnn_inputs(p.rnn, pseudo), p.rnn.hidden,
        pseudo % p.directions == 1, p.x.lengths};
}

static doubles part(const doubles &whole, int64_t offset, int64_t count)
{
    return {whole.begin() + offset, whole.begin() + offset + count};
}

static doubles biases(const doubles &space, int64_t offset, int64_t count)
{
    return offset < 0 ? doubles(size_t(count), 0.0) : part(space, offset, count);
}

static RnnWeights weights_of(const RnnPlan &p, const doubles &space, int64_t pseudo)
{
    RnnOffsets at = rnn_offsets(p.rnn, pseudo);
    int64_t gates = rnn_gates(p.rnn) * p.rnn.hidden;
    return {part(space, at.w, gates * rnn_inputs(p.rnn, pseudo)),
            part(space, at.r, gates * p.rnn.hidden), biases(space, at.bw, gates),
            biases(space, at.br, gates)};
}

/* All pseudo-layers' states, zeros where the caller gave none. */
static doubles load_states(const RnnPlan &p, const void *memory)
{
    return memory ? view_load(p.states, memory) : doubles(size_t(view_count(p.states)), 0.0);
}

static RnnStates states_of(const RnnPlan &p, const doubles &h, const doubles &c, int64_t pseudo)
{
    int64_t count = p.x.batch * p.rnn.hidden;
    return {part(h, pseudo * count, count), part(c, pseudo * count, count)};
}

static void put(doubles *whole, int64_t offset, const doubles &values)
{
    std::copy(values.begin(), values.end(), whole->begin() + offset);
}

static doubles load_floats(const void *memory, int64_t offset, int64_t count)
{
    const float *from = static_cast<const float *>(memory) + offset;
    return {from, from + count};
}

static void store_floats(void *memory, int64_t offset, const doubles &values)
{
    float *to = static_cast<float *>(memory) + offset;
    for (double value : values)
        *to++ = float(value);
}

static void store_trace(const RnnPlan &p, void *reserve, int64_t pseudo, const RnnTrace &trace)
{
    int64_t at = pseudo * p.reserve.trace_count();
    store_floats(reserve, at, trace.gates);
    store_floats(reserve, at + p.reserve.gates, trace.state);
    store_floats(reserve, at + p.reserve.gates + p.reserve.state, trace.y);
}

static RnnTrace load_trace(const RnnPlan &p, const void *reserve, int64_t pseudo)
{
    int64_t at = pseudo * p.reserve.trace_count();
    RnnTrace trace;
    trace.gates = load_floats(reserve, at, p.reserve.gates);
    trace.state = load_floats(reserve, at + p.reserve.gates, p.reserve.state);
    trace.y = load_floats(reserve, at + p.reserve.gates + p.reserve.state, p.reserve.y);
    return trace;
}

static int64_t grads_at(const RnnPlan &p, int64_t pseudo)
{
    int64_t traces = rnn_pseudo_layers(p.rnn) * p.reserve.trace_count();
    return traces + pseudo * p.reserve.grads_count();
}

/* Columns [direction * hidden, …) of a layer's [rows, directions * hidden]. */
static void put_direction(const RnnPlan &p, doubles *layer, int64_t direction,
                          const doubles &values)
{
    int64_t h = p.rnn.hidden;
    for (int64_t row = 0; row < p.reserve.rows; row++)
        std::copy_n(values.begin() + row * h, h,
                    layer->begin() + (row * p.directions + direction) * h);
}

static doubles take_direction(const RnnPlan &p, const doubles &layer, int64_t direction)
{
    int64_t h = p.rnn.hidden;
    doubles values(size_t(p.reserve.rows * h));
    for (int64_t row = 0; row < p.reserve.rows; row++)
        std::copy_n(layer.begin() + (row * p.directions + direction) * h, h,
                    values.begin() + row * h);
    return values;
}

/* The lengths on the device are those of the descriptor: with others the real library computes
 * nonsense. */
static void check_lengths(const RnnPlan &p, const void *lengths)
{
    for (int64_t b = 0; lengths && b < p.x.batch; b++)
        if (int64_t(number_load(Type::i32, lengths, b)) != p.x.lengths[size_t(b)])
            report("cudnnRNN: the device's length of sample %lld is %lld, the descriptor's %lld",
                   (long long)b, (long long)number_load(Type::i32, lengths, b),
                   (long long)p.x.lengths[size_t(b)]);
}

namespace forward
{
enum { LENGTHS, X, WEIGHTS, HX, CX, Y, HY, CY, RESERVE };

static void run(const RnnPlan &p, Memory memory)
{
    check_lengths(p, memory[LENGTHS]);
    doubles space = view_load(view_packed(p.rnn.type, {rnn_weight_count(p.rnn)}), memory[WEIGHTS]);
    doubles hx = load_states(p, memory[HX]), cx = load_states(p, memory[CX]), hy = hx, cy = cx;
    doubles input = rnn_data_load(p.x, memory[X]);
    for (int64_t layer = 0; layer < p.rnn.layers; layer++) {
        doubles output(size_t(p.reserve.y * p.directions));
        for (int64_t d = 0; d < p.directions; d++) {
            int64_t pseudo = layer * p.directions + d, at = pseudo * p.x.batch * p.rnn.hidden;
            RnnTrace trace = rnn_forward(shape_of(p, pseudo), weights_of(p, space, pseudo),
                                         states_of(p, hx, cx, pseudo), input);
            if (memory[RESERVE])
                store_trace(p, memory[RESERVE], pseudo, trace);
            put_direction(p, &output, d, trace.y);
            put(&hy, at, trace.last.h);
            put(&cy, at, trace.last.c);
        }
        input = output;
    }
    rnn_data_store(p.y, memory[Y], input);
    if (memory[HY])
        view_store(p.states, memory[HY], hy);
    if (memory[CY])
        view_store(p.states, memory[CY], cy);
}
} // namespace forward

namespace backward_data
{
enum { LENGTHS, Y, DY, WEIGHTS, HX, DHY, CX, DCY, DX, DHX, DCX, TRACES, GRADS };

static void run(const RnnPlan &p, Memory memory)
{
    check_lengths(p, memory[LENGTHS]);
    doubles space = view_load(view_packed(p.rnn.type, {rnn_weight_count(p.rnn)}), memory[WEIGHTS]);
    doubles hx = load_states(p, memory[HX]), cx = load_states(p, memory[CX]);
    doubles dhy = load_states(p, memory[DHY]), dcy = load_states(p, memory[DCY]);
    doubles doutput = rnn_data_load(p.y, memory[DY]);
    for (int64_t layer = p.rnn.layers - 1; layer >= 0; layer--) {
        int64_t inputs = rnn_inputs(p.rnn, layer * p.directions);
        doubles dinput(size_t(p.reserve.rows * inputs), 0.0);
        for (int64_t d = 0; d < p.directions; d++) {
            int64_t pseudo = layer * p.directions + d, at = pseudo * p.x.batch * p.rnn.hidden;
            RnnGrads grads =
                rnn_backward(shape_of(p, pseudo), weights_of(p, space, pseudo),
                             states_of(p, hx, cx, pseudo), load_trace(p, memory[TRACES], pseudo),
                             take_direction(p, doutput, d), states_of(p, dhy, dcy, pseudo));
            store_floats(memory[TRACES], grads_at(p, pseudo), grads.dgates_x);
            store_floats(memory[TRACES], grads_at(p, pseudo) + p.reserve.gates, grads.dgates_h);
            std::transform(dinput.begin(), dinput.end(), grads.dx.begin(), dinput.begin(),
                           std::plus<double>());
            put(&dhy, at, grads.first.h);
            put(&dcy, at, grads.first.c);
        }
        doutput = dinput;
    }
    if (memory[DX])
        rnn_data_store(p.x, memory[DX], doutput);
    if (memory[DHX])
        view_store(p.states, memory[DHX], dhy);
    if (memory[DCX])
        view_store(p.states, memory[DCX], dcy);
}
} // namespace backward_data

namespace backward_weights
{
enum { LENGTHS, X, HX, Y, RESERVE, DWEIGHTS };

static void add(doubles *space, int64_t offset, const doubles &values)
{
    if (offset < 0)
        return;
    auto at = space->begin() + offset;
    std::transform(values.begin(), values.end(), at, at, std::plus<double>());
}

static void run(const RnnPlan &p, Memory memory)
{
    check_lengths(p, memory[LENGTHS]);
    View space_view = view_packed(p.rnn.type, {rnn_weight_count(p.rnn)});
    doubles space = view_load(space_view, memory[DWEIGHTS]);
    doubles hx = load_states(p, memory[HX]), input = rnn_data_load(p.x, memory[X]);
    for (int64_t layer = 0; layer < p.rnn.layers; layer++) {
        doubles output(size_t(p.reserve.y * p.directions));
        for (int64_t d = 0; d < p.directions; d++) {
            int64_t pseudo = layer * p.directions + d;
            RnnTrace trace = load_trace(p, memory[RESERVE], pseudo);
            RnnGrads grads;
            grads.dgates_x = load_floats(memory[RESERVE], grads_at(p, pseudo), p.reserve.gates);
            grads.dgates_h = load_floats(memory[RESERVE], grads_at(p, pseudo) + p.reserve.gates,
                                         p.reserve.gates);
            RnnWeights dw = rnn_backward_weights(shape_of(p, pseudo), states_of(p, hx, hx, pseudo),
                                                 input, trace, grads);
            RnnOffsets at = rnn_offsets(p.rnn, pseudo);
            add(&space, at.w, dw.w);
            add(&space, at.r, dw.r);
            add(&space, at.bw, dw.bw);
            add(&space, at.br, dw.br);
            put_direction(p, &output, d, trace.y);
        }
        input = output;
    }
    view_store(space_view, memory[DWEIGHTS], space);
}
} // namespace backward_weights

static std::vector<Span> bytes_between(size_t begin, size_t end)
{
    return {{begin, end}};
}

} // namespace sim

using namespace sim;

cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                              cudnnForwardMode_t mode, const int32_t lengths[],
                              cudnnRNNDataDescriptor_t x_desc, const void *x,
                              cudnnRNNDataDescriptor_t y_desc, void *y,
                              cudnnTensorDescriptor_t h_desc, const void *hx, void *hy,
                              cudnnTensorDescriptor_t c_desc, const void *cx, void *cy,
                              size_t weight_bytes, const void *weights, size_t workspace_bytes,
                              void *workspace, size_t reserve_bytes, void *reserve)
{
    static const char call[] = "cudnnRNNForward";
    bool training = mode == CUDNN_FWD_MODE_TRAINING;
    RnnArguments a = {rnn,          x_desc,    y_desc,  cudnn_view(h_desc), cudnn_view(c_desc),
                      weights,      workspace, reserve, weight_bytes,       workspace_bytes,
                      reserve_bytes};
    REFUSED(check(handle, call, a, training));
    REFUSE_IF(!x || !y, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s: no x or y", call);
    bool lstm = rnn->cell == CUDNN_LSTM;
    RnnPlan p = plan_of(a);
    Launch launch(call, handle->stream);
    launch.allow(Launch::Overlap::none);
    launch.in(lengths, p.lengths);
    launch.in(x, rnn_data_spans(p.x, false));
    launch.in(weights, view_packed(rnn->type, {rnn_weight_count(*rnn)}));
    launch.in(hx, p.states);
    launch.in(lstm ? cx : nullptr, p.states);
    launch.out(y, rnn_data_spans(p.y, p.y.fills));
    launch.out(hy, p.states);
    launch.out(lstm ? cy : nullptr, p.states);
    launch.out(training ? reserve : nullptr, bytes_between(0, rnn_trace_bytes(*rnn, p.x)));
    launch.scratch(workspace, rnn_workspace_bytes(*rnn, p.x));
    return cudnn_launched(launch.enqueue([=](Memory memory) { forward::run(p, memory); }), call);
}

cudnnStatus_t
cudnnRNNBackwardData_v8(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, const int32_t lengths[],
                        cudnnRNNDataDescriptor_t y_desc, const void *y, const void *dy,
                        cudnnRNNDataDescriptor_t x_desc, void *dx, cudnnTensorDescriptor_t h_desc,
                        const void *hx, const void *dhy, void *dhx, cudnnTensorDescriptor_t c_desc,
                        const void *cx, const void *dcy, void *dcx, size_t weight_bytes,
                        const void *weights, size_t workspace_bytes, void *workspace,
                        size_t reserve_bytes, void *reserve)
{
    static const char call[] = "cudnnRNNBackwardData_v8";
    RnnArguments a = {rnn,          x_desc,    y_desc,  cudnn_view(h_desc), cudnn_view(c_desc),
                      weights,      workspace, reserve, weight_bytes,       workspace_bytes,
                      reserve_bytes};
    REFUSED(check(handle, call, a, true));
    REFUSE_IF(!y || !dy || !dx, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s: no y, dy or dx", call);
    bool lstm = rnn->cell == CUDNN_LSTM;
    RnnPlan p = plan_of(a);
    size_t traces = rnn_trace_bytes(*rnn, p.x);
    Launch launch(call, handle->stream);
    launch.allow(Launch::Overlap::none);
    launch.in(lengths, p.lengths);
    launch.in(y, rnn_data_spans(p.y, false));
    launch.in(dy, rnn_data_spans(p.y, false));
    launch.in(weights, view_packed(rnn->type, {rnn_weight_count(*rnn)}));
    launch.in(hx, p.states);
    launch.in(dhy, p.states);
    launch.in(lstm ? cx : nullptr, p.states);
    launch.in(lstm ? dcy : nullptr, p.states);
    launch.out(dx, rnn_data_spans(p.x, p.x.fills));
    launch.out(dhx, p.states);
    launch.out(lstm ? dcx : nullptr, p.states);
    launch.in(reserve, bytes_between(0, traces));
    launch.out(reserve, bytes_between(traces, rnn_reserve_bytes(*rnn, p.x)));
    launch.scratch(workspace, rnn_workspace_bytes(*rnn, p.x));
    return cudnn_launched(launch.enqueue([=](Memory memory) { backward_data::run(p, memory); }),
                          call);
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnWgradMode_t mode, const int32_t lengths[],
    cudnnRNNDataDescriptor_t x_desc, const void *x, cudnnTensorDescriptor_t h_desc, const void *hx,
    cudnnRNNDataDescriptor_t y_desc, const void *y, size_t weight_bytes, void *dweights,
    size_t workspace_bytes, void *workspace, size_t reserve_bytes, void *reserve)
{
    static const char call[] = "cudnnRNNBackwardWeights_v8";
    RnnArguments a = {rnn,       x_desc,  y_desc,       cudnn_view(h_desc), nullptr,      dweights,
                      workspace, reserve, weight_bytes, workspace_bytes,    reserve_bytes};
    REFUSED(check(handle, call, a, true));
    REFUSE_IF(!x || !y, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "%s: no x or y", call);
    REFUSE_IF(mode != CUDNN_WGRAD_MODE_ADD, CUDNN_STATUS_NOT_SUPPORTED,
              "%s: the gradient is added to what is there, nothing else", call);
    RnnPlan p = plan_of(a);
    Launch launch(call, handle->stream);
    launch.allow(Launch::Overlap::none);
    launch.in(lengths, p.lengths);
    launch.in(x, rnn_data_spans(p.x, false));
    launch.in(hx, p.states);
    launch.in(y, rnn_data_spans(p.y, false));
    launch.in(reserve, bytes_between(0, rnn_reserve_bytes(*rnn, p.x)));
    launch.out(dweights, view_packed(rnn->type, {rnn_weight_count(*rnn)}), true);
    launch.scratch(workspace, rnn_workspace_bytes(*rnn, p.x));
    return cudnn_launched(launch.enqueue([=](Memory memory) { backward_weights::run(p, memory); }),
                          call);
}
