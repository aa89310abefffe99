/* plan.c: `traind-worker plan`: what a job would need, without touching a device (unless a profile
 * is asked for): parameters, steps, FLOPs, bytes a device, and the layers with their shapes. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "engine/ops/registry.h"
#include "engine/train/trainer.h"
#include "engine/worker/plan_profile.h"
#include "engine/worker/plan_stages.h"
#include "engine/worker/setup.h"
#include "proto/json.h"

/* What of a layer is shown beside its shape. */
struct layer_sum {
    int64_t parameters;       /* elements */
    double flops;             /* of one sample's forward pass */
    int64_t activation_bytes; /* that one sample's forward pass makes */
};

struct result {
    const struct setup *setup;
    const struct graph *graph; /* of a small batch, for the layers' shapes */
    struct layer_sum *layers;
    struct trainer_plan plan;
    struct stages_plan stages; /* of mode `stages`; else zeroed */
    struct profile *profile;   /* where it is asked for */
};

/* The shape of one sample after a layer. */
static struct shape layer_shape(const struct graph *graph, size_t layer)
{
    struct shape shape = graph->layers[layer]->shape;
    shape.rank--;
    memmove(shape.dim, shape.dim + 1, (size_t)shape.rank * sizeof shape.dim[0]);
    return shape;
}

static void count_parameters(const struct model *model, struct layer_sum *layers)
{
    for (size_t i = 0; i < model->n_variables; i++) {
        const struct variable *variable = &model->variables[i];
        if (variable->kind == VARIABLE_PARAMETER)
            layers[variable->layer].parameters += shape_count(&variable->shape);
    }
}

static int64_t made_bytes(const struct node *node)
{
    int64_t bytes = 0;
    for (int i = 0; !node->op->view && i < node->n_out; i++) {
        const struct value *value = node->out[i];
        if (value != NULL && value->kind == VALUE_ACTIVATION)
            bytes += shape_count(&value->shape) * (int64_t)dtype_size(value->dtype);
    }
    return bytes;
}

/* Adds a graph's forward pass; with sign -1 subtracts it. */
static void add_forward(const struct graph *graph, int sign, struct layer_sum *layers)
{
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const struct node *node = graph->nodes[i];
        if (node->phase != PHASE_FORWARD || node->layer < 0)
            continue;
        layers[node->layer].flops += node->op->flops != NULL ? sign * node->op->flops(node) : 0;
        layers[node->layer].activation_bytes += sign * made_bytes(node);
    }
}

/* Of stages: the micro-batches in flight, and what waits for its readers. */
static size_t held_bytes(const struct strategy_memory *memory)
{
    return (size_t)memory->slots * memory->slot_bytes +
           (size_t)memory->outboxes * memory->outbox_bytes;
}

static json_t *device_json(const struct result *result, int i)
{
    const struct strategy_memory *memory = &result->plan.devices[i];
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "device",
                     result->setup->devices[i].name, "samples", (json_int_t)memory->samples,
                     "state_bytes", (json_int_t)memory->variable_bytes, "arena_bytes",
                     (json_int_t)memory->arena_bytes, "input_bytes",
                     (json_int_t)memory->input_bytes, "held_bytes", (json_int_t)held_bytes(memory),
                     "padding_bytes", (json_int_t)memory->padding_bytes, "peak_bytes",
                     (json_int_t)strategy_bytes(memory));
}

/* Every device has every layer, unless there are stages. */
static json_t *layer_devices(const struct result *result, size_t layer)
{
    if (result->stages.table != NULL)
        return stages_plan_devices(&result->stages, (int)layer);
    json_t *list = json_array();
    for (int i = 0; i < result->setup->n_devices; i++)
        list = json_list_append(list, json_string(result->setup->devices[i].name));
    return list;
}

static json_t *layer_json(const struct result *result, size_t i)
{
    const struct job_layer *layer = &result->setup->job->model.layers[i];
    struct shape shape = layer_shape(result->graph, i);
    json_t *dims = json_array();
    for (int k = 0; k < shape.rank; k++)
        json_array_append_new(dims, json_integer(shape.dim[k]));
    const struct layer_sum *sum = &result->layers[i];
    return json_pack("{s:s, s:s, s:o, s:I, s:f, s:I, s:o}", "name", layer->name, "type",
                     layer_type_name(layer->type), "output_shape", dims, "parameters",
                     (json_int_t)sum->parameters, "flops", sum->flops, "activation_bytes",
                     (json_int_t)sum->activation_bytes, "devices", layer_devices(result, i));
}

static json_t *devices_json(const struct result *result)
{
    json_t *list = json_array();
    int rc = 0;
    for (int i = 0; rc == 0 && i < result->setup->n_devices; i++)
        rc = json_array_append_new(list, device_json(result, i));
    return list;
}

static json_t *layers_json(const struct result *result)
{
    json_t *list = json_array();
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < result->setup->job->model.n_layers; i++)
        rc = json_array_append_new(list, layer_json(result, i));
    return list;
}

