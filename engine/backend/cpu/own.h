/* own.h: what our own kernels share: a state that is the node and its choice, and queries.
 *
 * Loops over elements carry `omp simd`: an output may lie on an input, element on element, which
 * the compiler would otherwise have to rule out before it may use vectors.
 */
#ifndef ENGINE_BACKEND_CPU_OWN_H
#define ENGINE_BACKEND_CPU_OWN_H

#include "engine/backend/cpu/cpu.h"
#include "engine/backend/cpu/layout.h"

struct own {
    const struct node *node;
    const struct kernel_choice *choice;
};

/* Elements a thread should have at least: below it, waking a team costs more than it saves. */
enum { OWN_GRAIN = 8192 };

/* Input i, or NULL where it is absent. */
const struct value *own_in(const struct node *node, int i);
const struct value *own_out(const struct node *node, int i);

int own_create(struct device *device, const struct node *node, const struct kernel_choice *choice,
               void **ret_state, struct err *err);
void own_destroy(void *state);

/* Every input and output plain, nothing in place. Errors: ERR_NOMEM. */
int own_query_plain(const struct node *node, const struct layout *const *in, struct arena *arena,
                    struct kernel_choice *ret_choice, struct err *err);
/* Inputs and output 0 all lie as the first input does that is not plain (all have one shape), in
 * place where input 0 dies: for kernels that go element by element over all bytes. */
int own_query_elementwise(const struct node *node, const struct layout *const *in,
                          struct arena *arena, struct kernel_choice *ret_choice, struct err *err);

/* The same, but all plain where the first has padded channels or is no grid: for kernels that must
 * not touch what fills up a block. Errors: ERR_NOMEM. */
int own_query_dense(const struct node *node, const struct layout *const *in, struct arena *arena,
                    struct kernel_choice *ret_choice, struct err *err);
/* Of a node with one input and one output of other height and width: the output lies as the input
 * comes, in blocks of the same channels, and the scratch is real_planes_run's. Errors: ERR_NOMEM.
 */
int own_query_resized(const struct node *node, const struct layout *const *in, struct arena *arena,
                      struct kernel_choice *ret_choice, struct err *err);

#endif
