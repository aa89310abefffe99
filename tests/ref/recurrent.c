/* recurrent.c: recurrent and recurrent_grad, step by step: torch.nn.LSTM, GRU and RNN by
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
    return attr->by > 0 ? i : length - 1 - i;
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

/* Where a step lies in [T, N, columns], counted as the walk goes. */
static int64_t walked(const struct node *node, const struct shape *x, int64_t n, int64_t t)
{
    const struct recurrent_attr *attr = node->attr;
    return (attr->by > 0 ? t : x->dim[1] - 1 - t) * x->dim[0] + n;
}

/* to [rows] = from [columns] · weight [rows, columns]' + bias */
static void product(const double *from, int64_t columns, const double *weight, const double *bias,
                    int64_t rows, double *to)
{
    for (int64_t j = 0; j < rows; j++) {
        to[j] = bias ? bias[j] : 0;
        for (int64_t k = 0; k < columns; k++)
            to[j] += weight[j * columns + k] * from[k];
    }
}

/* All of a pass over x; what is by step of the walk: [T, N, …]. */
struct pass {
    int64_t size, width, features;
    double *y;              /* [N, T, H] */
    double *states, *gates; /* [T, N, H], [T, N, G * H] */
};

static void run_pass(const struct node *node, int first, double *const *in, struct pass *pass)
{
    const struct recurrent_attr *attr = node->attr;
    const struct shape *x = &node->in[first]->shape;
    int64_t h = pass->size, width = pass->width, f = pass->features;
    double *zeros = calloc((size_t)h, sizeof *zeros);
    double *hidden = malloc((size_t)width * sizeof *hidden);
    double *input = malloc((size_t)width * sizeof *input);
    for (int64_t n = 0; n < x->dim[0]; n++) {
        int64_t last = length(x, in[first + 5], n);
        double *y = pass->y + n * x->dim[1] * h;
        const double *y_before = zeros, *state_before = zeros;
        for (int64_t i = 0; i < last; i++) {
            int64_t t = step_at(node, i, last), at = walked(node, x, n, t);
            product(in[first] + (n * x->dim[1] + t) * f, f, in[first + 1], in[first + 3], width,
                    input);
            product(y_before, h, in[first + 2], in[first + 4], width, hidden);
            cells[attr->cell].forward(&(struct moment){
                .size = h,
                .x = input,
                .hidden = hidden,
                .y_before = y_before,
                .state_before = state_before,
                .y = y + t * h,
                .gates = pass->gates + at * width,
                .state = pass->states + at * h,
            });
            y_before = y + t * h, state_before = pass->states + at * h;
        }
    }
    free(zeros), free(hidden), free(input);
}

static struct pass new_pass(const struct node *node, int first, double *const *in)
{
    const struct shape *x = &node->in[first]->shape, *w = &node->in[first + 2]->shape;
    size_t rows = (size_t)(x->dim[0] * x->dim[1]);
    struct pass pass = {.size = w->dim[1], .width = w->dim[0], .features = x->dim[2]};
    pass.y = calloc(rows * (size_t)pass.size, sizeof *pass.y);
    pass.states = calloc(rows * (size_t)pass.size, sizeof *pass.states);
    pass.gates = calloc(rows * (size_t)pass.width, sizeof *pass.gates);
    run_pass(node, first, in, &pass);
    return pass;
}

static void free_pass(struct pass *pass)
{
    free(pass->y), free(pass->states), free(pass->gates);
}

/* y and the cell's state ahead of every so many steps. */
static void keep_some(const struct node *node, const struct pass *pass, double *kept)
{
    const struct recurrent_attr *attr = node->attr;
    const struct shape *x = &node->in[0]->shape, *shape = &node->out[1]->shape;
    int64_t h = pass->size;
    clear(kept, shape);
    for (int64_t i = 1; i < shape->dim[0]; i++)
        for (int64_t n = 0; n < x->dim[0]; n++) {
            int64_t before = i * attr->checkpoint_steps - 1;
            int64_t t = attr->by > 0 ? before : x->dim[1] - 1 - before;
            double *to = kept + (i * shape->dim[1] * x->dim[0] + n) * h;
            memcpy(to, pass->y + (n * x->dim[1] + t) * h, (size_t)h * sizeof *to);
            if (shape->dim[1] == 2)
                memcpy(to + x->dim[0] * h, pass->states + (before * x->dim[0] + n) * h,
                       (size_t)h * sizeof *to);
        }
}

