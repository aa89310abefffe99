/* plan.c: see plan.h. Until all lifetimes are known, the offset of a buffer in the arena is the
 * number of its interval; then liveness gives the real ones. */
#include "engine/plan/plan.h"

#include "engine/ops/registry.h"
#include "engine/plan/lifetime.h"
#include "engine/plan/liveness.h"

/* A value in one layout; further ones are copies that a reorder made. */
struct copy {
    struct plan_buffer buffer;
    struct copy *next;
};

struct planner {
    struct plan *plan;
    const struct variable_map *map;
    struct arena *scratch; /* what is not kept */
    int *last_read;        /* by value: lifetime.h */
    struct copy **copies;  /* by value, the first as it was made; NULL: not met yet */
    struct interval *intervals;
    size_t n_intervals, intervals_capacity, steps_capacity;
};

static int nomem(struct err *err)
{
    return err_set(err, ERR_NOMEM, "no memory for the plan");
}

static int add_interval(struct planner *planner, size_t bytes, size_t *ret_index, struct err *err)
{
    struct interval *intervals =
        arena_grow(planner->scratch, planner->intervals, planner->n_intervals,
                   &planner->intervals_capacity, sizeof *intervals);
    if (intervals == NULL)
        return nomem(err);
    int now = (int)planner->plan->n_steps;
    planner->intervals = intervals;
    intervals[planner->n_intervals] = (struct interval){.first = now, .last = now, .bytes = bytes};
    *ret_index = planner->n_intervals++;
    return 0;
}

static int new_buffer(struct planner *planner, const struct layout *layout,
                      struct plan_buffer *ret_buffer, struct err *err)
{
    size_t bytes = planner->plan->backend->layout_bytes(layout), index;
    int rc = add_interval(planner, bytes, &index, err);
    if (rc == 0)
        *ret_buffer = (struct plan_buffer){SPACE_ARENA, index, bytes, layout};
    return rc;
}

static const struct layout *plain(struct planner *planner, const struct value *value,
                                  struct err *err)
{
    const struct layout *layout =
        planner->plan->backend->layout_plain(planner->plan->arena, &value->shape, value->dtype);
    if (layout == NULL)
        nomem(err);
    return layout;
}

static int add_copy(struct planner *planner, const struct value *value, struct plan_buffer buffer,
                    struct err *err)
{
    struct copy *copy = arena_alloc(planner->scratch, sizeof *copy), **at;
    if (copy == NULL)
        return nomem(err);
    copy->buffer = buffer;
    for (at = &planner->copies[value->id]; *at != NULL; at = &(*at)->next)
        ;
    *at = copy;
    return 0;
}

/* Data, targets and variables lie where they lie, plain, from the start. */
static int meet(struct planner *planner, const struct value *value, struct err *err)
{
    static const enum plan_space spaces[] = {[VALUE_DATA] = SPACE_DATA,
                                             [VALUE_TARGET] = SPACE_TARGET,
                                             [VALUE_VARIABLE] = SPACE_VARIABLES};
    if (planner->copies[value->id] != NULL)
        return 0;
    const struct layout *layout = plain(planner, value, err);
    if (layout == NULL)
        return err->code;
    size_t offset = value->kind == VALUE_VARIABLE ? planner->map->offset[value->variable] : 0;
    int space = (int)spaces[value->kind] + (value->kind == VALUE_DATA ? value->input : 0);
    size_t bytes = planner->plan->backend->layout_bytes(layout);
    return add_copy(planner, value,
                    (struct plan_buffer){(enum plan_space)space, offset, bytes, layout}, err);
}

/* The node's step as its kernel wants it, still without buffers and not in the plan. */
static int ask(struct planner *planner, const struct node *node, const struct layout *const *in,
               struct plan_step *ret_step, struct err *err)
{
    const struct backend *backend = planner->plan->backend;
    const struct kernel *kernel = backend_kernel(backend, node->op->name);
    if (kernel == NULL)
        return err_set(err, ERR_DEVICE_FAILED, "%s devices have no kernel for %s (layer \"%s\")",
                       backend->name, node->op->name, node->name);
    *ret_step = (struct plan_step){.node = node, .kernel = kernel};
    int rc = kernel->query(node, in, planner->plan->arena, &ret_step->choice, err);
    return rc == 0 ? 0 : err_context(err, "%s of layer \"%s\"", node->op->name, node->name);
}

