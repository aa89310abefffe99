/* recurrent.c: recurrent, recurrent_grad and shift, step by step: torch.nn.LSTM, GRU and RNN by
 * their documentation's formulas. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/attr.h"
#include "tests/ref/ref.h"

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static void clear(double *data, const struct shape *shape)
{
    memset(data, 0, (size_t)shape_count(shape) * sizeof *data);
}

/* The valid steps of sample n. */
static int64_t length(const struct shape *x, const double *lengths, int64_t n)
{
    return lengths ? (int64_t)lengths[n] : x->dim[1];
}

/* The step that comes i-th of `length` in the node's direction. */
static int64_t step_at(const struct node *node, int64_t i, int64_t length)
{
    const struct recurrent_attr *attr = node->attr;
    return attr->onward.by > 0 ? i : length - 1 - i;
}

/* Everything of one step of one sample. */
struct moment {
    int64_t size;
    const double *x, *hidden; /* the two parts of the gates */
    const double *y_before, *state_before;
    double *y, *gates, *state;
};

static void lstm(const struct moment *m)
{
    int64_t h = m->size;
    for (int64_t k = 0; k < h; k++) {
        double i = sigmoid(m->x[k] + m->hidden[k]);
        double f = sigmoid(m->x[h + k] + m->hidden[h + k]);
        double g = tanh(m->x[2 * h + k] + m->hidden[2 * h + k]);
        double o = sigmoid(m->x[3 * h + k] + m->hidden[3 * h + k]);
        m->state[k] = f * m->state_before[k] + i * g;
        m->y[k] = o * tanh(m->state[k]);
        m->gates[k] = i, m->gates[h + k] = f, m->gates[2 * h + k] = g, m->gates[3 * h + k] = o;
    }
}

static void gru(const struct moment *m)
{
    int64_t h = m->size;
    for (int64_t k = 0; k < h; k++) {
        double r = sigmoid(m->x[k] + m->hidden[k]);
        double z = sigmoid(m->x[h + k] + m->hidden[h + k]);
        double n = tanh(m->x[2 * h + k] + r * m->hidden[2 * h + k]);
        m->state[k] = m->hidden[2 * h + k];
        m->y[k] = (1 - z) * n + z * m->y_before[k];
        m->gates[k] = r, m->gates[h + k] = z, m->gates[2 * h + k] = n;
    }
}

static void rnn_tanh(const struct moment *m)
{
    for (int64_t k = 0; k < m->size; k++)
        m->y[k] = tanh(m->x[k] + m->hidden[k]);
}

static void rnn_relu(const struct moment *m)
{
    for (int64_t k = 0; k < m->size; k++)
        m->y[k] = fmax(m->x[k] + m->hidden[k], 0);
}

/* Of one step, back: gradients of y and of the LSTM's state come in `gy` and `gstate`; out go those
 * of the two parts of the gates, what of y's goes past the gates, and the state's before. */
struct grad_moment {
    int64_t size;
    const double *y, *y_before, *gates, *state, *state_before, *gy;
    double *gx, *ghidden, *past, *gstate;
};

static void lstm_grad(const struct grad_moment *m)
{
    int64_t h = m->size;
    for (int64_t k = 0; k < h; k++) {
        double i = m->gates[k], f = m->gates[h + k], g = m->gates[2 * h + k];
        double o = m->gates[3 * h + k], t = tanh(m->state[k]);
        double gc = m->gstate[k] + m->gy[k] * o * (1 - t * t);
        m->gx[k] = gc * g * i * (1 - i);
        m->gx[h + k] = gc * m->state_before[k] * f * (1 - f);
        m->gx[2 * h + k] = gc * i * (1 - g * g);
        m->gx[3 * h + k] = m->gy[k] * t * o * (1 - o);
        m->gstate[k] = gc * f;
        m->past[k] = 0;
    }
    memcpy(m->ghidden, m->gx, (size_t)(4 * h) * sizeof *m->gx);
}

static void gru_grad(const struct grad_moment *m)
{
    int64_t h = m->size;
    for (int64_t k = 0; k < h; k++) {
        double r = m->gates[k], z = m->gates[h + k], n = m->gates[2 * h + k];
        double gn = m->gy[k] * (1 - z) * (1 - n * n);
        m->gx[k] = m->ghidden[k] = gn * m->state[k] * r * (1 - r);
        m->gx[h + k] = m->ghidden[h + k] = m->gy[k] * (m->y_before[k] - n) * z * (1 - z);
        m->gx[2 * h + k] = gn;
        m->ghidden[2 * h + k] = gn * r;
        m->past[k] = m->gy[k] * z;
    }
}

static void rnn_tanh_grad(const struct grad_moment *m)
{
    for (int64_t k = 0; k < m->size; k++) {
        m->gx[k] = m->ghidden[k] = m->gy[k] * (1 - m->y[k] * m->y[k]);
        m->past[k] = 0;
    }
}

static void rnn_relu_grad(const struct grad_moment *m)
{
    for (int64_t k = 0; k < m->size; k++) {
        m->gx[k] = m->ghidden[k] = m->y[k] > 0 ? m->gy[k] : 0;
        m->past[k] = 0;
    }
}

