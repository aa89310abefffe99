/* check_plan.c: plans by value on a backend of paper; and on the CPU backend what holds for all: a
 * shadow of the arena knows at each step which value each byte holds. */
#include <stdlib.h>
#include <string.h>

#include "engine/base/team.h"
#include "engine/ops/registry.h"
#include "engine/plan/liveness.h"
#include "engine/plan/plan.h"
#include "tests/engine/models.h"
#include "tests/engine/paper.h"
#include "tests/lib/checks.h"

static const char *const mse = "'loss': {'type': 'MSELoss'}, 'optimizer': {'type': 'SGD', 'lr': 1}";

struct planned {
    struct model *model;
    struct graph *graph;
    struct variable_map map;
    struct plan *plan;
};

static struct planned plan(const struct backend *backend, struct model *model,
                           struct graph_options options)
{
    struct err err = ERR_INIT;
    struct planned planned = {.model = model};
    int rc = graph_build(model, &op_registry, &options, &planned.graph, &err);
    if (rc == 0)
        rc = variable_map_build(model, NULL, 0, model->arena, &planned.map, &err);
    team_set_size(1);
    if (rc == 0)
        rc = plan_build(backend, planned.graph, &planned.map, CUT_NONE, &planned.plan, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    return planned;
}

static void planned_free(struct planned *planned)
{
    plan_free(planned->plan);
    graph_free(planned->graph);
    models_free(planned->model);
}

/* The ReLU may not overwrite %3, which s reads too; the flattened %6 is %5's memory; %12 is
 * reordered once for both of b's gradients; %16 is read by two nodes, and the second overwrites it.
 */
START_TEST(reorders_views_and_places_by_value)
{
    struct model *model = models_new("[2, 4]",
                                     "{'type': 'Linear', 'name': 'a', 'out_features': 4},"
                                     "{'type': 'ReLU', 'name': 'r'},"
                                     "{'type': 'Add', 'name': 's', 'inputs': ['a', 'r']},"
                                     "{'type': 'Flatten', 'name': 'f'},"
                                     "{'type': 'Linear', 'name': 'b', 'out_features': 3}",
                                     mse);
    struct planned planned =
        plan(&backend_paper, model,
             (struct graph_options){.batch = 2, .training = true, .n_replicas = 1});
    char *text = plan_dump(planned.plan);
    ck_assert_str_eq(
        text,
        "a reorder [paper] input:plain@data+0 -> input:blocked@arena+0\n"
        "a linear [paper] input:blocked@arena+0, a.weight:plain@variables+0, "
        "a.bias:plain@variables+64 -> %3:blocked@arena+128\n"
        "r relu [paper] %3:blocked@arena+128 -> %4:blocked@arena+256\n"
        "s reorder [paper] %3:blocked@arena+128 -> %3:plain@arena+384\n"
        "s reorder [paper] %4:blocked@arena+256 -> %4:plain@arena+448\n"
        "s add [paper] %3:plain@arena+384, %4:plain@arena+448 -> %5:plain@arena+384\n"
        "b reorder [paper] %6:plain@arena+384 -> %6:blocked@arena+128\n"
        "b linear [paper] %6:blocked@arena+128, b.weight:plain@variables+128, "
        "b.bias:plain@variables+256 -> %9:blocked@arena+256\n"
        "loss reorder [paper] %9:blocked@arena+256 -> %9:plain@arena+320\n"
        "loss mse [paper] %9:plain@arena+320, target:plain@target+0 -> %11:plain@arena+512, "
        "%12:plain@arena+256\n"
        "b reorder [paper] %12:plain@arena+256 -> %12:blocked@arena+384\n"
        "b linear_weight_grad [paper] %6:blocked@arena+128, %12:blocked@arena+384 -> "
        "b.weight.grad:plain@variables+320, b.bias.grad:plain@variables+448\n"
        "b linear_input_grad [paper] %12:blocked@arena+384, b.weight:plain@variables+128 -> "
        "%15:blocked@arena+128 scratch 100@arena+256\n"
        "f reorder [paper] %15:blocked@arena+128 -> %15:plain@arena+256\n"
        "r relu_grad [paper] %4:plain@arena+448, %16:plain@arena+256 -> %17:plain@arena+128\n"
        "r add [paper] %16:plain@arena+256, %17:plain@arena+128 -> %18:plain@arena+256\n"
        "a reorder [paper] %18:plain@arena+256 -> %18:blocked@arena+128\n"
        "a linear_weight_grad [paper] input:blocked@arena+0, %18:blocked@arena+128 -> "
        "a.weight.grad:plain@variables+512, a.bias.grad:plain@variables+576\n"
        "a.weight sgd [paper] a.weight:plain@variables+0, a.weight.grad:plain@variables+512\n"
        "a.bias sgd [paper] a.bias:plain@variables+64, a.bias.grad:plain@variables+576\n"
        "b.weight sgd [paper] b.weight:plain@variables+128, b.weight.grad:plain@variables+320\n"
        "b.bias sgd [paper] b.bias:plain@variables+256, b.bias.grad:plain@variables+448\n");
    ck_assert_uint_eq(planned.plan->arena_bytes, 576);
    free(text);
    planned_free(&planned);
}
END_TEST

/* The first sum reads one buffer twice, so it does not overwrite it. */
START_TEST(in_place_where_nobody_reads_on)
{
    struct model *model = models_new("[64]",
                                     "{'type': 'Linear', 'name': 'a', 'out_features': 64},"
                                     "{'type': 'ReLU', 'name': 'r'},"
                                     "{'type': 'Add', 'name': 's', 'inputs': ['r', 'r']},"
                                     "{'type': 'Add', 'name': 't', 'inputs': ['s', 'r']}",
                                     mse);
    struct planned planned =
        plan(&backend_paper, model, (struct graph_options){.batch = 1, .n_replicas = 1});
    char *text = plan_dump(planned.plan);
    ck_assert_str_eq(
        text, "a reorder [paper] input:plain@data+0 -> input:blocked@arena+0\n"
              "a linear [paper] input:blocked@arena+0, a.weight:plain@variables+0, "
              "a.bias:plain@variables+16384 -> %3:blocked@arena+512\n"
              "r relu [paper] %3:blocked@arena+512 -> %4:blocked@arena+512\n"
              "s reorder [paper] %4:blocked@arena+512 -> %4:plain@arena+0\n"
              "s add [paper] %4:plain@arena+0, %4:plain@arena+0 -> %5:plain@arena+256\n"
              "t add [paper] %5:plain@arena+256, %4:plain@arena+0 -> %6:plain@arena+256\n"
              "loss mse [paper] %6:plain@arena+256, target:plain@target+0 -> %8:plain@arena+0\n");
    free(text);
    planned_free(&planned);
}
END_TEST

START_TEST(op_without_a_kernel_is_an_error)
{
    struct err err = ERR_INIT;
    struct plan *none = NULL;
    struct model *model = models_new("[4]",
                                     "{'type': 'BatchNorm1d', 'name': 'bn'},"
                                     "{'type': 'Linear', 'name': 'fc', 'out_features': 2}",
                                     mse);
    struct graph *graph;
    struct variable_map map;
    const struct graph_options options = {.batch = 2, .training = true, .n_replicas = 1};
    ck_assert_int_eq(graph_build(model, &op_registry, &options, &graph, &err), 0);
    ck_assert_int_eq(variable_map_build(model, NULL, 0, model->arena, &map, &err), 0);
    ck_assert_int_eq(plan_build(&backend_paper, graph, &map, CUT_NONE, &none, &err),
                     ERR_DEVICE_FAILED);
    ck_assert_str_eq(err.message, "paper devices have no kernel for batch_norm (layer \"bn\")");
    ck_assert_ptr_null(none);
    graph_free(graph);
    models_free(model);
}
END_TEST

START_TEST(variables_lie_apart_and_gradients_in_one_run)
{
    struct err err = ERR_INIT;
    struct variable_map map;
    struct model *model = models_new(models_cnn_input, models_cnn, NULL);
    ck_assert_int_eq(variable_map_build(model, NULL, 0, model->arena, &map, &err), 0);
    size_t end = 0;
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct variable *variable = &model->variables[i];
        ck_assert_uint_eq(map.offset[i], end); /* in their order, no gap but for alignment */
        ck_assert_uint_eq(map.offset[i] % LIVENESS_ALIGN, 0);
        end += (size_t)shape_count(&variable->shape) * dtype_size(variable->dtype);
        end = (end + LIVENESS_ALIGN - 1) / LIVENESS_ALIGN * LIVENESS_ALIGN;
    }
    ck_assert_uint_eq(map.bytes, end);
    models_free(model);
}
END_TEST

