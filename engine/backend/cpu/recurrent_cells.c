/* recurrent_cells.c: see recurrent_cells.h. */
#include "engine/backend/cpu/recurrent_cells.h"

#include "engine/backend/cpu/vector.h"
#include "engine/ops/attr.h"

VECTOR_CLONES static void lstm_step(const struct cell_rows *rows)
{
    const int64_t h = rows->size;
    const float *x = rows->in, *hidden = rows->hidden, *before = rows->state_before;
    float *gates = rows->gates, *state = rows->state, *y = rows->y;
#pragma omp simd
    for (int64_t k = 0; k < h; k++) {
        float i = vector_sigmoid(x[k] + hidden[k]);
        float f = vector_sigmoid(x[h + k] + hidden[h + k]);
        float g = vector_tanh(x[2 * h + k] + hidden[2 * h + k]);
        float o = vector_sigmoid(x[3 * h + k] + hidden[3 * h + k]);
        float c = f * before[k] + i * g;
        gates[k] = i;
        gates[h + k] = f;
        gates[2 * h + k] = g;
        gates[3 * h + k] = o;
        state[k] = c;
        y[k] = o * vector_tanh(c);
    }
}

VECTOR_CLONES static void lstm_grad(const struct cell_grad_rows *rows)
{
    const int64_t h = rows->size;
    const float *gy = rows->gy, *gates = rows->gates, *state = rows->state;
    const float *before = rows->state_before;
    float *carry = rows->carry, *state_carry = rows->state_carry, *in = rows->in;
#pragma omp simd
    for (int64_t k = 0; k < h; k++) {
        float i = gates[k], f = gates[h + k], g = gates[2 * h + k], o = gates[3 * h + k];
        float c = vector_tanh(state[k]), gh = gy[k] + carry[k];
        float gc = state_carry[k] + gh * o * (1 - c * c);
        in[k] = gc * g * i * (1 - i);
        in[h + k] = gc * before[k] * f * (1 - f);
        in[2 * h + k] = gc * i * (1 - g * g);
        in[3 * h + k] = gh * c * o * (1 - o);
        state_carry[k] = gc * f;
        carry[k] = 0;
    }
}

VECTOR_CLONES static void gru_step(const struct cell_rows *rows)
{
    const int64_t h = rows->size;
    const float *x = rows->in, *hidden = rows->hidden, *before = rows->before;
    float *gates = rows->gates, *state = rows->state, *y = rows->y;
#pragma omp simd
    for (int64_t k = 0; k < h; k++) {
        float r = vector_sigmoid(x[k] + hidden[k]);
        float z = vector_sigmoid(x[h + k] + hidden[h + k]);
        float hn = hidden[2 * h + k];
        float n = vector_tanh(x[2 * h + k] + r * hn);
        gates[k] = r;
        gates[h + k] = z;
        gates[2 * h + k] = n;
        state[k] = hn;
        y[k] = (1 - z) * n + z * before[k];
    }
}

VECTOR_CLONES static void gru_grad(const struct cell_grad_rows *rows)
{
    const int64_t h = rows->size;
    const float *gy = rows->gy, *gates = rows->gates, *state = rows->state;
    const float *before = rows->before;
    float *carry = rows->carry, *in = rows->in, *hidden = rows->hidden;
#pragma omp simd
    for (int64_t k = 0; k < h; k++) {
        float r = gates[k], z = gates[h + k], n = gates[2 * h + k], gh = gy[k] + carry[k];
        float gn = gh * (1 - z) * (1 - n * n);
        float gz = gh * (before[k] - n) * z * (1 - z);
        float gr = gn * state[k] * r * (1 - r);
        in[k] = hidden[k] = gr;
        in[h + k] = hidden[h + k] = gz;
        in[2 * h + k] = gn;
        hidden[2 * h + k] = gn * r;
        carry[k] = gh * z;
    }
}

VECTOR_CLONES static void tanh_step(const struct cell_rows *rows)
{
    const float *x = rows->in, *hidden = rows->hidden;
    float *y = rows->y;
#pragma omp simd
    for (int64_t k = 0; k < rows->size; k++)
        y[k] = vector_tanh(x[k] + hidden[k]);
}

VECTOR_CLONES static void tanh_grad(const struct cell_grad_rows *rows)
{
    const float *gy = rows->gy, *y = rows->y;
    float *carry = rows->carry, *in = rows->in;
#pragma omp simd
    for (int64_t k = 0; k < rows->size; k++) {
        in[k] = (gy[k] + carry[k]) * (1 - y[k] * y[k]);
        carry[k] = 0;
    }
}

VECTOR_CLONES static void relu_step(const struct cell_rows *rows)
{
    const float *x = rows->in, *hidden = rows->hidden;
    float *y = rows->y;
#pragma omp simd
    for (int64_t k = 0; k < rows->size; k++) {
        float sum = x[k] + hidden[k];
        y[k] = sum < 0 ? 0 : sum; /* a NaN stays */
    }
}

VECTOR_CLONES static void relu_grad(const struct cell_grad_rows *rows)
{
    const float *gy = rows->gy, *y = rows->y;
    float *carry = rows->carry, *in = rows->in;
#pragma omp simd
    for (int64_t k = 0; k < rows->size; k++) {
        in[k] = y[k] > 0 ? gy[k] + carry[k] : 0;
        carry[k] = 0;
    }
}

const struct cell recurrent_cells[] = {
    [CELL_LSTM] = {lstm_step, lstm_grad},
    [CELL_GRU] = {gru_step, gru_grad},
    [CELL_TANH] = {tanh_step, tanh_grad},
    [CELL_RELU] = {relu_step, relu_grad},
};
