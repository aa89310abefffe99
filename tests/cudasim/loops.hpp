/* loops.hpp: the arithmetic of the simulated libraries. PURE: dense row-major doubles in, the same
 * out.
 *
 * Each function is its definition as plain loops. What a library call adds (types, strides, alpha
 * and beta, what it refuses) lies with the call. Outputs are returned or overwritten, never added
 * to.
 */
#ifndef TESTS_CUDASIM_LOOPS_HPP
#define TESTS_CUDASIM_LOOPS_HPP

#include "tests/cudasim/number.hpp"

namespace sim
{

/* loops_gemm.cc */
struct Gemm {
    int64_t m, n, k;
};
doubles gemm(const Gemm &g, const double *a, const double *b); /* a [m, k] times b [k, n] */
double gelu_tanh(double x);
double gelu_tanh_grad(double x); /* the derivative at x */

/* loops_conv.cc. x [n, c, h, w], filter [k, c / groups, r, s], y [n, k, p, q]; cross-correlation.
 */
struct Conv {
    int64_t n, c, h, w, k, r, s, p, q, groups;
    int64_t pad[2], stride[2], dilation[2];
};
doubles conv_forward(const Conv &conv, const doubles &x, const doubles &filter);
doubles conv_backward_data(const Conv &conv, const doubles &filter, const doubles &dy);
doubles conv_backward_filter(const Conv &conv, const doubles &x, const doubles &dy);

/* loops_norm.cc. x [n, c, pixels]; a channel's values are normalised together. */
struct Norm {
    int64_t n, c, pixels;
    double epsilon;
};
struct NormMoments {
    doubles mean, variance; /* [c], the biased variance */
};
struct NormGrads {
    doubles dx, dscale, dbias;
};
NormMoments norm_moments(const Norm &norm, const doubles &x);
doubles norm_apply(const Norm &norm, const doubles &x, const doubles &mean, const doubles &inverse,
                   const doubles &scale, const doubles &bias);
NormGrads norm_backward(const Norm &norm, const doubles &x, const doubles &dy, const doubles &scale,
                        const doubles &mean, const doubles &inverse);
doubles norm_inverse(const Norm &norm, const doubles &variance); /* 1 / sqrt(variance + epsilon) */

/* loops_pool.cc. x [planes, h, w], y [planes, p, q]. */
enum class PoolMode { max, average_with_padding, average_without_padding };
struct Pool {
    PoolMode mode;
    bool propagate_nan;
    int64_t planes, h, w, p, q;
    int64_t window[2], pad[2], stride[2];
};
doubles pool_forward(const Pool &pool, const doubles &x);
/* max: dy goes to the first of a window that equals y (NaN equals NaN). */
doubles pool_backward(const Pool &pool, const doubles &x, const doubles &y, const doubles &dy);

/* loops_softmax.cc. x [outer, classes, inner]. */
enum class SoftmaxMode { fast, accurate, log };
struct Softmax {
    SoftmaxMode mode;
    int64_t outer, classes, inner;
};
doubles softmax_forward(const Softmax &softmax, const doubles &x);
doubles softmax_backward(const Softmax &softmax, const doubles &y, const doubles &dy);

/* loops_rnn.cc. One layer and direction; every gate's part of weights in cuDNN's order. */
enum class Cell { relu, tanh, lstm, gru };
int cell_gates(Cell cell);
struct RnnShape {
    Cell cell;
    int64_t steps, batch, inputs, hidden;
    bool reverse;
    std::vector<int64_t> lengths; /* [batch], steps of each sample */
};
struct RnnWeights {
    doubles w, r, bw,
        br; /* [gates, hidden, inputs], [gates, hidden, hidden], [gates, hidden] twice */
};
struct RnnStates {
    doubles h, c; /* [batch, hidden]; c: the LSTM's alone */
};
struct RnnTrace {  /* what the gradient needs */
    doubles y;     /* [steps, batch, hidden], zero behind a sample's length */
    doubles gates; /* [steps, batch, gates, hidden], after their nonlinearities */
    doubles
        state; /* [steps, batch, hidden]: the LSTM's cell, the GRU's hidden part of its new gate */
    RnnStates last;
};
struct RnnGrads {
    doubles dx, dgates_x, dgates_h; /* [steps, batch, inputs]; of the gates' two sums, [steps,
                                       batch, gates, hidden] */
    RnnStates first;
};
RnnTrace rnn_forward(const RnnShape &shape, const RnnWeights &weights, const RnnStates &first,
                     const doubles &x);
RnnGrads rnn_backward(const RnnShape &shape, const RnnWeights &weights, const RnnStates &first,
                      const RnnTrace &trace, const doubles &dy, const RnnStates &dlast);
RnnWeights rnn_backward_weights(const RnnShape &shape, const RnnStates &first, const doubles &x,
                                const RnnTrace &trace, const RnnGrads &grads);

} // namespace sim

#endif
