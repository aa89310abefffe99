/* check_cudnn_rnn.cc: LSTM, GRU and RNN against PyTorch's: layers, directions, lengths, every
 * gradient; what is refused. */
#include <algorithm>

#include "tests/cudasim/cudnn_test.hpp"

using namespace sim;

using RnnDescriptor =
    Descriptor<cudnnRNNDescriptor_t, cudnnCreateRNNDescriptor, cudnnDestroyRNNDescriptor>;
using DataDescriptor = Descriptor<cudnnRNNDataDescriptor_t, cudnnCreateRNNDataDescriptor,
                                  cudnnDestroyRNNDataDescriptor>;

static const int inputs = 3, hidden = 4;

struct Case {
    const char *name;
    cudnnRNNMode_t cell;
    int gates, directions, layers;
    std::vector<int> lengths;
};

static const Case cases[] = {
    {"lstm", CUDNN_LSTM, 4, 1, 2, {4, 2, 4}},      {"bilstm", CUDNN_LSTM, 4, 2, 2, {5, 3, 1}},
    {"gru", CUDNN_GRU, 3, 1, 1, {3, 3}},           {"bigru", CUDNN_GRU, 3, 2, 2, {4, 3}},
    {"rnn_tanh", CUDNN_RNN_TANH, 1, 1, 2, {3, 2}}, {"rnn_relu", CUDNN_RNN_RELU, 1, 2, 1, {4, 2}},
};

/* A case as cuDNN has it: descriptors, spaces, sequences padded with zeros. */
struct Network {
    const Case &c;
    std::string name;
    int steps, batch, pseudo;
    Handle handle;
    RnnDescriptor rnn;
    DataDescriptor x, y;
    TensorDescriptor states;
    View state_view;
    size_t weight_bytes, workspace_bytes, reserve_bytes;

    explicit Network(const Case &wanted)
        : c(wanted), name(wanted.name),
          steps(*std::max_element(c.lengths.begin(), c.lengths.end())),
          batch(int(c.lengths.size())), pseudo(c.layers * c.directions),
          state_view(floats({pseudo, batch, hidden}))
    {
        float fill = 0;
        auto direction = c.directions == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL;
        EXPECT_OK(cudnnSetRNNDescriptor_v8(
            rnn, CUDNN_RNN_ALGO_STANDARD, c.cell, CUDNN_RNN_DOUBLE_BIAS, direction,
            CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_DEFAULT_MATH, inputs,
            hidden, hidden, c.layers, nullptr, CUDNN_RNN_PADDED_IO_ENABLED));
        auto layout = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED;
        EXPECT_OK(cudnnSetRNNDataDescriptor(x, CUDNN_DATA_FLOAT, layout, steps, batch, inputs,
                                            c.lengths.data(), &fill));
        EXPECT_OK(cudnnSetRNNDataDescriptor(y, CUDNN_DATA_FLOAT, layout, steps, batch,
                                            hidden * c.directions, c.lengths.data(), &fill));
        set_descriptor(states, state_view);
        EXPECT_OK(cudnnGetRNNWeightSpaceSize(handle, rnn, &weight_bytes));
        EXPECT_OK(cudnnGetRNNTempSpaceSizes(handle, rnn, CUDNN_FWD_MODE_TRAINING, x,
                                            &workspace_bytes, &reserve_bytes));
    }
    View sequence(int vector) const
    {
        return floats({steps, batch, vector});
    }
    View bytes(size_t count) const
    {
        return view_packed(Type::u8, {int64_t(count)});
    }
};

/* Calls visit(golden name, address, count) for each gate's matrix and bias in a weight space. */
template <typename Visit> static void each_weight(const Network &n, void *space, Visit visit)
{
    TensorDescriptor matrix, bias;
    for (int p = 0; p < n.pseudo; p++)
        for (int id = 0; id < 2 * n.c.gates; id++) {
            void *matrix_address, *bias_address;
            EXPECT_OK(cudnnGetRNNWeightParams(n.handle, n.rnn, p, n.weight_bytes, space, id, matrix,
                                              &matrix_address, bias, &bias_address));
            std::string part = id < n.c.gates ? "ih_l" : "hh_l";
            part += std::to_string(p / n.c.directions) + (p % n.c.directions ? "r" : "");
            size_t count = golden(n.name + ".weight_" + part).size() / size_t(n.c.gates);
            visit("weight_" + part, id % n.c.gates, matrix_address, count);
            visit("bias_" + part, id % n.c.gates, bias_address, size_t(hidden));
        }
}

