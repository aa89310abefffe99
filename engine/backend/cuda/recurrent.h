/* recurrent.h: the kernels of recurrent.cu: one step of an LSTM, GRU or RNN, of all samples, onward
 * and back. As launchers.h; all F32.
 *
 * Steps are counted as the walk goes: of a walk back, step 0 is the last of x. H: of the state; W:
 * of the gates, the cell's number of them times H.
 */
#ifndef ENGINE_BACKEND_CUDA_RECURRENT_H
#define ENGINE_BACKEND_CUDA_RECURRENT_H

#include "engine/backend/cuda/launchers.h"

#ifdef __cplusplus
extern "C" {
#endif

struct walk {
    int cell;                     /* enum recurrent_cell */
    int64_t samples, steps, size; /* N, T, H */
    bool back;
    int64_t step; /* the one at hand */
};

struct onward_launch {
    const int64_t *lengths;       /* [N]; NULL: all steps are valid */
    const float *x_gates;         /* [N, T, W]: the inputs' part */
    const float *h_gates;         /* [N, W]: the states' part; not read at step 0 */
    const float *x_bias, *h_bias; /* [W], or NULL */
    float *y;                     /* [N, T, H]; the step before is read */
    float *states, *gates;        /* [T, N, H], [T, N, W], or NULL */
};
cudaError_t launch_onward(const struct walk *walk, const struct onward_launch *onward,
                          cudaStream_t stream);

struct backward_launch {
    const int64_t *lengths;
    const float *gy, *y;         /* [N, T, H] */
    const float *states, *gates; /* as onward left them */
    const float *gh;             /* [N, H]: of y by the gates of the step behind; not read at the
                                    last step */
    float *past, *gstate;        /* [N, H]: what goes past those gates; of the LSTM's state */
    float *gx_gates, *gh_gates;  /* [N, T, W]: of the two parts; but for the GRU they are one */
};
cudaError_t launch_backward(const struct walk *walk, const struct backward_launch *backward,
                            cudaStream_t stream);

/* y ahead of each step: [N, T, H]. */
cudaError_t launch_states_before(const struct walk *walk, const float *y, float *before,
                                 cudaStream_t stream);
/* y, and the LSTM's state where `states` is given, ahead of every so many steps: [⌈T / every⌉, 1 or
 * 2, N, H]. */
cudaError_t launch_keep_some(const struct walk *walk, int64_t every, const float *y,
                             const float *states, float *kept, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