static void read_now(struct planner *planner, const struct plan_buffer *buffer)
{
    if (buffer->space == SPACE_ARENA)
        planner->intervals[buffer->offset].last = (int)planner->plan->n_steps;
}

/* Appends a step that has its buffers. */
static int push(struct planner *planner, struct plan_step *step, struct err *err)
{
    struct plan *plan = planner->plan;
    struct plan_step *steps = arena_grow(plan->arena, plan->steps, plan->n_steps,
                                         &planner->steps_capacity, sizeof *steps);
    if (steps == NULL)
        return nomem(err);
    plan->steps = steps;
    for (int i = 0; i < step->node->n_in; i++)
        read_now(planner, &step->in[i]);
    if (step->choice.scratch_bytes > 0) {
        int rc = add_interval(planner, step->choice.scratch_bytes, &step->scratch_offset, err);
        if (rc != 0)
            return rc;
    }
    steps[plan->n_steps++] = *step;
    return 0;
}

static int add_reorder(struct planner *planner, struct value *value, const struct layout *layout,
                       const struct node *reader, struct plan_buffer *ret_buffer, struct err *err)
{
    const struct plan_buffer *from = &planner->copies[value->id]->buffer;
    const struct layout *in[NODE_MAX_IN] = {from->layout, layout};
    struct node *node = arena_alloc(planner->plan->arena, sizeof *node);
    if (node == NULL)
        return nomem(err);
    *node = (struct node){.id = -1,
                          .op = &op_reorder,
                          .name = reader->name,
                          .layer = reader->layer,
                          .phase = reader->phase,
                          .n_in = 1,
                          .n_out = 1,
                          .in = {value},
                          .out = {value}};
    struct plan_step step;
    int rc = ask(planner, node, in, &step, err);
    if (rc == 0)
        rc = new_buffer(planner, layout, &step.out[0], err);
    if (rc == 0)
        rc = add_copy(planner, value, step.out[0], err);
    if (rc != 0)
        return rc;
    step.in[0] = *from;
    *ret_buffer = step.out[0];
    return push(planner, &step, err);
}

/* The value in that layout, reordered if it is not there yet. */
static int find_copy(struct planner *planner, struct value *value, const struct layout *layout,
                     const struct node *reader, struct plan_buffer *ret_buffer, struct err *err)
{
    for (struct copy *copy = planner->copies[value->id]; copy != NULL; copy = copy->next)
        if (planner->plan->backend->layout_equal(copy->buffer.layout, layout)) {
            *ret_buffer = copy->buffer;
            return 0;
        }
    return add_reorder(planner, value, layout, reader, ret_buffer, err);
}

static int plan_view(struct planner *planner, const struct node *node, struct err *err)
{
    struct plan_buffer buffer;
    const struct layout *from = plain(planner, node->in[0], err);
    const struct layout *to = from == NULL ? NULL : plain(planner, node->out[0], err);
    if (to == NULL)
        return err->code;
    int rc = find_copy(planner, node->in[0], from, node, &buffer, err);
    buffer.layout = to;
    return rc != 0 ? rc : add_copy(planner, node->out[0], buffer, err);
}

/* Whether output i may overwrite the input that its kernel names: it is not read again, by nobody
 * else in this step, and the output fits in. */
