#include "tests/engine/staged.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/comm/comm.h"
#include "engine/ops/registry.h"
#include "engine/parallel/rows.h"
#include "engine/train/init.h"
#include "tests/engine/models.h"
#include "tests/lib/checks.h"

struct program {
    struct graph *graph;
    struct plan *plan;
    struct executor *executor;
};

struct stage {
    struct staged *staged;
    int index;
    struct device *device;
    struct variable_map map;
    struct program programs[STAGED_MICROBATCHES], end;
    char *variables, *arena, *slots[STAGED_MICROBATCHES], *outbox[2];
    size_t arena_bytes, slot_bytes, outbox_bytes;
    struct err err; /* of the end's thread */
};

struct staged {
    struct staged_config config;
    struct arena *map_arena;
    struct batch batch; /* all samples */
    int n_stages, n_slots;
    struct stage stages[LIMIT_DEVICES];
    struct comm *comm;
    struct step step;
    double loss;
};

struct split staged_split(const struct model *model, int n_stages)
{
    struct split split = {.n_stages = n_stages};
    int n_layers = (int)model->job->model.n_layers;
    for (int s = 0; s <= n_stages; s++)
        split.first_layer[s] = s * n_layers / n_stages;
    return split;
}

static void well(int rc, const struct err *err)
{
    ck_assert_msg(rc == 0, "%s: %s", err->path, err->message);
}

static struct program build(struct stage *stage, struct graph_options options, enum plan_cut cut)
{
    const struct staged_config *config = &stage->staged->config;
    struct program program = {.graph = NULL};
    struct err err = ERR_INIT;
    options.training = true;
    options.n_replicas = 1;
    options.split = config->split;
    options.stage = stage->index;
    well(graph_build(config->model, &op_registry, &options, &program.graph, &err), &err);
    well(plan_build(&backend_cpu, program.graph, &stage->map, cut, &program.plan, &err), &err);
    well(executor_new(stage->device, program.plan, &program.executor, &err), &err);
    const struct plan *plan = program.plan;
    stage->arena_bytes =
        plan->arena_bytes > stage->arena_bytes ? plan->arena_bytes : stage->arena_bytes;
    stage->slot_bytes = plan->slot_bytes > stage->slot_bytes ? plan->slot_bytes : stage->slot_bytes;
    stage->outbox_bytes =
        plan->outbox_bytes > stage->outbox_bytes ? plan->outbox_bytes : stage->outbox_bytes;
    return program;
}

static void drop(struct program *program)
{
    executor_free(program->executor);
    plan_free(program->plan);
    graph_free(program->graph);
}

/* The whole model's only micro-batch is a step as ever; else the window's end is its own. */
static bool is_ordinary(const struct staged_config *config)
{
    return config->split == NULL && config->n_microbatches == 1;
}

static char *memory(struct stage *stage, size_t bytes)
{
    char *memory = backend_cpu.alloc(stage->device, bytes > 0 ? bytes : 1);
    ck_assert_ptr_nonnull(memory);
    return memory;
}

static void stage_open(struct staged *staged, int index)
{
    const struct staged_config *config = &staged->config;
    const struct device_config device = {.name = "cpu:0", .n_threads = 1};
    const struct model *model = config->model;
    struct stage *stage = &staged->stages[index];
    struct err err = ERR_INIT;
    *stage = (struct stage){.staged = staged, .index = index, .err = ERR_INIT};
    well(backend_cpu.device_open(&device, &stage->device, &err), &err);
    well(variable_map_build(model, config->split, index, staged->map_arena, &stage->map, &err),
         &err);
    for (int i = 0; i < config->n_microbatches; i++)
        stage->programs[i] =
            i >= 2 && config->sizes[i] == config->sizes[i - 1]
                ? stage->programs[i - 1]
                : build(stage,
                        (struct graph_options){.batch = config->sizes[i],
                                               .part = is_ordinary(config) ? STEP_WHOLE
                                                       : i == 0            ? STEP_FIRST
                                                                           : STEP_MIDDLE},
                        config->cut);
    stage->end = build(stage, (struct graph_options){.part = STEP_END}, CUT_NONE);
    stage->variables = memory(stage, stage->map.bytes);
    stage->arena = memory(stage, stage->arena_bytes);
    for (int i = 0; i < config->n_microbatches; i++)
        stage->slots[i] = memory(stage, stage->slot_bytes);
    for (int i = 0; i < 2; i++)
        stage->outbox[i] = memory(stage, stage->outbox_bytes);
    for (size_t i = 0; i < model->n_variables; i++)
        if (stage->map.offset[i] != SIZE_MAX)
            init_variable(&model->variables[i], 7, stage->variables + stage->map.offset[i]);
}

