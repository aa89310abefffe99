/* recurrent_walk.h: the steps of an LSTM, GRU or RNN in one direction, onward. Private to
 * recurrent.c and recurrent_grad.c.
 *
 * Steps are counted as the walk goes: step 0 is the first or the last of x. The inputs' products
 * are made a block of steps at a time, the same blocks wherever a walk begins, and every operand of
 * a product lies packed: so its bits do not depend on what is kept of the steps.
 */
#ifndef ENGINE_BACKEND_CPU_RECURRENT_WALK_H
#define ENGINE_BACKEND_CPU_RECURRENT_WALK_H

#include "engine/backend/cpu/gemm_bf16.h"
#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/recurrent_cells.h"
#include "engine/ops/attr.h"

/* A row a sample and step; rows NULL: none are kept. */
struct track {
    float *rows;          /* of sample 0 at step `first` */
    int64_t sample, step; /* distances */
    int64_t first;
};

struct walk {
    const struct cell *cell;
    const float *weight[2], *bias[2]; /* of the inputs [G * H, F], [G * H], of the states; bias
                                         NULL: none */
    const int64_t *lengths;           /* NULL: all steps are valid */
    int64_t samples, steps, features, size, width; /* N, T, F, H, G * H */
    int64_t block;                                 /* steps of a block */
    bool back;
    gemm_function *gemm;
};

/* The inputs from in[first] on: x, w_ih, w_hh, b_ih?, b_hh?, lengths?. `in` NULL: sizes alone. */
struct walk walk_of(const struct node *node, int first, void *const *in);
/* [N, T, columns] as the walk goes. */
struct track walk_tensor(const struct walk *walk, void *tensor, int64_t columns);
/* [steps, N, columns], from step `first` on. */
struct track walk_rows(const struct walk *walk, void *rows, int64_t columns, int64_t first);
float *walk_row(const struct track *track, int64_t sample, int64_t step);
bool walk_is_padding(const struct walk *walk, int64_t sample, int64_t step);
/* Samples a thread should have. */
int64_t walk_grain(const struct walk *walk);
void walk_clear(float *floats, int64_t n);
/* The track's rows of a block [steps of the block, N, columns], and back. */
void walk_pack(const struct walk *walk, const struct track *from, int64_t columns, int64_t block,
               float *to);
void walk_unpack(const struct walk *walk, const float *from, int64_t columns, int64_t block,
                 const struct track *to);
int64_t walk_block_steps(const struct walk *walk, int64_t block); /* the last may have fewer */

/* The way onward, from the state ahead of the next step. */
struct onward {
    const struct walk *walk;
    struct track x;
    float *packed;     /* [block, N, F] */
    float *in;         /* [block, N, G * H] the inputs' part of the gates */
    int64_t projected; /* the block that `in` is of; -1: none yet */
    float *hidden;     /* [N, G * H] the states' part; then the gates */
    float *y, *state;  /* [N, H] after the last step */
    struct track keep_y, keep_state, keep_gates;
    int64_t now;
};

/* Floats of scratch that a way onward takes. */
int64_t onward_floats(const struct walk *walk);
/* Ahead of step 0. *scratch is moved behind what was taken. */
struct onward onward_new(const struct walk *walk, struct track x, float **scratch);
int onward_steps(struct onward *onward, int64_t begin, int64_t end, struct err *err);

#endif
