#include "tests/engine/paper.h"

#include <string.h>

#include "engine/graph/op.h"

struct layout {
    bool blocked;
    struct shape shape;
    enum dtype dtype;
};

enum taste { PLAIN, BLOCKED, AS_IT_LIES };

static const struct {
    const char *op;
    enum taste in, out; /* of activations; out AS_IT_LIES: as in[0] lies */
    int inplace;        /* of out[0] */
    size_t scratch_bytes;
} tastes[] = {
    {"linear", BLOCKED, BLOCKED, -1, 0},
    {"linear_input_grad", BLOCKED, BLOCKED, -1, 100},
    {"linear_weight_grad", BLOCKED, PLAIN, -1, 0},
    {"relu", AS_IT_LIES, AS_IT_LIES, 0, 0},
    {"relu_grad", PLAIN, PLAIN, 1, 0},
    {"add", PLAIN, PLAIN, 0, 0},
    {"mse", PLAIN, PLAIN, -1, 0},
    {"sgd", PLAIN, PLAIN, -1, 0},
    {"zero", PLAIN, PLAIN, -1, 0},
    {"all_reduce", PLAIN, PLAIN, -1, 0},
    {"all_reduce_start", PLAIN, PLAIN, -1, 0},
};

static const struct layout *new_layout(struct arena *arena, const struct shape *shape,
                                       enum dtype dtype, bool blocked)
{
    struct layout *layout = arena_alloc(arena, sizeof *layout);
    if (layout != NULL)
        *layout = (struct layout){blocked, *shape, dtype};
    return layout;
}

static const struct layout *layout_plain(struct arena *arena, const struct shape *shape,
                                         enum dtype dtype)
{
    return new_layout(arena, shape, dtype, false);
}

static size_t layout_bytes(const struct layout *layout)
{
    size_t plain = (size_t)shape_count(&layout->shape) * dtype_size(layout->dtype);
    return layout->blocked ? 2 * plain : plain;
}

static bool layout_equal(const struct layout *a, const struct layout *b)
{
    return a->blocked == b->blocked && a->dtype == b->dtype && shape_equal(&a->shape, &b->shape);
}

static const char *layout_name(const struct layout *layout, char buf[static 64])
{
    return strcpy(buf, layout->blocked ? "blocked" : "plain");
}

static const struct layout *wanted(enum taste taste, const struct value *value,
                                   const struct layout *lies, struct arena *arena)
{
    bool parameter = value->kind == VALUE_VARIABLE || value->dtype != DTYPE_F32;
    bool blocked = !parameter && (taste == BLOCKED || (taste == AS_IT_LIES && lies->blocked));
    return new_layout(arena, &value->shape, value->dtype, blocked);
}

static size_t find_taste(const char *op)
{
    size_t i = 0;
    while (strcmp(tastes[i].op, op) != 0)
        i++;
    return i;
}

static int paper_query(const struct node *node, const struct layout *const *in, struct arena *arena,
                       struct kernel_choice *ret_choice, struct err *err)
{
    size_t taste = find_taste(node->op->name);
    struct kernel_choice choice = {.scratch_bytes = tastes[taste].scratch_bytes,
                                   .inplace = {tastes[taste].inplace, -1, -1, -1, -1},
                                   .impl = "paper"};
    bool short_of_memory = false;
    for (int i = 0; i < node->n_in; i++) {
        if (node->in[i] == NULL)
            continue;
        choice.in[i] = wanted(tastes[taste].in, node->in[i], in[i], arena);
        short_of_memory |= choice.in[i] == NULL;
    }
    for (int i = 0; i < node->n_out; i++) {
        choice.out[i] = wanted(tastes[taste].out, node->out[i], in[0], arena);
        short_of_memory |= choice.out[i] == NULL;
    }
    if (short_of_memory)
        return err_set(err, ERR_NOMEM, "no memory for a paper kernel");
    *ret_choice = choice;
    return 0;
}

static int reorder_query(const struct node *node, const struct layout *const *in,
                         struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    (void)node;
    (void)arena;
    (void)err;
    *ret_choice = (struct kernel_choice){
        .in = {in[0]}, .out = {in[1]}, .inplace = {-1, -1, -1, -1, -1}, .impl = "paper"};
    return 0;
}

#define KERNEL(name)                                                                               \
    &(const struct kernel)                                                                         \
    {                                                                                              \
        name, paper_query, NULL, NULL, NULL                                                        \
    }
static const struct kernel *const kernels[] = {
    KERNEL("linear"),
    KERNEL("linear_input_grad"),
    KERNEL("linear_weight_grad"),
    KERNEL("relu"),
    KERNEL("relu_grad"),
    KERNEL("add"),
    KERNEL("mse"),
    KERNEL("sgd"),
    KERNEL("zero"),
    KERNEL("all_reduce"),
    KERNEL("all_reduce_start"),
    &(const struct kernel){"reorder", reorder_query, NULL, NULL, NULL},
};

const struct backend backend_paper = {
    .name = "paper",
    .kernels = kernels,
    .n_kernels = sizeof kernels / sizeof *kernels,
    .layout_plain = layout_plain,
    .layout_bytes = layout_bytes,
    .layout_equal = layout_equal,
    .layout_name = layout_name,
};