static void stage_close(struct stage *stage)
{
    for (int i = 0; i < stage->staged->config.n_microbatches; i++) {
        if (i == 0 || stage->programs[i].graph != stage->programs[i - 1].graph)
            drop(&stage->programs[i]);
        backend_cpu.free(stage->device, stage->slots[i],
                         stage->slot_bytes > 0 ? stage->slot_bytes : 1);
    }
    drop(&stage->end);
    for (int i = 0; i < 2; i++)
        backend_cpu.free(stage->device, stage->outbox[i],
                         stage->outbox_bytes > 0 ? stage->outbox_bytes : 1);
    backend_cpu.free(stage->device, stage->arena, stage->arena_bytes > 0 ? stage->arena_bytes : 1);
    backend_cpu.free(stage->device, stage->variables, stage->map.bytes > 0 ? stage->map.bytes : 1);
    backend_cpu.device_close(stage->device);
}

/* Integers in [0, below), or [1, below] for lengths. */
static void fill_integers(int64_t *to, size_t n, int64_t below, int64_t least)
{
    for (size_t i = 0; i < n; i++)
        to[i] = least + (int64_t)((i * 2654435761u + 12345) >> 7) % below;
}

static void make_samples(struct staged *staged)
{
    const struct model *model = staged->config.model;
    int64_t n = 0;
    for (int i = 0; i < staged->config.n_microbatches; i++)
        n += staged->config.sizes[i];
    staged->batch.n = n;
    for (int i = 0; i < model->n_inputs; i++) {
        const struct model_input *input = &model->inputs[i];
        size_t count = (size_t)(n * shape_count(&input->shape));
        void *data = malloc(rows_data_bytes(model, i, n));
        ck_assert_ptr_nonnull(data);
        if (input->of >= 0)
            fill_integers(data, count, model->inputs[input->of].shape.dim[0], 1);
        else if (input->dtype == DTYPE_I64)
            fill_integers(data, count, input->values, 0);
        else
            models_fill(data, count, 3 + (uint64_t)i);
        staged->batch.inputs[i] = data;
    }
    void *targets = malloc(rows_target_bytes(model, n));
    ck_assert_ptr_nonnull(targets);
    size_t count = (size_t)(n * shape_count(&model->target));
    if (model->target_dtype == DTYPE_I64)
        fill_integers(targets, count, model->classes, 0);
    else
        models_fill(targets, count, 2);
    staged->batch.targets = targets;
}

struct staged *staged_open(const struct staged_config *config)
{
    struct staged *staged = calloc(1, sizeof *staged);
    struct err err = ERR_INIT;
    ck_assert_ptr_nonnull(staged);
    staged->config = *config;
    staged->map_arena = arena_new();
    staged->n_stages = config->split == NULL ? 1 : config->split->n_stages;
    make_samples(staged);
    for (int s = 0; s < staged->n_stages; s++)
        stage_open(staged, s);
    well(comm_new(staged->n_stages, &staged->comm, &err), &err);
    return staged;
}

void staged_close(struct staged *staged)
{
    for (int s = 0; s < staged->n_stages; s++)
        stage_close(&staged->stages[s]);
    for (int i = 0; i < staged->config.model->n_inputs; i++)
        free((void *)staged->batch.inputs[i]);
    free((void *)staged->batch.targets);
    comm_free(staged->comm);
    arena_free(staged->map_arena);
    free(staged);
}

