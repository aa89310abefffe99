/* What a section may leave in the arena, and what must lie in the micro-batch's slot. */
#include <stdlib.h>
#include <string.h>

#include "engine/graph/op.h"
#include "tests/engine/models.h"
#include "tests/engine/staged.h"
#include "tests/lib/checks.h"

static const char rest[] =
    "'data': {'train': {'format': 'random', 'samples': 64, 'seed': 1, 'classes': 3}},"
    "'loss': {'type': 'CrossEntropyLoss'}, 'optimizer': {'type': 'SGD', 'lr': 0.01},"
    "'train': {'epochs': 1, 'batch_size': 4}";

/* Views, in-place kernels, blocked layouts, a value of three readers. */
static const char *const models[] = {
    "'input': {'shape': [3, 16, 16]}, 'layers': ["
    " {'type': 'Conv2d', 'out_channels': 16, 'kernel_size': 3, 'padding': 1},"
    " {'type': 'BatchNorm2d'}, {'type': 'ReLU'}, {'type': 'MaxPool2d', 'name': 'p',"
    " 'kernel_size': 2}, {'type': 'Conv2d', 'out_channels': 16, 'kernel_size': 3, 'padding': 1},"
    " {'type': 'BatchNorm2d', 'name': 'n'}, {'type': 'Add', 'name': 's', 'inputs': ['n', 'p']},"
    " {'type': 'ReLU'}, {'type': 'Conv2d', 'name': 'c', 'out_channels': 16, 'kernel_size': 1},"
    " {'type': 'Add', 'inputs': ['c', 's', 'p']}, {'type': 'Flatten'}, {'type': 'Dropout'},"
    " {'type': 'Linear', 'out_features': 5}]",
    "'preset': 'gpt', 'args': {'vocab_size': 11, 'context': 6, 'n_layer': 3, 'n_head': 2,"
    " 'n_embd': 8, 'dropout': 0.1}",
    "'preset': 'lstm_lm', 'args': {'vocab_size': 11, 'context': 6, 'embedding_dim': 5,"
    " 'hidden_size': 7, 'num_layers': 2, 'dropout': 0.2}",
};
enum { N_MODELS = sizeof models / sizeof models[0], NOBODY = -1 };

/* Who wrote each byte last, and in which section. */
struct shadow {
    int *owner, *section;
    size_t bytes;
};

struct shadows {
    const struct plan *plan;
    int *root; /* by value: whose memory it is */
    struct shadow of[SPACE_COUNT];
    int section;
};

static void shadow_open(struct shadow *shadow, size_t bytes)
{
    *shadow =
        (struct shadow){calloc(bytes + 1, sizeof(int)), calloc(bytes + 1, sizeof(int)), bytes};
    for (size_t i = 0; i < bytes; i++)
        shadow->owner[i] = shadow->section[i] = NOBODY;
}

static bool is_placed(const struct plan_buffer *buffer)
{
    return buffer->space == SPACE_ARENA || buffer->space == SPACE_SLOT ||
           buffer->space == SPACE_OUTBOX;
}

static void own(struct shadows *shadows, const struct plan_buffer *buffer, int owner)
{
    if (!is_placed(buffer))
        return;
    struct shadow *shadow = &shadows->of[buffer->space];
    ck_assert_uint_le(buffer->offset + buffer->bytes, shadow->bytes);
    for (size_t i = buffer->offset; i < buffer->offset + buffer->bytes; i++) {
        shadow->owner[i] = owner;
        shadow->section[i] = shadows->section;
    }
}

static void read_by(const struct shadows *shadows, const struct plan_buffer *buffer, int value,
                    const char *op)
{
    if (!is_placed(buffer))
        return;
    const struct shadow *shadow = &shadows->of[buffer->space];
    for (size_t i = buffer->offset; i < buffer->offset + buffer->bytes; i++) {
        ck_assert_msg(shadow->owner[i] == shadows->root[value], "%s reads %d, finds %d", op,
                      shadows->root[value], shadow->owner[i]);
        ck_assert_msg(buffer->space != SPACE_ARENA || shadow->section[i] == shadows->section,
                      "%s reads from the arena what section %d left", op, shadow->section[i]);
    }
}

static void walk_step(struct shadows *shadows, const struct plan_step *step)
{
    const struct node *node = step->node;
    for (int k = 0; k < node->n_in; k++)
        if (node->in[k] != NULL)
            read_by(shadows, &step->in[k], node->in[k]->id, node->op->name);
    const struct plan_buffer scratch = {
        .space = SPACE_ARENA, .offset = step->scratch_offset, .bytes = step->choice.scratch_bytes};
    own(shadows, &scratch, NOBODY);
    for (int k = 0; k < node->n_out; k++)
        if (node->out[k] != NULL)
            own(shadows, &step->out[k], shadows->root[node->out[k]->id]);
}

