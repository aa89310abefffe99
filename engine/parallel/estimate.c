/* estimate.c: see estimate.h. */
#include "engine/parallel/estimate.h"

#include <stdlib.h>

#include "engine/graph/op.h"
#include "engine/graph/split.h"
#include "engine/ops/registry.h"

const struct estimate_rates estimate_core = {.flops = 1e11, .bytes = 1.2e10, .seconds = 5e-6};

static int nomem(struct err *err)
{
    return err_set(err, ERR_NOMEM, "out of memory for the estimate");
}

static int64_t value_bytes(const struct value *value)
{
    return value != NULL ? shape_count(&value->shape) * (int64_t)dtype_size(value->dtype) : 0;
}

double estimate_bytes(const struct node *node)
{
    double bytes = 0;
    if (node->op->view)
        return 0;
    for (int i = 0; i < node->n_in; i++)
        bytes += (double)value_bytes(node->in[i]) * ((node->op->mutates >> i & 1) != 0 ? 2 : 1);
    for (int i = 0; i < node->n_out; i++)
        bytes += (double)value_bytes(node->out[i]);
    return bytes;
}

double estimate_node(const struct node *node, const struct estimate_rates *rates)
{
    double flops = node->op->flops != NULL ? node->op->flops(node) : 0;
    double computing = flops / rates->flops, moving = estimate_bytes(node) / rates->bytes;
    if (node->op->view)
        return 0;
    return rates->seconds + (computing > moving ? computing : moving);
}

/* The member of a layer that a phase's time belongs to; 0: to none. */
static const size_t members[] = {
    [PHASE_FORWARD] = offsetof(struct balance_layer, forward),
    [PHASE_RECOMPUTE] = offsetof(struct balance_layer, backward),
    [PHASE_INPUT_GRAD] = offsetof(struct balance_layer, backward),
    [PHASE_WEIGHT_GRAD] = offsetof(struct balance_layer, weight),
    [PHASE_UPDATE] = 0,
};

/* The loss is the last stage's. */
static struct balance_layer *layer_of(const struct node *node, size_t n_layers,
                                      struct balance_layer *layers)
{
    return &layers[node->layer >= 0 ? (size_t)node->layer : n_layers - 1];
}

void estimate_add(const struct node *node, double seconds, size_t n_layers,
                  struct balance_layer *layers)
{
    if (members[node->phase] != 0)
        *(double *)((char *)layer_of(node, n_layers, layers) + members[node->phase]) += seconds;
}

static void add_node(const struct node *node, size_t n_layers, struct balance_layer *layers)
{
    struct balance_layer *layer = layer_of(node, n_layers, layers);
    estimate_add(node, estimate_node(node, &estimate_core), n_layers, layers);
    for (int i = 0; node->phase == PHASE_FORWARD && !node->op->view && i < node->n_out; i++)
        layer->slot_bytes += value_bytes(node->out[i]);
}

static void add_variables(const struct model *model, struct balance_layer *layers)
{
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct variable *variable = &model->variables[i];
        layers[model_variable_layer(model, (int)i)].fixed_bytes +=
            shape_count(&variable->shape) * (int64_t)dtype_size(variable->dtype);
    }
}

/* What a cut before each layer carries. */
static int add_carried(const struct model *model, int64_t rows, struct balance_layer *layers,
                       struct err *err)
{
    int n = (int)model->job->model.n_layers, rc = 0;
    for (int i = 1; rc == 0 && i < n; i++) {
        struct split split = {.n_stages = 2, .first_layer = {0, i, n}};
        struct crossings crossings;
        struct arena *arena = arena_new();
        rc = arena != NULL ? split_crossings(model, &split, arena, &crossings, err) : nomem(err);
        for (size_t k = 0; rc == 0 && k < crossings.n; k++)
            layers[i].carried_bytes += rows * (int64_t)crossings.list[k].bytes;
        arena_free(arena);
    }
    return rc;
}

/* By the rates: times and slots. */
static int add_nodes(const struct model *model, int64_t rows, bool training,
                     struct balance_layer *layers, struct err *err)
{
    struct graph_options options = {.batch = rows, .training = training, .n_replicas = 1};
    size_t n = model->job->model.n_layers;
    struct graph *graph;
    int rc = graph_build(model, &op_registry, &options, &graph, err);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < n; i++)
        layers[i] = (struct balance_layer){.name = model->job->model.layers[i].name, .cut = true};
    for (size_t i = 0; i < graph->n_nodes; i++)
        add_node(graph->nodes[i], n, layers);
    graph_free(graph);
    return 0;
}