static int64_t first_sample(const struct staged *staged, int microbatch)
{
    int64_t first = 0;
    for (int i = 0; i < microbatch; i++)
        first += staged->config.sizes[i];
    return first;
}

static const struct carried *find_carried(const struct carried *list, int n, int layer, int stage)
{
    for (int i = 0; i < n; i++)
        if (list[i].layer == layer && list[i].stage == stage)
            return &list[i];
    ck_abort_msg("layer %d does not cross from or to stage %d", layer, stage);
}

static void pull(struct stage *stage, const struct plan_buffer *to, int slot,
                 const struct stage *from_stage, const struct plan_buffer *from, int microbatch)
{
    if (to->space == SPACE_NONE)
        return;
    ck_assert_int_eq(to->space, SPACE_SLOT);
    ck_assert_int_eq(from->space, SPACE_OUTBOX);
    ck_assert_uint_eq(to->bytes, from->bytes);
    memcpy(stage->slots[slot] + to->offset, from_stage->outbox[microbatch % 2] + from->offset,
           to->bytes);
}

static void pull_values(struct stage *stage, int microbatch, int slot)
{
    const struct program *program = &stage->programs[microbatch];
    for (int i = 0; i < program->graph->n_received; i++) {
        const struct carried *received = &program->graph->received[i];
        struct stage *from = &stage->staged->stages[received->stage];
        const struct program *other = &from->programs[microbatch];
        const struct carried *sent =
            find_carried(other->graph->sent, other->graph->n_sent, received->layer, stage->index);
        pull(stage, &program->plan->received[i].value, slot, from,
             &other->plan->sent[sent - other->graph->sent].value, microbatch);
    }
}

static void pull_grads(struct stage *stage, int microbatch, int slot)
{
    const struct program *program = &stage->programs[microbatch];
    for (int i = 0; i < program->graph->n_sent; i++) {
        const struct carried *sent = &program->graph->sent[i];
        struct stage *from = &stage->staged->stages[sent->stage];
        const struct program *other = &from->programs[microbatch];
        const struct carried *received = find_carried(
            other->graph->received, other->graph->n_received, sent->layer, stage->index);
        ck_assert((sent->grad == NULL) == (received->grad == NULL));
        pull(stage, &program->plan->sent[i].grad, slot, from,
             &other->plan->received[received - other->graph->received].grad, microbatch);
    }
}

/* Data and targets lie in the slot from the first section on, or are read where they are. */
static void place_samples(struct stage *stage, enum section section, int microbatch, int slot,
                          void **base)
{
    const struct model *model = stage->staged->config.model;
    const struct plan *plan = stage->programs[microbatch].plan;
    struct batch rows =
        rows_of(model, &stage->staged->batch, first_sample(stage->staged, microbatch),
                stage->staged->config.sizes[microbatch]);
    for (int i = 0; i < model->n_inputs; i++) {
        base[SPACE_DATA + i] = (void *)rows.inputs[i];
        if (section == SECTION_FORWARD && plan->data[i].space == SPACE_SLOT)
            memcpy(stage->slots[slot] + plan->data[i].offset, rows.inputs[i],
                   rows_data_bytes(model, i, rows.n));
    }
    base[SPACE_TARGET] = (void *)rows.targets;
    if (section == SECTION_FORWARD && plan->target.space == SPACE_SLOT)
        memcpy(stage->slots[slot] + plan->target.offset, rows.targets,
               rows_target_bytes(model, rows.n));
}

