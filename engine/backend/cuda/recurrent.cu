/* recurrent.cu: see recurrent.h. A thread is one element of one sample's state. */
#include "engine/backend/cuda/real.cuh"
#include "engine/backend/cuda/recurrent.h"

namespace engine
{

constexpr int MAX_GATES = 4;

__device__ inline float sigmoid(float x)
{
    float e = expf(-fabsf(x));
    return (x < 0 ? e : 1) / (1 + e);
}

/* One element of a step, by torch.nn's formulas. x, h: the two parts of its gates. */
struct Moment {
    float x[MAX_GATES], h[MAX_GATES], y_before, state_before;
    float y, state, gates[MAX_GATES];
};

/* The same, back: `gy` of y and `gstate` of the state behind come in. */
struct GradMoment {
    float y, y_before, state, state_before, gates[MAX_GATES], gy, gstate;
    float gx[MAX_GATES], gh[MAX_GATES], past;
};

struct Lstm {
    static constexpr int GATES = 4;
    static __device__ void onward(Moment *m)
    {
        float i = sigmoid(m->x[0] + m->h[0]), f = sigmoid(m->x[1] + m->h[1]);
        float g = tanhf(m->x[2] + m->h[2]), o = sigmoid(m->x[3] + m->h[3]);
        m->state = f * m->state_before + i * g;
        m->y = o * tanhf(m->state);
        m->gates[0] = i, m->gates[1] = f, m->gates[2] = g, m->gates[3] = o;
    }
    static __device__ void backward(GradMoment *m)
    {
        float i = m->gates[0], f = m->gates[1], g = m->gates[2], o = m->gates[3];
        float t = tanhf(m->state), gc = m->gstate + m->gy * o * (1 - t * t);
        m->gx[0] = gc * g * i * (1 - i);
        m->gx[1] = gc * m->state_before * f * (1 - f);
        m->gx[2] = gc * i * (1 - g * g);
        m->gx[3] = m->gy * t * o * (1 - o);
        for (int j = 0; j < GATES; j++)
            m->gh[j] = m->gx[j];
        m->gstate = gc * f;
        m->past = 0;
    }
};

/* state: the hidden part of the new gate. */
struct Gru {
    static constexpr int GATES = 3;
    static __device__ void onward(Moment *m)
    {
        float r = sigmoid(m->x[0] + m->h[0]), z = sigmoid(m->x[1] + m->h[1]);
        float n = tanhf(m->x[2] + r * m->h[2]);
        m->state = m->h[2];
        m->y = (1 - z) * n + z * m->y_before;
        m->gates[0] = r, m->gates[1] = z, m->gates[2] = n;
    }
    static __device__ void backward(GradMoment *m)
    {
        float r = m->gates[0], z = m->gates[1], n = m->gates[2];
        float gn = m->gy * (1 - z) * (1 - n * n);
        m->gx[0] = m->gh[0] = gn * m->state * r * (1 - r);
        m->gx[1] = m->gh[1] = m->gy * (m->y_before - n) * z * (1 - z);
        m->gx[2] = gn;
        m->gh[2] = gn * r;
        m->past = m->gy * z;
    }
};

struct RnnTanh {
    static constexpr int GATES = 1;
    static __device__ void onward(Moment *m)
    {
        m->y = tanhf(m->x[0] + m->h[0]);
    }
    static __device__ void backward(GradMoment *m)
    {
        m->gx[0] = m->gh[0] = m->gy * (1 - m->y * m->y);
        m->past = 0;
    }
};

struct RnnRelu {
    static constexpr int GATES = 1;
    static __device__ void onward(Moment *m)
    {
        float sum = m->x[0] + m->h[0];
        m->y = sum < 0 ? 0 : sum;
    }
    static __device__ void backward(GradMoment *m)
    {
        m->gx[0] = m->gh[0] = m->y > 0 ? m->gy : 0;
        m->past = 0;
    }
};

/* The step of x that is step s of the walk. */
__device__ inline int64_t time_of(const walk &w, int64_t s)
{
    return w.back ? w.steps - 1 - s : s;
}

__device__ inline bool is_padding(const walk &w, const int64_t *lengths, int64_t n, int64_t s)
{
    return lengths != nullptr && time_of(w, s) >= lengths[n];
}

/* Of sample n ahead of step s; 0 ahead of the first. */
__device__ inline float y_before(const walk &w, const float *y, int64_t n, int64_t k, int64_t s)
{
    return s == 0 ? 0 : y[(n * w.steps + time_of(w, s - 1)) * w.size + k];
}

__device__ inline float state_before(const walk &w, const float *states, int64_t n, int64_t k)
{
    bool none = states == nullptr || w.step == 0;
    return none ? 0 : states[((w.step - 1) * w.samples + n) * w.size + k];
}

template <typename Cell>
__global__ void onward(walk w, const int64_t *lengths, const float *x_gates, const float *h_gates,
                       const float *x_bias, const float *h_bias, float *y, float *states,
                       float *gates)
{
    int64_t h = w.size, width = Cell::GATES * h, t = time_of(w, w.step);
    for (int64_t i = thread_index(); i < w.samples * h; i += n_threads()) {
        int64_t n = i / h, k = i % h, row = w.step * w.samples + n;
        Moment m = {};
        if (!is_padding(w, lengths, n, w.step)) {
            for (int j = 0; j < Cell::GATES; j++) {
                m.x[j] = x_gates[(n * w.steps + t) * width + j * h + k] +
                         (x_bias != nullptr ? x_bias[j * h + k] : 0);
                m.h[j] = (w.step > 0 ? h_gates[n * width + j * h + k] : 0) +
                         (h_bias != nullptr ? h_bias[j * h + k] : 0);
            }
            m.y_before = y_before(w, y, n, k, w.step);
            m.state_before = state_before(w, states, n, k);
            Cell::onward(&m);
        }
        y[(n * w.steps + t) * h + k] = m.y;
        if (states != nullptr)
            states[row * h + k] = m.state;
        for (int j = 0; gates != nullptr && j < Cell::GATES; j++)
            gates[row * width + j * h + k] = m.gates[j];
    }
}

template <typename Cell>
__global__ void backward(walk w, const int64_t *lengths, const float *gy, const float *y,
                         const float *states, const float *gates, const float *gh, float *past,
                         float *gstate, float *gx_gates, float *gh_gates)
{
    int64_t h = w.size, width = Cell::GATES * h, t = time_of(w, w.step);
    bool last = w.step == w.steps - 1;
    for (int64_t i = thread_index(); i < w.samples * h; i += n_threads()) {
        int64_t n = i / h, k = i % h, row = w.step * w.samples + n, at = n * w.steps + t;
        GradMoment m = {};
        if (!is_padding(w, lengths, n, w.step)) {
            m.y = y[at * h + k];
            m.y_before = y_before(w, y, n, k, w.step);
            m.state = states != nullptr ? states[row * h + k] : 0;
            m.state_before = state_before(w, states, n, k);
            for (int j = 0; gates != nullptr && j < Cell::GATES; j++)
                m.gates[j] = gates[row * width + j * h + k];
            m.gy = gy[at * h + k] + (last ? 0 : gh[i] + past[i]);
            m.gstate = last ? 0 : gstate[i];
            Cell::backward(&m);
        }
        for (int j = 0; j < Cell::GATES; j++) {
            gx_gates[at * width + j * h + k] = m.gx[j];
            gh_gates[at * width + j * h + k] = m.gh[j];
        }
        past[i] = m.past;
        gstate[i] = m.gstate;
    }
}

__global__ void states_before(walk w, const float *y, float *before)
{
    for (int64_t i = thread_index(); i < w.samples * w.steps * w.size; i += n_threads()) {
        int64_t k = i % w.size, t = i / w.size % w.steps, n = i / w.size / w.steps;
        before[i] = y_before(w, y, n, k, w.back ? w.steps - 1 - t : t);
    }
}

__global__ void keep_some(walk w, int64_t every, const float *y, const float *states, float *kept)
{
    int64_t row = w.samples * w.size, parts = states != nullptr ? 2 : 1;
    int64_t n_kept = (w.steps + every - 1) / every;
    for (int64_t i = thread_index(); i < n_kept * row; i += n_threads()) {
        int64_t c = i / row, n = i % row / w.size, k = i % w.size, step = c * every;
        kept[c * parts * row + i % row] = y_before(w, y, n, k, step);
        if (states != nullptr)
            kept[(c * parts + 1) * row + i % row] =
                step == 0 ? 0 : states[(step - 1) * row + i % row];
    }
}

template <typename Cell> void run_onward(const walk *w, const onward_launch *l, cudaStream_t stream)
{
    LAUNCH(onward<Cell>, blocks_for(w->samples * w->size), BLOCK, 0, stream, *w, l->lengths,
           l->x_gates, l->h_gates, l->x_bias, l->h_bias, l->y, l->states, l->gates);
}

template <typename Cell>
void run_backward(const walk *w, const backward_launch *l, cudaStream_t stream)
{
    LAUNCH(backward<Cell>, blocks_for(w->samples * w->size), BLOCK, 0, stream, *w, l->lengths,
           l->gy, l->y, l->states, l->gates, l->gh, l->past, l->gstate, l->gx_gates, l->gh_gates);
}

/* By enum recurrent_cell. */
const struct {
    void (*onward)(const walk *w, const onward_launch *l, cudaStream_t stream);
    void (*backward)(const walk *w, const backward_launch *l, cudaStream_t stream);
} cells[] = {
    {run_onward<Lstm>, run_backward<Lstm>},
    {run_onward<Gru>, run_backward<Gru>},
    {run_onward<RnnTanh>, run_backward<RnnTanh>},
    {run_onward<RnnRelu>, run_backward<RnnRelu>},
};

} // namespace engine

cudaError_t launch_onward(const struct walk *walk, const struct onward_launch *onward,
                          cudaStream_t stream)
{
    engine::cells[walk->cell].onward(walk, onward, stream);
    return cudaGetLastError();
}

cudaError_t launch_backward(const struct walk *walk, const struct backward_launch *backward,
                            cudaStream_t stream)
{
    engine::cells[walk->cell].backward(walk, backward, stream);
    return cudaGetLastError();
}

cudaError_t launch_states_before(const struct walk *walk, const float *y, float *before,
                                 cudaStream_t stream)
{
    LAUNCH(engine::states_before, engine::blocks_for(walk->samples * walk->steps * walk->size),
           engine::BLOCK, 0, stream, *walk, y, before);
    return cudaGetLastError();
}

cudaError_t launch_keep_some(const struct walk *walk, int64_t every, const float *y,
                             const float *states, float *kept, cudaStream_t stream)
{
    LAUNCH(engine::keep_some, engine::blocks_for(walk->samples * walk->steps * walk->size),
           engine::BLOCK, 0, stream, *walk, every, y, states, kept);
    return cudaGetLastError();
}