static int print_json(const struct result *result, struct err *err)
{
    const struct trainer_plan *plan = &result->plan;
    json_t *root = json_pack(
        "{s:I, s:o, s:I, s:I, s:f, s:I, s:o}", "parameters", (json_int_t)plan->parameters,
        "devices", devices_json(result), "steps_per_epoch", (json_int_t)plan->steps_per_epoch,
        "steps", (json_int_t)plan->steps, "flops_per_step", plan->flops_per_step, "loader_bytes",
        (json_int_t)plan->input_bytes, "layers", layers_json(result));
    if (root != NULL && result->stages.table != NULL)
        root = json_put(root, "pipeline", stages_plan_json(&result->stages));
    if (root != NULL && result->profile != NULL)
        root = json_put(root, "profile", plan_profile_json(result->setup, result->profile));
    char *line = root != NULL ? json_line(root) : NULL;
    json_decref(root);
    if (line == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    puts(line);
    free(line);
    return 0;
}

static double mib(size_t bytes)
{
    return (double)bytes / (1 << 20);
}

static void print_text(const struct result *result)
{
    const struct trainer_plan *plan = &result->plan;
    printf("%-24s %-18s %-20s %12s\n", "layer", "type", "output", "parameters");
    for (size_t i = 0; i < result->setup->job->model.n_layers; i++) {
        const struct job_layer *layer = &result->setup->job->model.layers[i];
        struct shape shape = layer_shape(result->graph, i);
        char dims[SHAPE_TEXT];
        printf("%-24s %-18s %-20s %12lld\n", layer->name, layer_type_name(layer->type),
               shape_format(&shape, dims), (long long)result->layers[i].parameters);
    }
    printf("\n%-8s %8s %12s %12s %12s %12s %12s  (MiB)\n", "device", "samples", "state", "arena",
           "input", "in flight", "peak");
    for (int i = 0; i < result->setup->n_devices; i++) {
        const struct strategy_memory *memory = &plan->devices[i];
        printf("%-8s %8lld %12.2f %12.2f %12.2f %12.2f %12.2f\n", result->setup->devices[i].name,
               (long long)memory->samples, mib(memory->variable_bytes), mib(memory->arena_bytes),
               mib(memory->input_bytes), mib(held_bytes(memory)), mib(strategy_bytes(memory)));
    }
    if (result->stages.table != NULL)
        stages_plan_print(&result->stages);
    if (result->profile != NULL)
        plan_profile_print(result->profile);
    printf(
        "\n%lld parameters, %lld steps (%lld an epoch), %.4g GFLOP a step, %.2f MiB for loading\n",
        (long long)plan->parameters, (long long)plan->steps, (long long)plan->steps_per_epoch,
        plan->flops_per_step / 1e9, mib(plan->input_bytes));
}

/* What a third sample adds to a step of two is what a sample takes: what a layer makes once a batch
 * (BatchNorm's statistics) does not count. */
static int sum_layers(const struct model *model, const struct graph *graph,
                      struct layer_sum *layers, struct err *err)
{
    struct graph_options options = graph->options;
    struct graph *larger;
    options.batch++;
    int rc = graph_build(model, &op_registry, &options, &larger, err);
    if (rc != 0)
        return rc;
    count_parameters(model, layers);
    add_forward(larger, 1, layers);
    add_forward(graph, -1, layers);
    graph_free(larger);
    return 0;
}

static int build_graph(const struct job *job, struct model **ret_model, struct graph **ret_graph,
                       struct err *err)
{
    struct graph_options options = {.batch = 2, .training = true, .n_replicas = 1};
    int rc = model_build(job, &op_registry, ret_model, err);
    if (rc == 0)
        rc = graph_build(*ret_model, &op_registry, &options, ret_graph, err);
    return rc;
}

static int print_plan(const struct command_options *options, const struct setup *setup,
                      const struct model *model, const struct graph *graph, struct err *err)
{
    struct trainer_config config = {
        .job = setup->job,
        .backend = setup->backend,
        .devices = setup->devices,
        .n_devices = setup->n_devices,
    };
    struct result result = {.setup = setup, .graph = graph};
    result.layers = calloc(setup->job->model.n_layers, sizeof *result.layers);
    if (result.layers == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    int rc = sum_layers(model, graph, result.layers, err);
    if (rc == 0 && setup->job->parallel.mode == PARALLEL_STAGES)
        rc = stages_plan_make(setup, model, &result.stages, err);
    if (rc == 0)
        rc = trainer_plan(&config, &result.plan, err);
    if (rc == 0 && options->profile)
        rc = plan_profile_make(setup, model, &result.profile, err);
    if (rc == 0 && options->trace != NULL)
        rc = plan_profile_trace(setup, result.profile, options->trace, err);
    if (rc == 0 && options->json)
        rc = print_json(&result, err);
    else if (rc == 0)
        print_text(&result);
    trainer_plan_done(&result.plan);
    stages_plan_done(&result.stages);
    profile_free(result.profile);
    free(result.layers);
    return rc;
}

int command_plan(const struct command_options *options, struct reporter *reporter, struct err *err)
{
    struct setup setup;
    struct model *model = NULL;
    struct graph *graph = NULL;
    (void)reporter;
    int rc = setup_open(options, &setup, err);
    if (rc != 0)
        return rc;
    rc = build_graph(setup.job, &model, &graph, err);
    if (rc == 0)
        rc = print_plan(options, &setup, model, graph, err);
    graph_free(graph);
    model_free(model);
    setup_close(&setup);
    return rc;
}
