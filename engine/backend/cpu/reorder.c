/* reorder.c: the same tensor in another layout (the planner puts it where two kernels disagree) or,
 * cast, in another type as it lies. */
#include <stdio.h>

#include "engine/backend/cpu/primitive.h"
#include "engine/backend/cpu/program.h"

/* in[1] is the layout of the output. */
static int reorder_build(struct program *program, const struct node *node,
                         const struct layout *const *in, struct kernel_choice *ret_choice,
                         struct err *err)
{
    (void)node;
    dnnl_primitive_desc_t desc;
    int rc = primitive_reorder(program->engine, &in[0]->memory, &in[1]->memory, &desc, err);
    if (rc)
        return rc;
    struct call *call = program_call(program, desc);
    program_bind(call, DNNL_ARG_FROM, program_in(0));
    program_bind(call, DNNL_ARG_TO, program_out(0));
    ret_choice->in[0] = in[0];
    ret_choice->out[0] = in[1];
    snprintf(ret_choice->impl, sizeof ret_choice->impl, "%s", primitive_impl(desc));
    return 0;
}

static int reorder_query(const struct node *node, const struct layout *const *in,
                         struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    return program_query(reorder_build, node, in, arena, ret_choice, err);
}

static int reorder_create(struct device *device, const struct node *node,
                          const struct kernel_choice *choice, void **ret_state, struct err *err)
{
    const struct layout *in[] = {choice->in[0], choice->out[0]};
    return program_create(reorder_build, device, node, in, ret_state, err);
}

static int cast_query(const struct node *node, const struct layout *const *in, struct arena *arena,
                      struct kernel_choice *ret_choice, struct err *err)
{
    const struct layout *both[] = {in[0], layout_cast(arena, in[0], node->out[0]->dtype)};
    if (!both[1])
        return err_set(err, ERR_NOMEM, "no memory for a kernel's layouts");
    return program_query(reorder_build, node, both, arena, ret_choice, err);
}

const struct kernel kernel_cast = {"cast", cast_query, reorder_create, program_run,
                                   program_destroy};
const struct kernel kernel_reorder = {"reorder", reorder_query, reorder_create, program_run,
                                      program_destroy};