/* What the arena holds while a plan runs. */
struct tenant {
    const struct value *value;
    struct plan_buffer buffer;
};
struct shadow {
    const struct plan *plan;
    struct arena *arena;
    struct tenant tenants[1000];
    size_t n;
};

static bool overlap(size_t a, size_t a_bytes, size_t b, size_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

static void evict(struct shadow *shadow, size_t offset, size_t bytes)
{
    size_t kept = 0;
    for (size_t i = 0; i < shadow->n; i++) {
        const struct plan_buffer *at = &shadow->tenants[i].buffer;
        if (!overlap(offset, bytes, at->offset, at->bytes))
            shadow->tenants[kept++] = shadow->tenants[i];
    }
    shadow->n = kept;
}

static bool is_plain(const struct shadow *shadow, const struct value *value,
                     const struct layout *layout)
{
    const struct backend *backend = shadow->plan->backend;
    return backend->layout_equal(layout,
                                 backend->layout_plain(shadow->arena, &value->shape, value->dtype));
}

static const struct value *root_of(const struct value *value)
{
    while (value->producer != NULL && value->producer->op->view)
        value = value->producer->in[0];
    return value;
}

/* The value is there, whole, in that layout; a view reads another one's plain elements. */
static void check_there(const struct shadow *shadow, const struct value *value,
                        const struct plan_buffer *buffer)
{
    bool found = false;
    if (buffer->space != SPACE_ARENA)
        return;
    for (size_t i = 0; i < shadow->n; i++) {
        const struct tenant *tenant = &shadow->tenants[i];
        if (tenant->buffer.offset != buffer->offset || root_of(tenant->value) != root_of(value))
            continue;
        found |= tenant->value == value
                     ? shadow->plan->backend->layout_equal(tenant->buffer.layout, buffer->layout)
                     : is_plain(shadow, tenant->value, tenant->buffer.layout) &&
                           is_plain(shadow, value, buffer->layout);
    }
    ck_assert_msg(found, "%%%d is not at %zu any more", value->id, buffer->offset);
}

static void check_inside(const struct shadow *shadow, size_t offset, size_t bytes)
{
    ck_assert_uint_eq(offset % LIVENESS_ALIGN, 0);
    ck_assert_uint_le(offset + bytes, shadow->plan->arena_bytes);
}

static bool meets(const struct plan_buffer *a, const struct plan_buffer *b)
{
    return a->space == SPACE_ARENA && b->space == SPACE_ARENA &&
           overlap(a->offset, a->bytes, b->offset, b->bytes);
}

static void check_output(const struct shadow *shadow, const struct plan_step *step, int i)
{
    check_inside(shadow, step->out[i].offset, step->out[i].bytes);
    for (int k = 0; k < step->node->n_in; k++)
        ck_assert(!meets(&step->out[i], &step->in[k]) || step->choice.inplace[i] == k);
    for (int k = 0; k < i; k++)
        ck_assert(!meets(&step->out[i], &step->out[k]));
}

static void check_scratch(const struct shadow *shadow, const struct plan_step *step)
{
    const struct plan_buffer scratch = {SPACE_ARENA, step->scratch_offset,
                                        step->choice.scratch_bytes, NULL};
    check_inside(shadow, scratch.offset, scratch.bytes);
    for (int k = 0; k < step->node->n_in; k++)
        ck_assert(!meets(&scratch, &step->in[k]));
    for (int k = 0; k < step->node->n_out; k++)
        ck_assert(!meets(&scratch, &step->out[k]));
}

static void run_step(struct shadow *shadow, const struct plan_step *step)
{
    for (int i = 0; i < step->node->n_in; i++)
        if (step->node->in[i] != NULL)
            check_there(shadow, step->node->in[i], &step->in[i]);
    if (step->choice.scratch_bytes > 0) {
        check_scratch(shadow, step);
        evict(shadow, step->scratch_offset, step->choice.scratch_bytes);
    }
    for (int i = 0; i < step->node->n_out; i++) {
        if (step->out[i].space != SPACE_ARENA)
            continue;
        check_output(shadow, step, i);
        evict(shadow, step->out[i].offset, step->out[i].bytes);
        shadow->tenants[shadow->n++] = (struct tenant){step->node->out[i], step->out[i]};
        ck_assert_uint_lt(shadow->n, sizeof shadow->tenants / sizeof *shadow->tenants);
    }
}

static void check_kept(const struct shadow *shadow, const struct value *value,
                       const struct plan_buffer *buffer)
{
    bool wanted = value != NULL && value->output;
    ck_assert_int_eq(buffer->space != SPACE_NONE, wanted);
    if (!wanted)
        return;
    check_there(shadow, value, buffer);
    ck_assert(is_plain(shadow, value, buffer->layout));
}

static void check_plan(const struct plan *plan)
{
    static struct shadow shadow;
    shadow = (struct shadow){.plan = plan, .arena = arena_new()};
    for (size_t i = 0; i < plan->n_steps; i++)
        run_step(&shadow, &plan->steps[i]);
    check_kept(&shadow, plan->graph->loss, &plan->loss);
    check_kept(&shadow, plan->graph->output, &plan->output);
    check_kept(&shadow, plan->graph->prediction, &plan->prediction);
    arena_free(shadow.arena);
}

static const char *const wide =
    "{'type': 'Conv2d', 'name': 'c1', 'out_channels': 24, 'kernel_size': 3, 'stride': 2},"
    "{'type': 'BatchNorm2d', 'name': 'b1'}, {'type': 'ReLU', 'name': 'r1'},"
    "{'type': 'Conv2d', 'name': 'c2', 'out_channels': 24, 'kernel_size': 3, 'padding': 1},"
    "{'type': 'BatchNorm2d', 'name': 'b2'},"
    "{'type': 'Add', 'name': 's1', 'inputs': ['b2', 'r1']}, {'type': 'ReLU', 'name': 'r2'},"
    "{'type': 'Add', 'name': 's2', 'inputs': ['r2', 's1', 'r1', 'r2']},"
    "{'type': 'AdaptiveAvgPool2d', 'output_size': 1},"
    "{'type': 'Flatten', 'name': 'f'}, {'type': 'Linear', 'name': 'fc', 'out_features': 6},"
    "{'type': 'BatchNorm1d'}, {'type': 'ReLU'}, {'type': 'Dropout', 'p': 0.2}";

static const struct {
    const char *input, *layers;
    struct graph_options options;
} runs[] = {
    {"[1, 8, 8]", NULL, {.batch = 4, .training = true, .n_replicas = 1}},
    {"[1, 8, 8]", NULL, {.batch = 3, .training = true, .n_replicas = 2, .bucket_bytes = 100}},
    {"[1, 8, 8]", NULL, {.batch = 0, .training = true, .n_replicas = 2, .bucket_bytes = 100}},
    {"[1, 8, 8]", NULL, {.batch = 1, .n_replicas = 2}},
    {"[3, 17, 15]", wide, {.batch = 5, .training = true, .n_replicas = 1}},
    {"[3, 17, 15]", wide, {.batch = 2, .n_replicas = 1}},
    {"[7]", "{'type': 'Linear', 'out_features': 4}", {.batch = 1, .training = true}},
    {"[7]",
     "{'type': 'Flatten'}, {'type': 'ReLU', 'name': 'r'}, {'type': 'Linear', 'name': 'a',"
     " 'out_features': 7}, {'type': 'Add', 'inputs': ['a', 'r', 'input']}",
     {.batch = 9, .training = true, .n_replicas = 1}},
};

START_TEST(every_step_finds_what_it_reads)
{
    const char *layers = runs[_i].layers != NULL ? runs[_i].layers : models_cnn;
    struct planned planned =
        plan(&backend_cpu, models_new(runs[_i].input, layers, NULL), runs[_i].options);
    check_plan(planned.plan);

    struct err err = ERR_INIT;
    struct plan *again = NULL;
    ck_assert_int_eq(plan_build(&backend_cpu, planned.graph, &planned.map, CUT_NONE, &again, &err),
                     0);
    char *first = plan_dump(planned.plan), *second = plan_dump(again);
    ck_assert_str_eq(first, second);
    free(first);
    free(second);
    plan_free(again);
    planned_free(&planned);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plan");
    TCase *tcase = checks_case(suite, "plan", 60);
    tcase_add_test(tcase, reorders_views_and_places_by_value);
    tcase_add_test(tcase, in_place_where_nobody_reads_on);
    tcase_add_test(tcase, op_without_a_kernel_is_an_error);
    tcase_add_test(tcase, variables_lie_apart_and_gradients_in_one_run);
    tcase_add_loop_test(tcase, every_step_finds_what_it_reads, 0,
                        (int)(sizeof runs / sizeof *runs));
    return checks_run(suite);
}
