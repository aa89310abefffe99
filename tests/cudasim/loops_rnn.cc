/* loops_rnn.cc: one layer and direction of an RNN, LSTM or GRU, step by step, by the formulas of
 * cuDNN's guide (which are PyTorch's: the GRU's reset gate is applied behind the recurrent product
 * and its bias).
 *
 * A step's gates are two sums, of the input (gx = W x + bW) and of the state (gh = R h + bR). A
 * cell turns them into the new state, and on the way back the gradients of h and c into those of
 * the two sums.
 */
#include "tests/cudasim/loops.hpp"

#include <algorithm>
#include <cmath>

namespace sim
{

static double sigmoid(double x)
{
    return 1 / (1 + std::exp(-x));
}

struct Moment { /* one unit of one step of one sample; gates lie `hidden` apart */
    int64_t hidden;
    const double *gx, *gh;
    double *gates;
    double *state; /* kept for the gradient */
    double h, c;   /* before the step; the cell writes what is after it */
};

static void relu_step(Moment *m)
{
    double sum = m->gx[0] + m->gh[0];
    m->h = m->gates[0] = sum < 0 ? 0 : sum;
}

static void tanh_step(Moment *m)
{
    m->h = m->gates[0] = std::tanh(m->gx[0] + m->gh[0]);
}

static void lstm_step(Moment *m)
{
    int64_t s = m->hidden;
    for (int g = 0; g < 4; g++) {
        double sum = m->gx[g * s] + m->gh[g * s];
        m->gates[g * s] = g == 2 ? std::tanh(sum) : sigmoid(sum);
    }
    m->c = m->gates[s] * m->c + m->gates[0] * m->gates[2 * s];
    m->h = m->gates[3 * s] * std::tanh(m->c);
    *m->state = m->c;
}

static void gru_step(Moment *m)
{
    int64_t s = m->hidden;
    double r = sigmoid(m->gx[0] + m->gh[0]), z = sigmoid(m->gx[s] + m->gh[s]);
    double n = std::tanh(m->gx[2 * s] + r * m->gh[2 * s]);
    *m->state = m->gh[2 * s];
    m->h = (1 - z) * n + z * m->h;
    m->gates[0] = r, m->gates[s] = z, m->gates[2 * s] = n;
}

struct GradMoment {
    int64_t hidden;
    const double *gates;
    double state, h_before, c_before;
    double dh, dc; /* after the step; the cell writes what goes past the gates to the step before */
    double *dgx, *dgh;
};

static void relu_back(GradMoment *m)
{
    *m->dgx = *m->dgh = m->gates[0] > 0 ? m->dh : 0;
    m->dh = 0;
}

static void tanh_back(GradMoment *m)
{
    *m->dgx = *m->dgh = m->dh * (1 - m->gates[0] * m->gates[0]);
    m->dh = 0;
}

static void lstm_back(GradMoment *m)
{
    int64_t s = m->hidden;
    double i = m->gates[0], f = m->gates[s], g = m->gates[2 * s], o = m->gates[3 * s];
    double t = std::tanh(m->state), dc = m->dc + m->dh * o * (1 - t * t);
    m->dgx[0] = dc * g * i * (1 - i);
    m->dgx[s] = dc * m->c_before * f * (1 - f);
    m->dgx[2 * s] = dc * i * (1 - g * g);
    m->dgx[3 * s] = m->dh * t * o * (1 - o);
    for (int k = 0; k < 4; k++)
        m->dgh[k * s] = m->dgx[k * s];
    m->dc = dc * f;
    m->dh = 0;
}

static void gru_back(GradMoment *m)
{
    int64_t s = m->hidden;
    double r = m->gates[0], z = m->gates[s], n = m->gates[2 * s];
    double dn = m->dh * (1 - z) * (1 - n * n);
    m->dgx[0] = m->dgh[0] = dn * m->state * r * (1 - r);
    m->dgx[s] = m->dgh[s] = m->dh * (m->h_before - n) * z * (1 - z);
    m->dgx[2 * s] = dn;
    m->dgh[2 * s] = dn * r;
    m->dh *= z;
}

static const struct {
    int gates;
    void (*step)(Moment *m);
    void (*back)(GradMoment *m);
} cells[] = {
    {1, relu_step, relu_back},
    {1, tanh_step, tanh_back},
    {4, lstm_step, lstm_back},
    {3, gru_step, gru_back},
};

int cell_gates(Cell cell)
{
    return cells[int(cell)].gates;
}

/* sums[row] = b[row] + sum over columns of m[row, column] * v[column] */
static doubles affine(const doubles &m, const doubles &b, const double *v, int64_t columns)
{
    doubles sums = b;
    for (size_t row = 0; row < sums.size(); row++)
        for (int64_t k = 0; k < columns; k++)
            sums[row] += m[row * size_t(columns) + size_t(k)] * v[k];
    return sums;
}

/* v += transposed m times g */
static void add_transposed(const doubles &m, const double *g, int64_t rows, int64_t columns,
                           double *v)
{
    for (int64_t row = 0; row < rows; row++)
        for (int64_t k = 0; k < columns; k++)
            v[k] += m[size_t(row * columns + k)] * g[row];
}

/* m += g times transposed v */
static void add_outer(const double *g, const double *v, int64_t rows, int64_t columns, doubles *m)
{
    for (int64_t row = 0; row < rows; row++)
        for (int64_t k = 0; k < columns; k++)
            (*m)[size_t(row * columns + k)] += g[row] * v[k];
}

/* The row in [steps, batch] of the i-th step that sample b walks. */
static int64_t walked(const RnnShape &v, int64_t b, int64_t i)
{
    int64_t step = v.reverse ? v.lengths[size_t(b)] - 1 - i : i;
    return step * v.batch + b;
}

RnnTrace rnn_forward(const RnnShape &v, const RnnWeights &weights, const RnnStates &first,
                     const doubles &x)
{
    size_t rows = size_t(v.steps * v.batch), h = size_t(v.hidden);
    size_t gates = size_t(cell_gates(v.cell)) * h;
    RnnTrace trace = {doubles(rows * h), doubles(rows * gates), doubles(rows * h), first};
    for (int64_t b = 0; b < v.batch; b++) {
        double *hidden = &trace.last.h[size_t(b) * h], *cell = &trace.last.c[size_t(b) * h];
        for (int64_t i = 0; i < v.lengths[size_t(b)]; i++) {
            size_t row = size_t(walked(v, b, i));
            doubles gx = affine(weights.w, weights.bw, &x[row * size_t(v.inputs)], v.inputs);
            doubles gh = affine(weights.r, weights.br, hidden, v.hidden);
            for (size_t k = 0; k < h; k++) {
                Moment m = {v.hidden,
                            &gx[k],
                            &gh[k],
                            &trace.gates[row * gates + k],
                            &trace.state[row * h + k],
                            hidden[k],
                            cell[k]};
                cells[int(v.cell)].step(&m);
                hidden[k] = trace.y[row * h + k] = m.h;
                cell[k] = m.c;
            }
        }
    }
    return trace;
}

/* The state ahead of sample b's i-th step, of what is kept by row (y or the LSTM's cell). */
static const double *before(const RnnShape &v, const doubles &kept, const doubles &first, int64_t b,
                            int64_t i)
{
    return i == 0 ? &first[size_t(b * v.hidden)] : &kept[size_t(walked(v, b, i - 1) * v.hidden)];
}

RnnGrads rnn_backward(const RnnShape &v, const RnnWeights &weights, const RnnStates &first,
                      const RnnTrace &trace, const doubles &dy, const RnnStates &dlast)
{
    size_t rows = size_t(v.steps * v.batch), h = size_t(v.hidden), inputs = size_t(v.inputs);
    size_t gates = size_t(cell_gates(v.cell)) * h;
    RnnGrads grads = {doubles(rows * inputs), doubles(rows * gates), doubles(rows * gates), dlast};
    for (int64_t b = 0; b < v.batch; b++) {
        double *dh = &grads.first.h[size_t(b) * h], *dc = &grads.first.c[size_t(b) * h];
        for (int64_t i = v.lengths[size_t(b)] - 1; i >= 0; i--) {
            size_t row = size_t(walked(v, b, i));
            const double *h_before = before(v, trace.y, first.h, b, i);
            const double *c_before = before(v, trace.state, first.c, b, i);
            for (size_t k = 0; k < h; k++) {
                size_t gate = row * gates + k;
                GradMoment m = {v.hidden,    &trace.gates[gate],    trace.state[row * h + k],
                                h_before[k], c_before[k],           dh[k] + dy[row * h + k],
                                dc[k],       &grads.dgates_x[gate], &grads.dgates_h[gate]};
                cells[int(v.cell)].back(&m);
                dh[k] = m.dh, dc[k] = m.dc;
            }
            add_transposed(weights.r, &grads.dgates_h[row * gates], int64_t(gates), v.hidden, dh);
            add_transposed(weights.w, &grads.dgates_x[row * gates], int64_t(gates), v.inputs,
                           &grads.dx[row * inputs]);
        }
    }
    return grads;
}

RnnWeights rnn_backward_weights(const RnnShape &v, const RnnStates &first, const doubles &x,
                                const RnnTrace &trace, const RnnGrads &grads)
{
    int64_t gates = cell_gates(v.cell) * v.hidden;
    RnnWeights dw = {doubles(size_t(gates * v.inputs)), doubles(size_t(gates * v.hidden)),
                     doubles(size_t(gates)), doubles(size_t(gates))};
    for (int64_t b = 0; b < v.batch; b++)
        for (int64_t i = 0; i < v.lengths[size_t(b)]; i++) {
            int64_t row = walked(v, b, i);
            const double *gx = &grads.dgates_x[size_t(row * gates)];
            const double *gh = &grads.dgates_h[size_t(row * gates)];
            add_outer(gx, &x[size_t(row * v.inputs)], gates, v.inputs, &dw.w);
            add_outer(gh, before(v, trace.y, first.h, b, i), gates, v.hidden, &dw.r);
            std::transform(gx, gx + gates, dw.bw.begin(), dw.bw.begin(), std::plus<double>());
            std::transform(gh, gh + gates, dw.br.begin(), dw.br.begin(), std::plus<double>());
        }
    return dw;
}

} // namespace sim