static void run_section(struct stage *stage, enum section section, int microbatch)
{
    struct staged *staged = stage->staged;
    int slot = microbatch % staged->n_slots;
    const struct program *program = &stage->programs[microbatch];
    struct step step = staged->step;
    struct err err = ERR_INIT;
    void *base[SPACE_COUNT] = {
        [SPACE_VARIABLES] = stage->variables,
        [SPACE_ARENA] = stage->arena,
        [SPACE_SLOT] = stage->slots[slot],
        [SPACE_OUTBOX] = stage->outbox[microbatch % 2],
    };
    struct run run = {.base = base, .step = &step};
    step.first_sample = first_sample(staged, microbatch);
    memset(stage->arena, 0xff, stage->arena_bytes);
    if (section == SECTION_FORWARD)
        memset(stage->slots[slot], 0xff, stage->slot_bytes);
    place_samples(stage, section, microbatch, slot, base);
    if (section == SECTION_FORWARD)
        pull_values(stage, microbatch, slot);
    if (section == SECTION_BACKWARD)
        pull_grads(stage, microbatch, slot);
    well(executor_run_section(program->executor, section, &run, &err), &err);
    if (section == SECTION_FORWARD && program->plan->loss.space != SPACE_NONE) {
        double loss;
        memcpy(&loss, (char *)base[program->plan->loss.space] + program->plan->loss.offset,
               sizeof loss);
        staged->loss += loss / step.loss_divisor;
    }
}

static void run_all_stages(struct staged *staged, enum section section, int microbatch)
{
    if (microbatch < 0 || microbatch >= staged->config.n_microbatches)
        return;
    for (int k = 0; k < staged->n_stages; k++) {
        int s = section == SECTION_BACKWARD ? staged->n_stages - 1 - k : k;
        run_section(&staged->stages[s], section, microbatch);
    }
}

/* Section `section` of micro-batch i runs in turn i + delay[section] of n turns, by section. */
static void run_orders(struct staged *staged, enum staged_order order)
{
    int n = staged->config.n_microbatches;
    const int delays[STAGED_ORDERS][SECTION_COUNT] = {
        [STAGED_ONE_BY_ONE] = {0, 0, 0},
        [STAGED_ALL_FORWARD] = {0, n, 2 * n},
        [STAGED_LATE] = {0, 1, 2},
    };
    const int slots[STAGED_ORDERS] = {1, n, n < 3 ? n : 3};
    staged->n_slots = slots[order];
    for (int turn = 0; turn < 3 * n + 3; turn++)
        for (int section = 0; section < SECTION_COUNT; section++)
            run_all_stages(staged, (enum section)section, turn - delays[order][section]);
}

static void *end_stage(void *context)
{
    struct stage *stage = context;
    void *base[SPACE_COUNT] = {
        [SPACE_VARIABLES] = stage->variables,
        [SPACE_ARENA] = stage->arena,
    };
    const struct run run = {.base = base,
                            .step = &stage->staged->step,
                            .stages = stage->staged->n_stages > 1
                                          ? comm_collective(stage->staged->comm, stage->index)
                                          : NULL};
    executor_run(stage->end.executor, &run, &stage->err);
    return NULL;
}

/* The stages wait for each other where gradients are clipped. */
static void end_stages(struct staged *staged)
{
    pthread_t threads[LIMIT_DEVICES];
    for (int s = 0; s < staged->n_stages; s++)
        ck_assert_int_eq(pthread_create(&threads[s], NULL, end_stage, &staged->stages[s]), 0);
    for (int s = 0; s < staged->n_stages; s++) {
        pthread_join(threads[s], NULL);
        well(staged->stages[s].err.code, &staged->stages[s].err);
    }
}

double staged_step(struct staged *staged, enum staged_order order)
{
    const struct model *model = staged->config.model;
    const struct batch *batch = &staged->batch;
    staged->loss = 0;
    staged->step = (struct step){
        .seed = 1,
        .number = staged->step.number + 1,
        .loss_divisor = graph_loss_divisor(model, batch->targets, batch->n),
        .gradient_scale = 1,
        .lr = model->job->optimizer.lr,
    };
    run_orders(staged, order);
    if (!is_ordinary(&staged->config))
        end_stages(staged);
    return staged->loss;
}

const float *staged_variable(const struct staged *staged, int variable)
{
    for (int s = 0; s < staged->n_stages; s++) {
        const struct stage *stage = &staged->stages[s];
        if (stage->map.offset[variable] != SIZE_MAX)
            return (const float *)(stage->variables + stage->map.offset[variable]);
    }
    ck_abort_msg("no stage has variable %d", variable);
}

const struct plan *staged_plan(const struct staged *staged, int stage, int microbatch)
{
    return staged->stages[stage].programs[microbatch].plan;
}
