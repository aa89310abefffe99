/* cudnn_rnn.cc: descriptors of recurrent networks and of their sequences, sizes, and where weights
 * lie. */
#include <algorithm>

#include "tests/cudasim/cudnn_rnn.hpp"

struct cudnnDropoutStruct {
    float rate;
};

namespace sim
{

int64_t rnn_directions(const Rnn &rnn)
{
    return rnn.bidirectional ? 2 : 1;
}

int64_t rnn_pseudo_layers(const Rnn &rnn)
{
    return rnn.layers * rnn_directions(rnn);
}

int64_t rnn_gates(const Rnn &rnn)
{
    return cell_gates(Cell(rnn.cell));
}

int64_t rnn_inputs(const Rnn &rnn, int64_t pseudo)
{
    return pseudo < rnn_directions(rnn) ? rnn.inputs : rnn.hidden * rnn_directions(rnn);
}

/* How many vectors of biases a gate has. */
static int64_t bias_vectors(const Rnn &rnn)
{
    static const int64_t vectors[] = {0, 1, 2, 1};
    return vectors[rnn.bias];
}

static int64_t matrix_count(const Rnn &rnn, int64_t pseudo_layers)
{
    int64_t count = 0;
    for (int64_t i = 0; i < pseudo_layers; i++)
        count += rnn_gates(rnn) * rnn.hidden * (rnn_inputs(rnn, i) + rnn.hidden);
    return count;
}

RnnOffsets rnn_offsets(const Rnn &rnn, int64_t pseudo)
{
    int64_t gates = rnn_gates(rnn) * rnn.hidden, w = matrix_count(rnn, pseudo);
    int64_t bias = matrix_count(rnn, rnn_pseudo_layers(rnn)) + pseudo * gates * bias_vectors(rnn);
    RnnOffsets offsets = {w, w + gates * rnn_inputs(rnn, pseudo), -1, -1};
    if (rnn.bias == CUDNN_RNN_SINGLE_INP_BIAS || rnn.bias == CUDNN_RNN_DOUBLE_BIAS)
        offsets.bw = bias;
    if (rnn.bias == CUDNN_RNN_SINGLE_REC_BIAS)
        offsets.br = bias;
    if (rnn.bias == CUDNN_RNN_DOUBLE_BIAS)
        offsets.br = bias + gates;
    return offsets;
}

int64_t rnn_weight_count(const Rnn &rnn)
{
    int64_t layers = rnn_pseudo_layers(rnn);
    return matrix_count(rnn, layers) + layers * rnn_gates(rnn) * rnn.hidden * bias_vectors(rnn);
}

RnnReserve rnn_reserve(const Rnn &rnn, const RnnData &x)
{
    int64_t rows = x.steps * x.batch;
    return {rows, rows * rnn_gates(rnn) * rnn.hidden, rows * rnn.hidden, rows * rnn.hidden};
}

size_t rnn_trace_bytes(const Rnn &rnn, const RnnData &x)
{
    return size_t(rnn_pseudo_layers(rnn) * rnn_reserve(rnn, x).trace_count()) * sizeof(float);
}

size_t rnn_reserve_bytes(const Rnn &rnn, const RnnData &x)
{
    size_t grads =
        size_t(rnn_pseudo_layers(rnn) * rnn_reserve(rnn, x).grads_count()) * sizeof(float);
    return rnn_trace_bytes(rnn, x) + grads;
}

size_t rnn_workspace_bytes(const Rnn &rnn, const RnnData &x)
{
    return size_t(rnn_reserve(rnn, x).gates * rnn_directions(rnn)) * sizeof(float);
}

int64_t rnn_data_offset(const RnnData &data, int64_t step, int64_t sample)
{
    if (data.layout == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED)
        return (sample * data.steps + step) * data.vector;
    if (data.layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED)
        return (step * data.batch + sample) * data.vector;
    int64_t before = 0; /* vectors of the steps ahead; samples come by falling length */
    for (int64_t length : data.lengths)
        before += std::min(length, step);
    return (before + sample) * data.vector;
}

std::vector<Span> rnn_data_spans(const RnnData &data, bool padding)
{
    std::vector<Span> spans;
    int64_t size = int64_t(type_bytes(data.type));
    for (int64_t t = 0; t < data.steps; t++)
        for (int64_t b = 0; b < data.batch; b++)
            if (padding || t < data.lengths[size_t(b)]) {
                int64_t begin = rnn_data_offset(data, t, b) * size;
                spans.push_back({size_t(begin), size_t(begin + data.vector * size)});
            }
    std::sort(spans.begin(), spans.end(), [](auto &a, auto &b) { return a.begin < b.begin; });
    std::vector<Span> joined;
    for (Span span : spans)
        if (!joined.empty() && joined.back().end == span.begin)
            joined.back().end = span.end;
        else
            joined.push_back(span);
    return joined;
}

doubles rnn_data_load(const RnnData &data, const void *memory)
{
    doubles values(size_t(data.steps * data.batch * data.vector), 0.0);
    for (int64_t b = 0; b < data.batch; b++)
        for (int64_t t = 0; t < data.lengths[size_t(b)]; t++)
            for (int64_t k = 0; k < data.vector; k++)
                values[size_t((t * data.batch + b) * data.vector + k)] =
                    number_load(data.type, memory, rnn_data_offset(data, t, b) + k);
    return values;
}

void rnn_data_store(const RnnData &data, void *memory, const doubles &values)
{
    for (int64_t b = 0; b < data.batch; b++)
        for (int64_t t = 0; t < data.steps; t++) {
            bool valid = t < data.lengths[size_t(b)];
            if (!valid && !data.fills)
                continue;
            for (int64_t k = 0; k < data.vector; k++)
                number_store(data.type, memory, rnn_data_offset(data, t, b) + k,
                             valid ? values[size_t((t * data.batch + b) * data.vector + k)]
                                   : data.fill);
        }
}

static bool floating(Type type)
{
    return type == Type::f32 || type == Type::bf16;
}

/* [1, rows, cols], or nothing. */
static cudnnStatus_t tell_part(cudnnTensorDescriptor_t descriptor, void **address,
                               const void *space, Type type, int64_t offset, int64_t rows,
                               int64_t cols)
{
    *descriptor = {};
    *address = nullptr;
    if (offset < 0)
        return CUDNN_STATUS_SUCCESS;
    descriptor->view = view_packed(type, {1, rows, cols});
    *address = static_cast<char *>(const_cast<void *>(space)) + offset * int64_t(type_bytes(type));
    return CUDNN_STATUS_SUCCESS;
}

} // namespace sim

