/* own.h: what the kernels share: a state that is the node and its choice, and queries. */
#ifndef ENGINE_BACKEND_CUDA_OWN_H
#define ENGINE_BACKEND_CUDA_OWN_H

#include "engine/backend/cuda/cuda.h"
#include "engine/backend/cuda/image.h"
#include "engine/backend/cuda/launchers.h"
#include "engine/backend/cuda/layout.h"

struct own {
    struct device *device;
    const struct node *node;
    const struct kernel_choice *choice;
};

/* Input i, or NULL where it is absent. */
const struct value *own_in(const struct node *node, int i);
const struct value *own_out(const struct node *node, int i);
/* Rows of the last dimension; elements of a row. */
int64_t own_rows(const struct value *value);
int64_t own_columns(const struct value *value);
bool own_is_bf16(const struct layout *layout);
int64_t own_count(const struct layout *layout); /* elements */

/* [N, C, H, W], or [N, C] as of one pixel. */
struct image own_image(const struct layout *layout);

int own_create(struct device *device, const struct node *node, const struct kernel_choice *choice,
               void **ret_state, struct err *err);
void own_destroy(void *state);

/* Every input and output plain, nothing in place. Errors: ERR_NOMEM. */
int own_query_plain(const struct node *node, const struct layout *const *in, struct arena *arena,
                    struct kernel_choice *ret_choice, struct err *err);
/* Inputs and output 0 all lie as the first input does that is not plain (all have one shape), in
 * place where input 0 dies. */
int own_query_elementwise(const struct node *node, const struct layout *const *in,
                          struct arena *arena, struct kernel_choice *ret_choice, struct err *err);
/* The same, in place where input 1 dies: gy does more often than what was saved. */
int own_query_elementwise_grad(const struct node *node, const struct layout *const *in,
                               struct arena *arena, struct kernel_choice *ret_choice,
                               struct err *err);

/* 0, or the error of a kernel's launch. */
int own_launched(cudaError_t status, struct err *err);

#endif