static const struct {
    void (*forward)(const struct moment *m);
    void (*backward)(const struct grad_moment *m);
} cells[CELL_COUNT] = {
    [CELL_LSTM] = {lstm, lstm_grad},
    [CELL_GRU] = {gru, gru_grad},
    [CELL_TANH] = {rnn_tanh, rnn_tanh_grad},
    [CELL_RELU] = {rnn_relu, rnn_relu_grad},
};

void ref_recurrent(const struct node *node, double *const *in, double *const *out,
                   const struct step *step)
{
    (void)step;
    const struct recurrent_attr *attr = node->attr;
    const struct shape *x = &node->in[0]->shape;
    int64_t h = node->in[1]->shape.dim[1], width = x->dim[2];
    size_t row = (size_t)h * sizeof(double);
    double *zeros = calloc(1, row), *hidden = malloc((size_t)width * sizeof *hidden);
    double *states = calloc((size_t)(x->dim[0] * x->dim[1]), row);
    double *gates = calloc((size_t)shape_count(x), sizeof *gates);
    clear(out[0], &node->out[0]->shape);
    for (int64_t n = 0; n < x->dim[0]; n++) {
        int64_t last = length(x, in[3], n);
        double *y = out[0] + n * x->dim[1] * h, *state = states + n * x->dim[1] * h;
        const double *y_before = zeros, *state_before = zeros;
        for (int64_t i = 0; i < last; i++) {
            int64_t t = step_at(node, i, last), at = n * x->dim[1] + t;
            for (int64_t j = 0; j < width; j++) {
                hidden[j] = in[2] ? in[2][j] : 0;
                for (int64_t k = 0; k < h; k++)
                    hidden[j] += in[1][j * h + k] * y_before[k];
            }
            cells[attr->cell].forward(&(struct moment){
                .size = h,
                .x = in[0] + at * width,
                .hidden = hidden,
                .y_before = y_before,
                .state_before = state_before,
                .y = y + t * h,
                .gates = gates + at * width,
                .state = state + t * h,
            });
            y_before = y + t * h, state_before = state + t * h;
        }
    }
    if (out[1])
        memcpy(out[1], gates, (size_t)shape_count(x) * sizeof *gates);
    if (out[2])
        memcpy(out[2], states, (size_t)(x->dim[0] * x->dim[1]) * row);
    free(zeros), free(hidden), free(states), free(gates);
}

void ref_recurrent_grad(const struct node *node, double *const *in, double *const *out,
                        const struct step *step)
{
    (void)step;
    const struct recurrent_attr *attr = node->attr;
    const struct shape *x = &node->out[0]->shape;
    int64_t h = node->in[2]->shape.dim[1], width = x->dim[2];
    double *zeros = calloc((size_t)h, sizeof *zeros), *gy = malloc((size_t)h * sizeof *gy);
    double *past = malloc((size_t)h * sizeof *past), *gstate = malloc((size_t)h * sizeof *gstate);
    double *ghidden = calloc((size_t)shape_count(x), sizeof *ghidden);
    clear(out[0], x);
    for (int64_t n = 0; n < x->dim[0]; n++) {
        int64_t last = length(x, in[5], n), first = n * x->dim[1];
        memset(past, 0, (size_t)h * sizeof *past);
        memset(gstate, 0, (size_t)h * sizeof *gstate);
        for (int64_t i = last - 1; i >= 0; i--) {
            int64_t at = first + step_at(node, i, last);
            int64_t before = i > 0 ? first + step_at(node, i - 1, last) : -1;
            for (int64_t k = 0; k < h; k++)
                gy[k] = in[0][at * h + k] + past[k];
            cells[attr->cell].backward(&(struct grad_moment){
                .size = h,
                .y = in[1] + at * h,
                .y_before = before < 0 ? zeros : in[1] + before * h,
                .gates = in[3] ? in[3] + at * width : NULL,
                .state = in[4] ? in[4] + at * h : NULL,
                .state_before = before < 0 || !in[4] ? zeros : in[4] + before * h,
                .gy = gy,
                .gx = out[0] + at * width,
                .ghidden = ghidden + at * width,
                .past = past,
                .gstate = gstate,
            });
            for (int64_t j = 0; j < width; j++)
                for (int64_t k = 0; k < h; k++)
                    past[k] += ghidden[at * width + j] * in[2][j * h + k];
        }
    }
    if (out[1])
        memcpy(out[1], ghidden, (size_t)shape_count(x) * sizeof *ghidden);
    free(zeros), free(gy), free(past), free(gstate), free(ghidden);
}

void ref_shift(const struct node *node, double *const *in, double *const *out,
               const struct step *step)
{
    (void)step;
    const struct shift_attr *attr = node->attr;
    const struct shape *x = &node->in[0]->shape;
    int64_t row = x->dim[2];
    for (int64_t i = 0; i < shape_count(x); i++) {
        int64_t from = i / row % x->dim[1] - attr->by;
        out[0][i] = from < 0 || from >= x->dim[1] ? 0 : in[0][i - attr->by * row];
    }
}