static bool overwrites(const struct planner *planner, const struct plan_step *step, int i)
{
    int k = step->choice.inplace[i];
    if (k < 0 || step->in[k].space != SPACE_ARENA)
        return false;
    size_t interval = step->in[k].offset;
    for (int other = 0; other < step->node->n_in; other++)
        if (other != k && step->in[other].space == SPACE_ARENA &&
            step->in[other].offset == interval)
            return false;
    for (int other = 0; other < i; other++)
        if (step->out[other].space == SPACE_ARENA && step->out[other].offset == interval)
            return false;
    return planner->last_read[step->node->in[k]->id] == step->node->id &&
           planner->plan->backend->layout_bytes(step->choice.out[i]) <=
               planner->intervals[interval].bytes;
}

static int place_output(struct planner *planner, struct plan_step *step, int i, struct err *err)
{
    const struct value *value = step->node->out[i];
    const struct backend *backend = planner->plan->backend;
    const struct layout *layout = step->choice.out[i];
    if (value == NULL)
        return 0;
    if (value->kind == VALUE_VARIABLE) {
        step->out[i] = planner->copies[value->id]->buffer;
        if (!backend->layout_equal(layout, step->out[i].layout))
            return err_set(err, ERR_INTERNAL, "%s leaves %s in a layout that is not plain",
                           step->node->op->name, value->name);
        return 0;
    }
    int rc = 0;
    if (overwrites(planner, step, i)) {
        step->out[i] = step->in[step->choice.inplace[i]];
        step->out[i].layout = layout;
        step->out[i].bytes = backend->layout_bytes(layout);
    } else {
        rc = new_buffer(planner, layout, &step->out[i], err);
    }
    return rc != 0 ? rc : add_copy(planner, value, step->out[i], err);
}

/* What a node writes has no other copies any more. */
static void forget_copies(struct planner *planner, const struct node *node)
{
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] != NULL && (node->op->mutates >> i & 1) != 0)
            planner->copies[node->in[i]->id]->next = NULL;
}

static int place_input(struct planner *planner, struct plan_step *step, int i, struct err *err)
{
    struct value *value = step->node->in[i];
    const struct layout *wanted = step->choice.in[i];
    if (value == NULL)
        return 0;
    if ((step->node->op->mutates >> i & 1) == 0)
        return find_copy(planner, value, wanted, step->node, &step->in[i], err);
    step->in[i] = planner->copies[value->id]->buffer;
    if (!planner->plan->backend->layout_equal(wanted, step->in[i].layout))
        return err_set(err, ERR_INTERNAL, "%s would write to a copy of its input %d",
                       step->node->op->name, i);
    return 0;
}

static int plan_kernel(struct planner *planner, const struct node *node, struct err *err)
{
    const struct layout *in[NODE_MAX_IN] = {NULL};
    struct plan_step step;
    for (int i = 0; i < node->n_in; i++)
        if (node->in[i] != NULL)
            in[i] = planner->copies[node->in[i]->id]->buffer.layout;
    int rc = ask(planner, node, in, &step, err);
    for (int i = 0; rc == 0 && i < node->n_in; i++)
        rc = place_input(planner, &step, i, err);
    for (int i = 0; rc == 0 && i < node->n_out; i++)
        rc = place_output(planner, &step, i, err);
    forget_copies(planner, node);
    return rc != 0 ? rc : push(planner, &step, err);
}

static int plan_node(struct planner *planner, const struct node *node, struct err *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < node->n_in; i++)
        if (node->in[i] != NULL)
            rc = meet(planner, node->in[i], err);
    for (int i = 0; rc == 0 && i < node->n_out; i++)
        if (node->out[i] != NULL && node->out[i]->kind == VALUE_VARIABLE)
            rc = meet(planner, node->out[i], err);
    if (rc != 0)
        return rc;
    return node->op->view ? plan_view(planner, node, err) : plan_kernel(planner, node, err);
}

/* What the host reads after the step, plain, kept to the end. */
static int keep(struct planner *planner, struct value *value, struct plan_buffer *ret_buffer,
                struct err *err)
{
    if (value == NULL || !value->output)
        return 0;
    int rc = meet(planner, value, err);
    const struct layout *layout = rc == 0 ? plain(planner, value, err) : NULL;
    if (layout == NULL)
        return err->code;
    const struct graph *graph = planner->plan->graph;
    return find_copy(planner, value, layout, graph->nodes[graph->n_nodes - 1], ret_buffer, err);
}

