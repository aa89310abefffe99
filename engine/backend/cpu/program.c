/* program.c: see program.h. */
#include "engine/backend/cpu/program.h"

#include <assert.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/backend/cpu/primitive.h"
#include "engine/backend/cpu/status.h"
#include "engine/graph/op.h"

enum { SCRATCH_ALIGN = 64 };

struct place program_in(int index)
{
    return (struct place){PLACE_IN, (size_t)index};
}

struct place program_out(int index)
{
    return (struct place){PLACE_OUT, (size_t)index};
}

struct place program_scratch(struct program *program, size_t bytes)
{
    struct place place = {PLACE_SCRATCH, program->scratch_bytes};
    program->scratch_bytes += (bytes + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
    return place;
}

static const dnnl_memory_desc_t *argument_memory(const_dnnl_primitive_desc_t desc, int argument)
{
    return dnnl_primitive_desc_query_md(desc, dnnl_query_exec_arg_md, argument);
}

void program_bind(struct call *call, int argument, struct place place)
{
    assert(call->n_operands < PROGRAM_MAX_OPERANDS);
    struct operand *operand = &call->operands[call->n_operands];
    operand->place = place;
    operand->memory_desc = argument_memory(call->desc, argument);
    call->args[call->n_operands++].arg = argument;
}

struct call *program_call(struct program *program, dnnl_primitive_desc_t desc)
{
    assert(program->n_calls < PROGRAM_MAX_CALLS);
    struct call *call = &program->calls[program->n_calls++];
    call->desc = desc;
    size_t bytes = dnnl_memory_desc_get_size(argument_memory(desc, DNNL_ARG_SCRATCHPAD));
    if (bytes)
        program_bind(call, DNNL_ARG_SCRATCHPAD, program_scratch(program, bytes));
    return call;
}

int program_layout(struct program *program, const_dnnl_primitive_desc_t desc, int argument,
                   const struct layout **ret_layout, struct err *err)
{
    const struct layout *layout =
        layout_from_memory(program->arena, argument_memory(desc, argument));
    if (!layout)
        return err_set(err, ERR_NOMEM, "no memory for a kernel's layouts");
    *ret_layout = layout;
    return 0;
}

static int call_reorder(struct program *program, const dnnl_memory_desc_t *from, struct place at,
                        const dnnl_memory_desc_t *to, struct place then, struct err *err)
{
    dnnl_primitive_desc_t desc;
    int rc = primitive_reorder(program->engine, from, to, &desc, err);
    if (rc)
        return rc;
    struct call *call = program_call(program, desc);
    program_bind(call, DNNL_ARG_FROM, at);
    program_bind(call, DNNL_ARG_TO, then);
    return 0;
}

int program_fetch(struct program *program, const_dnnl_primitive_desc_t desc, int argument,
                  const struct layout *plain, int index, struct place *ret_place, struct err *err)
{
    const dnnl_memory_desc_t *wanted = argument_memory(desc, argument);
    struct place place = program_in(index);
    if (!dnnl_memory_desc_equal(wanted, &plain->memory)) {
        struct place scratch = program_scratch(program, dnnl_memory_desc_get_size(wanted));
        int rc = call_reorder(program, &plain->memory, place, wanted, scratch, err);
        if (rc)
            return rc;
        place = scratch;
    }
    *ret_place = place;
    return 0;
}

int program_leave(struct program *program, struct call *call, int argument,
                  const struct layout *plain, int index, struct err *err)
{
    const dnnl_memory_desc_t *left = argument_memory(call->desc, argument);
    if (dnnl_memory_desc_equal(left, &plain->memory)) {
        program_bind(call, argument, program_out(index));
        return 0;
    }
    struct place scratch = program_scratch(program, dnnl_memory_desc_get_size(left));
    program_bind(call, argument, scratch);
    return call_reorder(program, left, scratch, &plain->memory, program_out(index), err);
}

static void program_done(struct program *program)
{
    for (int c = 0; c < program->n_calls; c++) {
        struct call *call = &program->calls[c];
        for (int i = 0; i < call->n_operands; i++)
            dnnl_memory_destroy(call->args[i].memory);
        dnnl_primitive_destroy(call->primitive);
        dnnl_primitive_desc_destroy(call->desc);
    }
}

static struct kernel_choice empty_choice(void)
{
    struct kernel_choice choice = {0};
    for (int i = 0; i < NODE_MAX_OUT; i++)
        choice.inplace[i] = -1;
    return choice;
}

/* Builds, and says of which node and shape a failure speaks. */
static int build_program(program_build *build, struct program *program,
                         const struct layout *const *in, struct kernel_choice *ret_choice,
                         struct err *err)
{
    const struct node *node = program->node;
    int rc = build(program, node, in, ret_choice, err);
    char x[SHAPE_TEXT], y[SHAPE_TEXT];
    if (rc)
        err_context(err, "%s %s -> %s", node->op->name, shape_format(&node->in[0]->shape, x),
                    shape_format(&node->out[0]->shape, y));
    return rc;
}

int program_query(program_build *build, const struct node *node, const struct layout *const *in,
                  struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    struct program program = {.arena = arena, .node = node};
    struct kernel_choice choice = empty_choice();
    /* Planning has no device; a descriptor needs an engine, which is a number on a CPU. */
    int rc = status_check(dnnl_engine_create(&program.engine, dnnl_cpu, 0), "engine", err);
    if (rc)
        return rc;
    rc = build_program(build, &program, in, &choice, err);
    choice.scratch_bytes = program.scratch_bytes;
    program_done(&program);
    dnnl_engine_destroy(program.engine);
    if (rc == 0)
        *ret_choice = choice;
    return rc;
}

static int create_call(struct program *program, struct call *call, struct err *err)
{
    int rc = status_check(dnnl_primitive_create(&call->primitive, call->desc),
                          primitive_impl(call->desc), err);
    for (int i = 0; rc == 0 && i < call->n_operands; i++)
        rc = status_check(dnnl_memory_create(&call->args[i].memory, call->operands[i].memory_desc,
                                             program->engine, DNNL_MEMORY_NONE),
                          "memory object", err);
    return rc;
}

int program_create(program_build *build, struct device *device, const struct node *node,
                   const struct layout *const *in, void **ret_state, struct err *err)
{
    struct kernel_choice choice = empty_choice();
    struct program *program = calloc(1, sizeof *program);
    if (program)
        program->arena = arena_new();
    if (!program || !program->arena) {
        free(program);
        return err_set(err, ERR_NOMEM, "no memory for a kernel");
    }
    program->engine = device->engine;
    program->stream = device->stream;
    program->node = node;
    int rc = build_program(build, program, in, &choice, err);
    for (int c = 0; rc == 0 && c < program->n_calls; c++)
        rc = create_call(program, &program->calls[c], err);
    if (rc) {
        program_destroy(program);
        return rc;
    }
    *ret_state = program;
    return 0;
}

void program_destroy(void *state)
{
    struct program *program = state;
    if (!program)
        return;
    program_done(program);
    arena_free(program->arena);
    free(program);
}

static void *place_address(struct place place, const struct kernel_args *args)
{
    if (place.kind == PLACE_SCRATCH)
        return (char *)args->scratch + place.at;
    return place.kind == PLACE_IN ? args->in[place.at] : args->out[place.at];
}

/* oneDNN clears the padding of a memory object's buffer whenever its address is set, so only a new
 * address is. */
static int set_address(dnnl_memory_t memory, struct operand *operand,
                       const struct kernel_args *args, struct err *err)
{
    void *address = place_address(operand->place, args);
    if (address == operand->address)
        return 0;
    operand->address = address;
    return status_check(dnnl_memory_set_data_handle(memory, address), "address", err);
}

int program_run(void *state, const struct kernel_args *args, struct err *err)
{
    struct program *program = state;
    int rc = 0;
    for (int c = 0; c < program->n_calls && rc == 0; c++) {
        struct call *call = &program->calls[c];
        for (int i = 0; i < call->n_operands && rc == 0; i++)
            rc = set_address(call->args[i].memory, &call->operands[i], args, err);
        if (rc == 0)
            rc = status_check(dnnl_primitive_execute(call->primitive, program->stream,
                                                     call->n_operands, call->args),
                              program->node->op->name, err);
    }
    return rc;
}
