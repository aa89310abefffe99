/* graph.c: see graph.h. */
#include "engine/graph/graph.h"

#include "engine/graph/build.h"

int graph_new(const struct model *model, const struct graph_options *options,
              struct graph **ret_graph, struct err *err)
{
    struct arena *arena = arena_new();
    struct graph *graph = arena == NULL ? NULL : arena_alloc(arena, sizeof *graph);
    if (graph == NULL) {
        arena_free(arena);
        return err_set(err, ERR_NOMEM, "no memory for the model's graph");
    }
    *graph = (struct graph){.arena = arena, .model = model, .options = *options};
    *ret_graph = graph;
    return 0;
}

void graph_free(struct graph *graph)
{
    if (graph != NULL)
        arena_free(graph->arena);
}

/* Ops do without the buffers that they would write. */
static void leave_buffers(struct graph *graph)
{
    for (size_t i = 0; i < graph->n_nodes; i++) {
        struct node *node = graph->nodes[i];
        for (int k = 0; k < node->n_in; k++)
            if (node->in[k] != NULL && (node->op->mutates >> k & 1) != 0 &&
                node->in[k]->kind == VALUE_VARIABLE &&
                graph->model->variables[node->in[k]->variable].kind == VARIABLE_BUFFER)
                node->in[k] = NULL;
    }
}

static int build_chunk(struct build *build, struct err *err)
{
    const struct graph *graph = build->graph;
    int rc = forward_build(build, err);
    if (rc == 0 && graph->output != NULL)
        rc = forward_build_loss(build, err);
    if (rc == 0 && graph->options.training &&
        (graph->output == NULL || graph->output->grad != NULL))
        rc = autograd_build(build, err);
    if (rc == 0 && graph->options.keeps_buffers)
        leave_buffers(build->graph);
    return rc;
}

bool step_scales(const struct job_train *train)
{
    return train->accumulate > 1 && train->accumulate_reduction == ACCUMULATE_MEAN;
}

static int build_update(struct build *build, struct err *err)
{
    int rc =
        step_scales(&build->job->train) ? autograd_build_all(build, "scale", PHASE_REDUCE, err) : 0;
    return rc != 0 ? rc : update_build(build, err);
}

/* What the others do with their samples says what they wait for. */
static int build_rest(struct build *build, struct err *err)
{
    build->graph->options.batch = 2; /* any: sums and counts alone have the same shape */
    int rc = build_chunk(build, err);
    build->graph->options.batch = 0;
    return rc != 0 ? rc : rest_strip(build, err);
}

static int build_all(struct build *build, struct err *err)
{
    const struct graph_options *options = &build->graph->options;
    int rc = options->part == STEP_RECORD ? record_variables(build, err)
             : options->part == STEP_END  ? autograd_build_reduce(build, err)
             : options->batch > 0         ? build_chunk(build, err)
             : options->training          ? build_rest(build, err)
                                          : 0;
    return rc == 0 && options->training && step_part_ends(options->part) ? build_update(build, err)
                                                                         : rc;
}

/* What of the model this graph is to hold. */
static void take_stage(struct build *build)
{
    const struct graph *graph = build->graph;
    const struct graph_options *options = &graph->options;
    struct split whole = split_none(graph->model);
    const struct split *split = options->split != NULL ? options->split : &whole;
    build->first_layer = split->first_layer[options->stage];
    build->end_layer = split->first_layer[options->stage + 1];
    split_gradients(graph->model, split, options->stage, &build->first_gradient,
                    &build->end_gradient);
    bool reduces = options->n_replicas > 1 && step_part_ends(options->part) &&
                   build->first_gradient < build->end_gradient;
    build->bucket_first = reduces ? build->first_gradient : -1;
}

int graph_build(const struct model *model, const struct op_registry *ops,
                const struct graph_options *options, struct graph **ret_graph, struct err *err)
{
    struct graph *graph;
    int rc = graph_new(model, options, &graph, err);
    if (rc != 0)
        return rc;
    struct build build = {.ops = ops, .job = model->job, .graph = graph, .layer = -1};
    take_stage(&build);
    build.variables = arena_array(graph->arena, model->n_variables, sizeof(struct value *));
    if (build.variables == NULL)
        rc = err_set(err, ERR_NOMEM, "no memory for the model's graph");
    if (rc == 0)
        rc = build_all(&build, err);
    if (rc == 0 && model->job->train.precision == PRECISION_BF16)
        rc = precision_lower(&build, err);
    if (rc != 0)
        graph_free(graph);
    else
        *ret_graph = graph;
    return rc;
}

double graph_loss_divisor(const struct model *model, const void *targets, int64_t n)
{
    if (model->job->loss.reduction == REDUCTION_SUM)
        return 1;
    return model->loss->divisor != NULL ? model->loss->divisor(model, targets, n)
                                        : (double)(n * model->loss_terms);
}

bool step_part_adds(enum step_part part)
{
    return part == STEP_MIDDLE || part == STEP_LAST || part == STEP_END;
}

bool step_part_ends(enum step_part part)
{
    return part == STEP_WHOLE || part == STEP_LAST || part == STEP_END;
}

double graph_flops(const struct graph *graph)
{
    double flops = 0;
    for (size_t i = 0; i < graph->n_nodes; i++)
        if (graph->nodes[i]->op->flops != NULL)
            flops += graph->nodes[i]->op->flops(graph->nodes[i]);
    return flops;
}