static int keep_recorded(struct planner *planner, struct err *err)
{
    struct plan *plan = planner->plan;
    size_t n = (size_t)plan->graph->model->n_recorded;
    int rc = 0;
    if (plan->graph->recorded == NULL)
        return 0;
    plan->recorded = arena_array(plan->arena, n, sizeof *plan->recorded);
    if (plan->recorded == NULL)
        return nomem(err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = keep(planner, plan->graph->recorded[i], &plan->recorded[i], err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        read_now(planner, &plan->recorded[i]);
    return rc;
}

static int keep_outputs(struct planner *planner, struct err *err)
{
    struct plan *plan = planner->plan;
    int rc = keep(planner, plan->graph->loss, &plan->loss, err);
    if (rc == 0)
        rc = keep(planner, plan->graph->output, &plan->output, err);
    if (rc == 0)
        rc = keep(planner, plan->graph->prediction, &plan->prediction, err);
    if (rc == 0)
        rc = keep_recorded(planner, err);
    if (rc != 0)
        return rc;
    read_now(planner, &plan->loss); /* behind the last step */
    read_now(planner, &plan->output);
    read_now(planner, &plan->prediction);
    return 0;
}

static void resolve(const struct planner *planner, struct plan_buffer *buffer)
{
    if (buffer->space == SPACE_ARENA)
        buffer->offset = planner->intervals[buffer->offset].offset;
}

static int assign_offsets(struct planner *planner, struct err *err)
{
    struct plan *plan = planner->plan;
    int rc = liveness_assign(planner->intervals, planner->n_intervals, &plan->arena_bytes, err);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < plan->n_steps; i++) {
        struct plan_step *step = &plan->steps[i];
        for (int k = 0; k < step->node->n_in; k++)
            resolve(planner, &step->in[k]);
        for (int k = 0; k < step->node->n_out; k++)
            resolve(planner, &step->out[k]);
        if (step->choice.scratch_bytes > 0)
            step->scratch_offset = planner->intervals[step->scratch_offset].offset;
    }
    resolve(planner, &plan->loss);
    resolve(planner, &plan->output);
    resolve(planner, &plan->prediction);
    for (int i = 0; plan->recorded != NULL && i < plan->graph->model->n_recorded; i++)
        resolve(planner, &plan->recorded[i]);
    return 0;
}

static int plan_graph(struct planner *planner, struct err *err)
{
    const struct graph *graph = planner->plan->graph;
    planner->last_read = lifetime_build(graph, planner->scratch);
    planner->copies = arena_array(planner->scratch, graph->n_values, sizeof(struct copy *));
    if (planner->last_read == NULL || planner->copies == NULL)
        return nomem(err);
    for (size_t i = 0; i < graph->n_nodes; i++) {
        int rc = plan_node(planner, graph->nodes[i], err);
        if (rc != 0)
            return rc;
    }
    int rc = keep_outputs(planner, err);
    return rc != 0 ? rc : assign_offsets(planner, err);
}

int plan_build(const struct backend *backend, const struct graph *graph,
               const struct variable_map *map, struct plan **ret_plan, struct err *err)
{
    struct arena *arena = arena_new();
    struct plan *plan = arena == NULL ? NULL : arena_alloc(arena, sizeof *plan);
    if (plan == NULL) {
        arena_free(arena);
        return nomem(err);
    }
    *plan = (struct plan){.backend = backend, .graph = graph, .arena = arena};
    struct planner planner = {.plan = plan, .map = map, .scratch = arena_new()};
    int rc = planner.scratch == NULL ? nomem(err) : plan_graph(&planner, err);
    arena_free(planner.scratch);
    if (rc != 0)
        plan_free(plan);
    else
        *ret_plan = plan;
    return rc;
}

void plan_free(struct plan *plan)
{
    if (plan != NULL)
        arena_free(plan->arena);
}