/* Weights into the space; then, of a space of gradients, comparison. */
static void put_weights(const Network &n, void *space)
{
    each_weight(n, space, [&](const std::string &part, int gate, void *address, size_t count) {
        const doubles &all = golden(n.name + "." + part);
        std::vector<float> values(all.begin() + long(count) * gate,
                                  all.begin() + long(count) * (gate + 1));
        EXPECT_OK(
            cudaMemcpy(address, values.data(), count * sizeof(float), cudaMemcpyHostToDevice));
    });
}

static void expect_weights(const Network &n, void *space)
{
    EXPECT_OK(cudaDeviceSynchronize());
    each_weight(n, space, [&](const std::string &part, int gate, void *address, size_t count) {
        const doubles &all = golden(n.name + ".d" + part);
        std::vector<float> values(count);
        EXPECT_OK(
            cudaMemcpy(values.data(), address, count * sizeof(float), cudaMemcpyDeviceToHost));
        expect_near({values.begin(), values.end()},
                    {all.begin() + long(count) * gate, all.begin() + long(count) * (gate + 1)},
                    part.c_str(), 2e-5);
    });
}

/* The gradient of padding is not the sequence's. */
static doubles unpadded(const Network &n, const doubles &values)
{
    doubles kept = values;
    size_t vector = values.size() / size_t(n.steps * n.batch);
    for (size_t i = 0; i < kept.size(); i++) {
        size_t row = i / vector;
        if (int(row / size_t(n.batch)) >= n.c.lengths[row % size_t(n.batch)])
            kept[i] = 0;
    }
    return kept;
}

static void train(const Case &c)
{
    Network n(c);
    bool lstm = c.cell == CUDNN_LSTM;
    doubles no_states(size_t(view_count(n.state_view)), 0.0);
    auto state = [&](const char *part) { return lstm ? golden(n.name + part) : no_states; };
    Buffer weights(n.bytes(n.weight_bytes)), workspace(n.bytes(n.workspace_bytes));
    Buffer reserve(n.bytes(n.reserve_bytes)), x(n.sequence(inputs), golden(n.name + ".x"));
    Buffer y(n.sequence(hidden * c.directions)), dx(n.sequence(inputs));
    Buffer dy(n.sequence(hidden * c.directions), golden(n.name + ".dy"));
    Buffer hx(n.state_view, golden(n.name + ".h")), hy(n.state_view), dhx(n.state_view);
    Buffer dhy(n.state_view, golden(n.name + ".dhy")), cx(n.state_view, state(".c")),
        cy(n.state_view);
    Buffer dcx(n.state_view), dcy(n.state_view, state(".dcy"));
    View whole = floats({int64_t(n.weight_bytes / sizeof(float))});
    Buffer dweights(whole, doubles(n.weight_bytes / sizeof(float), 0.0));
    doubles lengths(c.lengths.begin(), c.lengths.end());
    Buffer on_device(view_packed(Type::i32, {n.batch}), lengths);
    auto device_lengths = static_cast<const int32_t *>(on_device.get());
    put_weights(n, weights.get());

    EXPECT_OK(cudnnRNNForward(n.handle, n.rnn, CUDNN_FWD_MODE_TRAINING, device_lengths, n.x,
                              x.get(), n.y, y.get(), n.states, hx.get(), hy.get(), n.states,
                              cx.get(), cy.get(), n.weight_bytes, weights.get(), n.workspace_bytes,
                              workspace.get(), n.reserve_bytes, reserve.get()));
    expect_near(y.read(), golden(n.name + ".y"), "y");
    expect_near(hy.read(), golden(n.name + ".hy"), "hy");
    if (lstm)
        expect_near(cy.read(), golden(n.name + ".cy"), "cy");

    EXPECT_OK(cudnnRNNBackwardData_v8(
        n.handle, n.rnn, device_lengths, n.y, y.get(), dy.get(), n.x, dx.get(), n.states, hx.get(),
        dhy.get(), dhx.get(), n.states, cx.get(), dcy.get(), dcx.get(), n.weight_bytes,
        weights.get(), n.workspace_bytes, workspace.get(), n.reserve_bytes, reserve.get()));
    expect_near(dx.read(), unpadded(n, golden(n.name + ".dx")), "dx", 2e-5);
    expect_near(dhx.read(), golden(n.name + ".dh"), "dhx", 2e-5);
    if (lstm)
        expect_near(dcx.read(), golden(n.name + ".dc"), "dcx", 2e-5);

    EXPECT_OK(cudnnRNNBackwardWeights_v8(n.handle, n.rnn, CUDNN_WGRAD_MODE_ADD, device_lengths, n.x,
                                         x.get(), n.states, hx.get(), n.y, y.get(), n.weight_bytes,
                                         dweights.get(), n.workspace_bytes, workspace.get(),
                                         n.reserve_bytes, reserve.get()));
    expect_weights(n, dweights.get());
}