using namespace sim;

cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t *descriptor)
{
    REFUSE_IF(!descriptor, CUDNN_STATUS_BAD_PARAM, "cudnnCreateDropoutDescriptor: NULL");
    *descriptor = new cudnnDropoutStruct{};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t descriptor)
{
    delete descriptor;
    return CUDNN_STATUS_SUCCESS;
}

/* A rate of zero alone: the project's masks come from its own generator. */
cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t descriptor, cudnnHandle_t handle,
                                        float rate, void *, size_t, unsigned long long)
{
    REFUSE_IF(!descriptor || !handle || rate < 0 || rate > 1, CUDNN_STATUS_BAD_PARAM,
              "cudnnSetDropoutDescriptor: NULL, or a rate of %g", double(rate));
    REFUSE_IF(rate > 0, CUDNN_STATUS_NOT_SUPPORTED, "cudnnSetDropoutDescriptor: not simulated");
    descriptor->rate = rate;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t *descriptor)
{
    REFUSE_IF(!descriptor, CUDNN_STATUS_BAD_PARAM, "cudnnCreateRNNDescriptor: NULL");
    *descriptor = new cudnnRNNStruct{};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t descriptor)
{
    delete descriptor;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t descriptor, cudnnRNNAlgo_t algo,
                                       cudnnRNNMode_t cell, cudnnRNNBiasMode_t bias,
                                       cudnnDirectionMode_t direction, cudnnRNNInputMode_t input,
                                       cudnnDataType_t type, cudnnDataType_t compute,
                                       cudnnMathType_t math, int32_t inputs, int32_t hidden,
                                       int32_t projection, int32_t layers, cudnnDropoutDescriptor_t,
                                       uint32_t flags)
{
    REFUSE_IF(!descriptor, CUDNN_STATUS_BAD_PARAM, "no RNN descriptor");
    REFUSE_IF(unsigned(algo) >= CUDNN_RNN_ALGO_COUNT || unsigned(cell) > CUDNN_GRU ||
                  unsigned(bias) > CUDNN_RNN_SINGLE_REC_BIAS ||
                  unsigned(direction) > CUDNN_BIDIRECTIONAL || unsigned(input) > CUDNN_SKIP_INPUT ||
                  unsigned(math) > CUDNN_FMA_MATH || (flags & ~CUDNN_RNN_PADDED_IO_ENABLED),
              CUDNN_STATUS_BAD_PARAM,
              "no such algorithm, cell, bias mode, direction, input mode or flag");
    REFUSE_IF(inputs < 1 || hidden < 1 || layers < 1 || projection < 1, CUDNN_STATUS_BAD_PARAM,
              "%d inputs, %d hidden, %d projected, %d layers", inputs, hidden, projection, layers);
    REFUSE_IF(
        algo != CUDNN_RNN_ALGO_STANDARD || input != CUDNN_LINEAR_INPUT || projection != hidden,
        CUDNN_STATUS_NOT_SUPPORTED,
        "a persistent algorithm, skipped input or projection: not simulated (or not supported)");
    REFUSE_IF(!floating(cudnn_type(type)) || compute != CUDNN_DATA_FLOAT,
              CUDNN_STATUS_NOT_SUPPORTED, "data type %d with compute type %d (or not simulated)",
              type, compute);
    *descriptor = {
        cell,   bias,  direction == CUDNN_BIDIRECTIONAL, flags != 0, cudnn_type(type), inputs,
        hidden, layers};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t *descriptor)
{
    REFUSE_IF(!descriptor, CUDNN_STATUS_BAD_PARAM, "cudnnCreateRNNDataDescriptor: NULL");
    *descriptor = new cudnnRNNDataStruct{};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t descriptor)
{
    delete descriptor;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t descriptor, cudnnDataType_t type,
                                        cudnnRNNDataLayout_t layout, int steps, int batch,
                                        int vector, const int lengths[], void *fill)
{
    REFUSE_IF(!descriptor || !lengths, CUDNN_STATUS_BAD_PARAM, "no descriptor or lengths");
    REFUSE_IF(unsigned(layout) > CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED, CUDNN_STATUS_BAD_PARAM,
              "no such layout");
    REFUSE_IF(!floating(cudnn_type(type)), CUDNN_STATUS_NOT_SUPPORTED, "sequences of data type %d",
              type);
    REFUSE_IF(steps <= 0 || batch <= 0 || vector <= 0, CUDNN_STATUS_BAD_PARAM,
              "%d steps, %d samples, vectors of %d", steps, batch, vector);
    for (int b = 0; b < batch; b++)
        REFUSE_IF(lengths[b] < 0 || lengths[b] > steps, CUDNN_STATUS_BAD_PARAM,
                  "sample %d has %d of %d steps", b, lengths[b], steps);
    bool packed = layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
    REFUSE_IF(packed && !std::is_sorted(lengths, lengths + batch, std::greater<int>()),
              CUDNN_STATUS_BAD_PARAM, "packed sequences come by falling length");
    double number = fill ? number_load(cudnn_type(type), fill, 0) : 0;
    *descriptor = {cudnn_type(type),           layout,          steps, batch, vector,
                   {lengths, lengths + batch}, fill && !packed, number};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                         size_t *size)
{
    REFUSE_IF(!handle || !rnn || rnn->hidden == 0 || !size, CUDNN_STATUS_BAD_PARAM,
              "cudnnGetRNNWeightSpaceSize: NULL, or a descriptor that was never set");
    *size = size_t(rnn_weight_count(*rnn)) * type_bytes(rnn->type);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                        cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t x,
                                        size_t *workspace, size_t *reserve)
{
    REFUSE_IF(!handle || !rnn || rnn->hidden == 0 || !x || x->lengths.empty(),
              CUDNN_STATUS_BAD_PARAM,
              "cudnnGetRNNTempSpaceSizes: NULL, or a descriptor that was never set");
    if (workspace)
        *workspace = rnn_workspace_bytes(*rnn, *x);
    if (reserve)
        *reserve = mode == CUDNN_FWD_MODE_TRAINING ? rnn_reserve_bytes(*rnn, *x) : 0;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn,
                                      int32_t pseudo, size_t bytes, const void *space, int32_t id,
                                      cudnnTensorDescriptor_t matrix, void **matrix_address,
                                      cudnnTensorDescriptor_t bias, void **bias_address)
{
    static const char call[] = "cudnnGetRNNWeightParams";
    REFUSE_IF(!handle || !rnn || rnn->hidden == 0 || !space || !matrix || !matrix_address ||
                  !bias || !bias_address,
              CUDNN_STATUS_BAD_PARAM, "%s: NULL, or a descriptor that was never set", call);
    REFUSE_IF(bytes < size_t(rnn_weight_count(*rnn)) * type_bytes(rnn->type),
              CUDNN_STATUS_BAD_PARAM, "%s: a weight space of %zu bytes", call, bytes);
    int64_t gates = rnn_gates(*rnn), hidden = rnn->hidden;
    REFUSE_IF(pseudo < 0 || pseudo >= rnn_pseudo_layers(*rnn) || id < 0 || id >= 2 * gates,
              CUDNN_STATUS_BAD_PARAM, "%s: pseudo-layer %d, matrix %d", call, pseudo, id);
    RnnOffsets offsets = rnn_offsets(*rnn, pseudo);
    bool input = id < gates;
    int64_t gate = input ? id : id - gates, cols = input ? rnn_inputs(*rnn, pseudo) : hidden;
    int64_t biases = input ? offsets.bw : offsets.br;
    REFUSED(tell_part(matrix, matrix_address, space, rnn->type,
                      (input ? offsets.w : offsets.r) + gate * hidden * cols, hidden, cols));
    return tell_part(bias, bias_address, space, rnn->type, biases < 0 ? -1 : biases + gate * hidden,
                     hidden, 1);
}