void ref_recurrent(const struct node *node, double *const *in, double *const *out,
                   const struct step *step)
{
    (void)step;
    const struct recurrent_attr *attr = node->attr;
    struct pass pass = new_pass(node, 0, in);
    memcpy(out[0], pass.y, (size_t)shape_count(&node->out[0]->shape) * sizeof *pass.y);
    if (out[1] && attr->checkpoint_steps > 0)
        keep_some(node, &pass, out[1]);
    else if (out[1])
        memcpy(out[1], pass.states, (size_t)shape_count(&node->out[1]->shape) * sizeof *pass.y);
    if (out[2])
        memcpy(out[2], pass.gates, (size_t)shape_count(&node->out[2]->shape) * sizeof *pass.y);
    free_pass(&pass);
}

/* Adds what a step's row of gates gives to the gradients of a product's operands. */
static void add_product(const double *gates, int64_t width, const double *from,
                        const double *weight, int64_t columns, double *gfrom, double *gweight,
                        double *gbias)
{
    for (int64_t j = 0; j < width; j++) {
        if (gbias)
            gbias[j] += gates[j];
        for (int64_t k = 0; k < columns; k++) {
            if (gfrom)
                gfrom[k] += gates[j] * weight[j * columns + k];
            if (gweight)
                gweight[j * columns + k] += gates[j] * from[k];
        }
    }
}

/* From what forward saved, or with checkpoints from a pass of its own. */
void ref_recurrent_grad(const struct node *node, double *const *in, double *const *out,
                        const struct step *step)
{
    (void)step;
    const struct recurrent_attr *attr = node->attr;
    const struct shape *x = &node->in[1]->shape;
    struct pass pass = new_pass(node, 1, in);
    int64_t h = pass.size, width = pass.width, f = pass.features;
    const double *ys = in[7] ? in[7] : pass.y;
    const double *states = in[7] && in[8] ? in[8] : pass.states;
    const double *gates = in[7] && in[9] ? in[9] : pass.gates;
    double *zeros = calloc((size_t)h, sizeof *zeros), *gy = malloc((size_t)h * sizeof *gy);
    double *past = malloc((size_t)h * sizeof *past), *gstate = malloc((size_t)h * sizeof *gstate);
    double *gx = malloc((size_t)width * sizeof *gx), *gh = malloc((size_t)width * sizeof *gh);
    for (int i = 0; i < node->n_out; i++)
        if (out[i])
            clear(out[i], &node->out[i]->shape);
    for (int64_t n = 0; n < x->dim[0]; n++) {
        int64_t last = length(x, in[6], n);
        memset(past, 0, (size_t)h * sizeof *past);
        memset(gstate, 0, (size_t)h * sizeof *gstate);
        for (int64_t i = last - 1; i >= 0; i--) {
            int64_t t = step_at(node, i, last), at = n * x->dim[1] + t;
            int64_t before = i > 0 ? step_at(node, i - 1, last) : -1;
            const double *y_before = before < 0 ? zeros : ys + (n * x->dim[1] + before) * h;
            for (int64_t k = 0; k < h; k++)
                gy[k] = in[0][at * h + k] + past[k];
            cells[attr->cell].backward(&(struct grad_moment){
                .size = h,
                .y = ys + at * h,
                .y_before = y_before,
                .gates = gates + walked(node, x, n, t) * width,
                .state = states + walked(node, x, n, t) * h,
                .state_before = before < 0 ? zeros : states + walked(node, x, n, before) * h,
                .gy = gy,
                .gx = gx,
                .ghidden = gh,
                .past = past,
                .gstate = gstate,
            });
            add_product(gx, width, in[1] + at * f, in[2], f, out[0] ? out[0] + at * f : NULL,
                        out[1], out[3]);
            add_product(gh, width, y_before, in[3], h, past, out[2], out[4]);
        }
    }
    free(zeros), free(gy), free(past), free(gstate), free(gx), free(gh);
    free_pass(&pass);
}