static void arrive(struct shadows *shadows, enum section section)
{
    const struct plan *plan = shadows->plan;
    const struct graph *graph = plan->graph;
    for (int i = 0; section == SECTION_FORWARD && i < graph->n_received; i++)
        own(shadows, &plan->received[i].value, graph->received[i].value->id);
    for (int i = 0; section == SECTION_FORWARD && i < graph->model->n_inputs; i++)
        own(shadows, &plan->data[i], graph->data[i]->id);
    if (section == SECTION_FORWARD && graph->target != NULL)
        own(shadows, &plan->target, graph->target->id);
    for (int i = 0; section == SECTION_BACKWARD && i < graph->n_sent; i++)
        if (graph->sent[i].grad != NULL)
            own(shadows, &plan->sent[i].grad, graph->sent[i].grad->id);
}

/* Views, and what a `send` node passes on, are the same value. */
static int *find_roots(const struct graph *graph)
{
    int *root = calloc(graph->n_values, sizeof *root);
    ck_assert_ptr_nonnull(root);
    for (size_t i = 0; i < graph->n_values; i++)
        root[i] = (int)i;
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i]->op->view || graph->nodes[i]->op->send)
            root[graph->nodes[i]->out[0]->id] = root[graph->nodes[i]->in[0]->id];
    return root;
}

static void walk(const struct plan *plan)
{
    const struct graph *graph = plan->graph;
    struct shadows shadows = {.plan = plan, .root = find_roots(graph)};
    shadow_open(&shadows.of[SPACE_ARENA], plan->arena_bytes);
    shadow_open(&shadows.of[SPACE_SLOT], plan->slot_bytes);
    shadow_open(&shadows.of[SPACE_OUTBOX], plan->outbox_bytes);
    for (int section = 0; section < SECTION_COUNT; section++) {
        shadows.section = section;
        arrive(&shadows, (enum section)section);
        for (size_t i = plan->sections[section].begin; i < plan->sections[section].end; i++)
            walk_step(&shadows, &plan->steps[i]);
        for (int i = 0; section == SECTION_FORWARD && i < graph->n_sent; i++)
            read_by(&shadows, &plan->sent[i].value, graph->sent[i].value->id, "sent");
        for (int i = 0; section == SECTION_BACKWARD && i < graph->n_received; i++)
            if (graph->received[i].grad != NULL)
                read_by(&shadows, &plan->received[i].grad, graph->received[i].grad->id, "sent");
    }
    if (graph->loss != NULL)
        read_by(&shadows, &plan->loss, graph->loss->id, "host");
    ck_assert_uint_eq(plan->sections[SECTION_COUNT - 1].end, plan->n_steps);
    for (int space = 0; space < SPACE_COUNT; space++) {
        free(shadows.of[space].owner);
        free(shadows.of[space].section);
    }
    free(shadows.root);
}

START_TEST(the_arena_holds_nothing_across_sections)
{
    static const enum plan_cut cuts[] = {CUT_BACKWARD, CUT_WEIGHTS};
    struct model *model = models_of(models[_i], rest);
    struct split split = staged_split(model, 3);
    for (size_t c = 0; c < 2; c++) {
        struct staged_config config = {
            .model = model, .split = &split, .cut = cuts[c], .n_microbatches = 1, .sizes = {3}};
        struct staged *staged = staged_open(&config);
        for (int s = 0; s < 3; s++)
            walk(staged_plan(staged, s, 0));
        staged_close(staged);
    }
    models_free(model);
}
END_TEST

/* Of one micro-batch the sections run in their order; between others they may stand anywhere. */
START_TEST(no_bit_depends_on_what_runs_between)
{
    struct model *model = models_of(models[_i], rest);
    struct split split = staged_split(model, 3);
    struct staged_config config = {.model = model,
                                   .split = &split,
                                   .cut = CUT_WEIGHTS,
                                   .n_microbatches = 4,
                                   .sizes = {3, 3, 3, 2}};
    struct staged *orders[STAGED_ORDERS];
    double loss[STAGED_ORDERS];
    for (int order = 0; order < STAGED_ORDERS; order++) {
        orders[order] = staged_open(&config);
        staged_step(orders[order], (enum staged_order)order);
        loss[order] = staged_step(orders[order], (enum staged_order)order);
        ck_assert(loss[order] == loss[0]);
    }
    for (size_t v = 0; v < model->n_variables; v++) {
        const struct variable *variable = &model->variables[v];
        size_t bytes = (size_t)shape_count(&variable->shape) * dtype_size(variable->dtype);
        for (int order = 1; order < STAGED_ORDERS; order++)
            ck_assert_msg(memcmp(staged_variable(orders[order], (int)v),
                                 staged_variable(orders[0], (int)v), bytes) == 0,
                          "%s", variable->name);
    }
    for (int order = 0; order < STAGED_ORDERS; order++)
        staged_close(orders[order]);
    models_free(model);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sections");
    TCase *tcase = checks_case(suite, "sections", 120);
    tcase_add_loop_test(tcase, the_arena_holds_nothing_across_sections, 0, N_MODELS);
    tcase_add_loop_test(tcase, no_bit_depends_on_what_runs_between, 0, N_MODELS);
    return checks_run(suite);
}
