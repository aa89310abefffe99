/* program.h: a kernel made of a few oneDNN primitives that run one after the other.
 *
 * An op's build function asks for primitives (primitive.h), names the layouts that they want, and
 * ties each of their arguments to an input, an output or a place in the kernel's scratch; a
 * parameter is always plain, so its reorder to what the primitive wants is a call of the program.
 * The same function serves query, which keeps the layouts and throws the program away, and create,
 * which makes primitives and memory objects of it. A run only sets addresses and executes.
 *
 * The build function must choose the same when it is given the layouts that it chose.
 */
#ifndef ENGINE_BACKEND_CPU_PROGRAM_H
#define ENGINE_BACKEND_CPU_PROGRAM_H

#include "engine/backend/cpu/cpu.h"
#include "engine/backend/cpu/layout.h"

enum { PROGRAM_MAX_CALLS = 4, PROGRAM_MAX_OPERANDS = 10 };

enum place_kind { PLACE_IN, PLACE_OUT, PLACE_SCRATCH };

struct place {
    enum place_kind kind;
    size_t at; /* index of the input or output; offset in the scratch */
};

struct operand {
    struct place place;
    const dnnl_memory_desc_t *memory_desc; /* owned by the primitive's descriptor */
    void *address;                         /* that the memory object holds */
};

struct call {
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    int n_operands;
    struct operand operands[PROGRAM_MAX_OPERANDS];
    dnnl_exec_arg_t args[PROGRAM_MAX_OPERANDS];
};

struct program {
    struct arena *arena; /* of layouts */
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    const struct node *node;
    struct call calls[PROGRAM_MAX_CALLS];
    int n_calls;
    size_t scratch_bytes;
};

/* Fills layouts, in-place and impl of the choice (zeroed, inplace -1) and the program. */
typedef int program_build(struct program *program, const struct node *node,
                          const struct layout *const *in, struct kernel_choice *ret_choice,
                          struct err *err);

/* For build functions. A call's descriptor belongs to the program at once. */
struct call *program_call(struct program *program, dnnl_primitive_desc_t desc);
void program_bind(struct call *call, int argument, struct place place);
struct place program_in(int index);
struct place program_out(int index);
struct place program_scratch(struct program *program, size_t bytes); /* a new place there */
/* The layout in which a primitive wants an argument. Errors: ERR_NOMEM. */
int program_layout(struct program *program, const_dnnl_primitive_desc_t desc, int argument,
                   const struct layout **ret_layout, struct err *err);
/* A parameter of that plain layout at in[index], as the argument of `desc` wants it: where it lies,
 * or a reorder into the scratch is called first. */
int program_fetch(struct program *program, const_dnnl_primitive_desc_t desc, int argument,
                  const struct layout *plain, int index, struct place *ret_place, struct err *err);
/* Ties an output of the call to out[index], a plain variable, through the scratch and a reorder
 * where the layouts differ. The last thing done with the call. */
int program_leave(struct program *program, struct call *call, int argument,
                  const struct layout *plain, int index, struct err *err);

/* For kernel rows. */
int program_query(program_build *build, const struct node *node, const struct layout *const *in,
                  struct arena *arena, struct kernel_choice *ret_choice, struct err *err);
int program_create(program_build *build, struct device *device, const struct node *node,
                   const struct layout *const *in, void **ret_state, struct err *err);
int program_run(void *state, const struct kernel_args *args, struct err *err);
void program_destroy(void *state);

/* The row of an op with `OP_build`. */
#define PROGRAM_KERNEL(name, run_function)                                                         \
    static int name##_query(const struct node *node, const struct layout *const *in,               \
                            struct arena *arena, struct kernel_choice *ret_choice,                 \
                            struct err *err)                                                       \
    {                                                                                              \
        return program_query(name##_build, node, in, arena, ret_choice, err);                      \
    }                                                                                              \
    static int name##_create(struct device *device, const struct node *node,                       \
                             const struct kernel_choice *choice, void **ret_state,                 \
                             struct err *err)                                                      \
    {                                                                                              \
        return program_create(name##_build, device, node, choice->in, ret_state, err);             \
    }                                                                                              \
    const struct kernel kernel_##name = {#name, name##_query, name##_create, run_function,         \
                                         program_destroy}

#endif
