/* recurrent_cells.h: one step of an LSTM, GRU or RNN for one sample, and back. Private to
 * recurrent.c.
 *
 * All rows are of the step's sample: [H], or [G * H] one gate behind the other in PyTorch's order.
 * An output row may be an input row, element on element.
 */
#ifndef ENGINE_BACKEND_CPU_RECURRENT_CELLS_H
#define ENGINE_BACKEND_CPU_RECURRENT_CELLS_H

#include <stdint.h>

struct cell_rows {
    int64_t size;        /* H */
    const float *in;     /* [G * H] the inputs' part of the gates */
    const float *hidden; /* [G * H] the states' part */
    const float *before; /* [H] y of the step before */
    const float *state_before;
    float *y;
    float *gates, *state; /* what the gradient needs, see ops.def; an LSTM's state goes on */
};

struct cell_grad_rows {
    int64_t size;
    const float *gy, *y, *before;
    const float *gates, *state, *state_before;
    float *carry;       /* gradient of y from the step behind; then what goes past the product */
    float *state_carry; /* of the LSTM's state, the same */
    float *in, *hidden; /* gradients of the two parts of the gates; one row, but for the GRU */
};

struct cell {
    void (*step)(const struct cell_rows *rows);
    void (*grad)(const struct cell_grad_rows *rows);
};

extern const struct cell recurrent_cells[]; /* by enum recurrent_cell */

#endif