static int set_times(const struct model *model, const struct estimate_source *source, int64_t rows,
                     bool training, struct balance_layer *layers, struct err *err)
{
    int rc = add_nodes(model, rows, training, layers, err);
    return rc == 0 && source->measure != NULL
               ? source->measure(source->context, model, rows, layers, err)
               : rc;
}

int estimate_layers(const struct model *model, const struct estimate_source *source, int64_t rows,
                    bool training, struct balance_layer *ret_layers, struct err *err)
{
    int rc = set_times(model, source, rows, training, ret_layers, err);
    if (rc != 0)
        return rc;
    add_variables(model, ret_layers);
    return add_carried(model, rows, ret_layers, err);
}

/* Fills the costs of a stage's micro-batches of `rows` samples. */
struct filling {
    const struct model *model;
    const struct estimate_source *source;
    const struct estimate_stages *stages;
    struct balance_layer *layers; /* room */
    struct timetable_cost *costs;
    bool training;
};

static struct timetable_cost sum_layers(const struct balance_layer *layers, size_t first,
                                        size_t end)
{
    struct timetable_cost cost = {{0}};
    for (size_t i = first; i < end; i++) {
        cost.of[SECTION_FORWARD] += layers[i].forward;
        cost.of[SECTION_BACKWARD] += layers[i].backward;
        cost.of[SECTION_WEIGHTS] += layers[i].weight;
    }
    return cost;
}

/* The slowest of a stage's devices has the first chunk. */
static int fill_microbatch(const struct filling *filling, int64_t rows, int microbatch,
                           struct err *err)
{
    const struct estimate_stages *stages = filling->stages;
    int64_t known = 0;
    for (int s = 0; s < stages->n; s++) {
        struct microbatch_rows all = {0, rows};
        int devices = stages->devices != NULL ? stages->devices[s] : 1;
        int64_t chunk = microbatch_chunk(all, devices, 0).n;
        int rc = 0;
        if (chunk != known)
            rc = set_times(filling->model, filling->source, chunk, filling->training,
                           filling->layers, err);
        if (rc != 0)
            return rc;
        known = chunk;
        size_t end = s + 1 < stages->n ? stages->first[s + 1] : filling->model->job->model.n_layers;
        filling->costs[(size_t)microbatch * (size_t)stages->n + (size_t)s] =
            sum_layers(filling->layers, stages->first[s], end);
    }
    return 0;
}

/* All micro-batches but the last are of one size. */
static int fill(const struct filling *filling, const struct microbatch_rule *rule, int64_t rows,
                int microbatches, struct err *err)
{
    struct microbatch_rows all = {0, rows};
    size_t stages = (size_t)filling->stages->n;
    int64_t size = microbatch_cut(rule, all, 0).n;
    int64_t last = microbatch_cut(rule, all, microbatches - 1).n;
    int rc = fill_microbatch(filling, size, 0, err);
    for (size_t i = stages; rc == 0 && i < stages * (size_t)microbatches; i++)
        filling->costs[i] = filling->costs[i - stages];
    if (rc == 0 && last != size)
        rc = fill_microbatch(filling, last, microbatches - 1, err);
    return rc;
}

int estimate_timetable(const struct model *model, const struct estimate_source *source,
                       const struct estimate_stages *stages, const struct microbatch_rule *rule,
                       int64_t rows, bool training, struct timetable **ret_table, struct err *err)
{
    int microbatches = (int)microbatch_count(rule, rows);
    struct timetable_cost *costs = calloc((size_t)microbatches * (size_t)stages->n, sizeof *costs);
    struct balance_layer *layers = calloc(model->job->model.n_layers, sizeof *layers);
    const struct filling filling = {model, source, stages, layers, costs, training};
    const struct timetable_config config = {
        .schedule = model->job->parallel.schedule,
        .stages = stages->n,
        .microbatches = microbatches,
        .training = training,
        .costs = costs,
    };
    int rc = costs != NULL && layers != NULL ? fill(&filling, rule, rows, microbatches, err)
                                             : nomem(err);
    if (rc == 0)
        rc = timetable_build(&config, ret_table, err);
    free(costs);
    free(layers);
    return rc;
}