START_TEST(networks_are_pytorchs)
{
    for (auto &c : cases)
        train(c);
}
END_TEST

/* Without lengths on the device, without states, without a reserve space. */
START_TEST(inference_is_forward_alone)
{
    Network n(cases[2]);
    Buffer weights(n.bytes(n.weight_bytes)), workspace(n.bytes(n.workspace_bytes));
    Buffer x(n.sequence(inputs), golden("gru.x")), y(n.sequence(hidden));
    Buffer hx(n.state_view, golden("gru.h"));
    put_weights(n, weights.get());
    EXPECT_OK(cudnnRNNForward(n.handle, n.rnn, CUDNN_FWD_MODE_INFERENCE, nullptr, n.x, x.get(), n.y,
                              y.get(), n.states, hx.get(), nullptr, n.states, nullptr, nullptr,
                              n.weight_bytes, weights.get(), n.workspace_bytes, workspace.get(), 0,
                              nullptr));
    expect_near(y.read(), golden("gru.y"), "y");
}
END_TEST

/* Lengths on the device that are not the descriptor's. */
START_TEST(other_lengths_are_reported)
{
    Network n(cases[2]);
    Buffer weights(n.bytes(n.weight_bytes)), workspace(n.bytes(n.workspace_bytes));
    Buffer x(n.sequence(inputs), golden("gru.x")), y(n.sequence(hidden));
    Buffer lengths(view_packed(Type::i32, {n.batch}), {3, 2});
    put_weights(n, weights.get());
    EXPECT_OK(cudnnRNNForward(
        n.handle, n.rnn, CUDNN_FWD_MODE_INFERENCE, static_cast<const int32_t *>(lengths.get()), n.x,
        x.get(), n.y, y.get(), n.states, nullptr, nullptr, n.states, nullptr, nullptr,
        n.weight_bytes, weights.get(), n.workspace_bytes, workspace.get(), 0, nullptr));
    y.read();
    expect_finding("the device's length of sample 1 is 2, the descriptor's 3");
}
END_TEST

START_TEST(rnn_refuses)
{
    Network n(cases[0]);
    Buffer weights(n.bytes(n.weight_bytes)), workspace(n.bytes(n.workspace_bytes));
    Buffer reserve(n.bytes(n.reserve_bytes)), x(n.sequence(inputs), golden("lstm.x"));
    Buffer y(n.sequence(hidden));
    put_weights(n, weights.get());
    auto run = [&](cudnnRNNDataDescriptor_t y_desc, size_t workspace_bytes, size_t reserve_bytes) {
        return cudnnRNNForward(n.handle, n.rnn, CUDNN_FWD_MODE_TRAINING, nullptr, n.x, x.get(),
                               y_desc, y.get(), n.states, nullptr, nullptr, n.states, nullptr,
                               nullptr, n.weight_bytes, weights.get(), workspace_bytes,
                               workspace.get(), reserve_bytes, reserve.get());
    };
    EXPECT(run(n.y, n.workspace_bytes - 1, n.reserve_bytes),
           CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
    EXPECT(run(n.y, n.workspace_bytes, n.reserve_bytes - 1),
           CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT);
    EXPECT(run(n.x, n.workspace_bytes, n.reserve_bytes), CUDNN_STATUS_BAD_PARAM);
    EXPECT_OK(run(n.y, n.workspace_bytes, n.reserve_bytes));
    EXPECT(cudnnRNNBackwardWeights_v8(n.handle, n.rnn, CUDNN_WGRAD_MODE_SET, nullptr, n.x, x.get(),
                                      n.states, nullptr, n.y, y.get(), n.weight_bytes,
                                      weights.get(), n.workspace_bytes, workspace.get(),
                                      n.reserve_bytes, reserve.get()),
           CUDNN_STATUS_NOT_SUPPORTED);
    const int rising[] = {2, 4, 4};
    EXPECT(cudnnSetRNNDataDescriptor(n.x, CUDNN_DATA_FLOAT, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED,
                                     4, 3, inputs, rising, nullptr),
           CUDNN_STATUS_BAD_PARAM);
}
END_TEST

int main()
{
    return run_suite("cudnn_rnn", {networks_are_pytorchs, inference_is_forward_alone,
                                   other_lengths_are_reported, rnn_refuses});
}
