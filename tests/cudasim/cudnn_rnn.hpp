/* cudnn_rnn.hpp: recurrent networks as the two files of them see them. */
#ifndef TESTS_CUDASIM_CUDNN_RNN_HPP
#define TESTS_CUDASIM_CUDNN_RNN_HPP

#include "tests/cudasim/cudnn.hpp"
#include "tests/cudasim/loops.hpp"

struct cudnnRNNStruct {
    cudnnRNNMode_t cell;
    cudnnRNNBiasMode_t bias;
    bool bidirectional, padded_io;
    sim::Type type;
    int64_t inputs, hidden, layers; /* hidden 0: not set */
};

struct cudnnRNNDataStruct {
    sim::Type type;
    cudnnRNNDataLayout_t layout;
    int64_t steps, batch, vector;
    std::vector<int64_t> lengths; /* empty: not set */
    bool fills;
    double fill; /* for steps behind a sample's length */
};

namespace sim
{

using Rnn = cudnnRNNStruct;
using RnnData = cudnnRNNDataStruct;

/* A pseudo-layer is a layer's direction: layer * directions + direction. */
int64_t rnn_directions(const Rnn &rnn);
int64_t rnn_pseudo_layers(const Rnn &rnn);
int64_t rnn_gates(const Rnn &rnn);
int64_t rnn_inputs(const Rnn &rnn, int64_t pseudo); /* of the layer's matrices */

/* Where parts of the weight space begin, in elements; part r is behind w, then all layers' biases.
 */
struct RnnOffsets {
    int64_t w, r, bw, br; /* bw, br: -1 where the bias mode has none */
};
RnnOffsets rnn_offsets(const Rnn &rnn, int64_t pseudo);
int64_t rnn_weight_count(const Rnn &rnn);

/* The reserve space: what the forward pass leaves and what the data gradient adds, floats a
 * pseudo-layer. */
struct RnnReserve {
    int64_t rows, gates, state, y; /* counts of elements; rows: steps * batch */
    int64_t trace_count() const
    {
        return gates + state + y;
    }
    int64_t grads_count() const
    {
        return 2 * gates;
    }
};
RnnReserve rnn_reserve(const Rnn &rnn, const RnnData &x);
size_t rnn_trace_bytes(const Rnn &rnn, const RnnData &x); /* the first part of the reserve space */
size_t rnn_reserve_bytes(const Rnn &rnn, const RnnData &x);
size_t rnn_workspace_bytes(const Rnn &rnn, const RnnData &x);

/* The element at which a step's vector begins; only for steps within the sample's length where
 * packed. */
int64_t rnn_data_offset(const RnnData &data, int64_t step, int64_t sample);

/* The bytes of the steps within the samples' lengths; with `padding` all. */
std::vector<Span> rnn_data_spans(const RnnData &data, bool padding);

/* [steps, batch, vector], zero behind a sample's length. */
doubles rnn_data_load(const RnnData &data, const void *memory);
void rnn_data_store(const RnnData &data, void *memory, const doubles &values);

} // namespace sim

#endif
