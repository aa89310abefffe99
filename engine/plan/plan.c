/* plan.c: see plan.h. A walk over the nodes; where everything lies is decided behind it, in
 * place.c. */
#include <assert.h>

#include "engine/ops/registry.h"
#include "engine/plan/lifetime.h"
#include "engine/plan/planner.h"

static int nomem(struct err *err)
{
    return err_set(err, ERR_NOMEM, "no memory for the plan");
}

static int add_piece(struct planner *planner, size_t bytes, bool slot, size_t *ret_index,
                     struct err *err)
{
    struct piece *pieces = arena_grow(planner->scratch, planner->pieces, planner->n_pieces,
                                      &planner->pieces_capacity, sizeof *pieces);
    if (pieces == NULL)
        return nomem(err);
    int now = (int)planner->plan->n_steps;
    planner->pieces = pieces;
    pieces[planner->n_pieces] =
        (struct piece){.interval = {.first = now, .last = now, .bytes = bytes}, .slot = slot};
    *ret_index = planner->n_pieces++;
    return 0;
}

static int new_buffer(struct planner *planner, const struct layout *layout,
                      struct plan_buffer *ret_buffer, struct err *err)
{
    size_t bytes = planner->plan->backend->layout_bytes(layout), index;
    int rc = add_piece(planner, bytes, false, &index, err);
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

/* Data and targets in a space of their own, variables in theirs. */
static struct plan_buffer settled(const struct planner *planner, const struct value *value)
{
    if (value->kind == VALUE_VARIABLE)
        return (struct plan_buffer){.space = SPACE_VARIABLES,
                                    .offset = planner->map->offset[value->variable] +
                                              (size_t)value->first * dtype_size(value->dtype)};
    if (value->kind == VALUE_TARGET)
        return (struct plan_buffer){.space = SPACE_TARGET};
    return (struct plan_buffer){.space = (enum plan_space)(SPACE_DATA + value->input)};
}

/* In the slot, from before the section runs in which it is met; data from before the first. */
static int arrive(struct planner *planner, const struct value *value, size_t bytes,
                  struct plan_buffer *ret_buffer, struct err *err)
{
    size_t index;
    int rc = add_piece(planner, bytes, true, &index, err);
    if (rc != 0)
        return rc;
    if (value->kind != VALUE_RECEIVED)
        planner->pieces[index].interval.first = 0;
    *ret_buffer = (struct plan_buffer){.space = SPACE_ARENA, .offset = index};
    return 0;
}

/* What no node makes lies where it lies, plain, from the start. */
static int meet(struct planner *planner, const struct value *value, struct err *err)
{
    struct plan *plan = planner->plan;
    if (planner->copies[value->id] != NULL)
        return 0;
    const struct layout *layout = plain(planner, value, err);
    if (layout == NULL)
        return err->code;
    size_t bytes = plan->backend->layout_bytes(layout);
    bool in_slot = value->kind == VALUE_RECEIVED ||
                   (value->kind != VALUE_VARIABLE && planner->cut != CUT_NONE);
    struct plan_buffer buffer = {.space = SPACE_NONE};
    int rc = in_slot ? arrive(planner, value, bytes, &buffer, err) : 0;
    if (rc != 0)
        return rc;
    if (!in_slot)
        buffer = settled(planner, value);
    buffer.bytes = bytes;
    buffer.layout = layout;
    if (value->kind == VALUE_DATA)
        plan->data[value->input] = buffer;
    if (value->kind == VALUE_TARGET)
        plan->target = buffer;
    return add_copy(planner, value, buffer, err);
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
        planner->pieces[buffer->offset].interval.last = (int)planner->plan->n_steps;
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
        int rc = add_piece(planner, step->choice.scratch_bytes, false, &step->scratch_offset, err);
        if (rc != 0)
            return rc;
    }
    steps[plan->n_steps++] = *step;
    return 0;
}

/* Appends a step that brings the value from one buffer, and layout, to another. */
static int add_reorder(struct planner *planner, struct value *value, const struct plan_buffer *from,
                       const struct plan_buffer *to, const struct node *reader, struct err *err)
{
    const struct layout *in[NODE_MAX_IN] = {from->layout, to->layout};
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
    if (rc != 0)
        return rc;
    step.in[0] = *from;
    step.out[0] = *to;
    return push(planner, &step, err);
}

static const struct copy *in_layout(const struct planner *planner, const struct value *value,
                                    const struct layout *layout)
{
    const struct copy *copy = planner->copies[value->id];
    while (copy != NULL && !planner->plan->backend->layout_equal(copy->buffer.layout, layout))
        copy = copy->next;
    return copy;
}

/* The value in that layout, reordered if it is not there yet. */
static int find_copy(struct planner *planner, struct value *value, const struct layout *layout,
                     const struct node *reader, struct plan_buffer *ret_buffer, struct err *err)
{
    const struct copy *found = in_layout(planner, value, layout);
    if (found != NULL) {
        *ret_buffer = found->buffer;
        return 0;
    }
    const struct copy *from = planner->copies[value->id];
    int rc = new_buffer(planner, layout, ret_buffer, err);
    if (rc == 0)
        rc = add_copy(planner, value, *ret_buffer, err);
    return rc != 0 ? rc : add_reorder(planner, value, &from->buffer, ret_buffer, reader, err);
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
    size_t piece = step->in[k].offset;
    for (int other = 0; other < step->node->n_in; other++)
        if (other != k && step->in[other].space == SPACE_ARENA && step->in[other].offset == piece)
            return false;
    for (int other = 0; other < i; other++)
        if (step->out[other].space == SPACE_ARENA && step->out[other].offset == piece)
            return false;
    return planner->last_read[step->node->in[k]->id] == (int)planner->at &&
           planner->plan->backend->layout_bytes(step->choice.out[i]) <=
               planner->pieces[piece].interval.bytes;
}

static struct plan_buffer outbox(const struct planner *planner, const struct value *sent,
                                 const struct layout *layout)
{
    size_t bytes = planner->plan->backend->layout_bytes(layout);
    return (struct plan_buffer){SPACE_OUTBOX, planner->outbox[sent->id], bytes, layout};
}

/* Whether the kernel may leave its output in the outbox at once: as it shall lie there, and nobody
 * reads it after this section. */
static bool goes_out(const struct planner *planner, const struct value *value,
                     const struct layout *layout, const struct layout *plain_layout)
{
    const struct order *order = &planner->order;
    size_t last = (size_t)planner->last_read[value->id];
    return planner->plan->backend->layout_equal(layout, plain_layout) && last < order->n &&
           order->section[last] == order->section[planner->at];
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
    const struct node *sender = planner->senders[value->id];
    const struct layout *plain_layout = sender != NULL ? plain(planner, value, err) : NULL;
    if (sender != NULL && plain_layout == NULL)
        return err->code;
    if (sender != NULL && goes_out(planner, value, layout, plain_layout)) {
        step->out[i] = outbox(planner, sender->out[0], plain_layout);
    } else if (overwrites(planner, step, i)) {
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

/* Nothing is left to do where the kernel that made the value has left it there. */
static int plan_send(struct planner *planner, const struct node *node, struct err *err)
{
    struct value *value = node->in[0];
    const struct layout *layout = plain(planner, value, err);
    if (layout == NULL)
        return err->code;
    const struct copy *from = in_layout(planner, value, layout);
    if (from == NULL)
        from = planner->copies[value->id];
    struct plan_buffer to = outbox(planner, node->out[0], layout);
    if (from->buffer.space == SPACE_OUTBOX && from->buffer.offset == to.offset)
        return 0;
    return add_reorder(planner, value, &from->buffer, &to, node, err);
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
    return node->op->view   ? plan_view(planner, node, err)
           : node->op->send ? plan_send(planner, node, err)
                            : plan_kernel(planner, node, err);
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
    for (size_t i = 0; rc == 0 && i < n; i++) {
        read_now(planner, &plan->recorded[i]);
        if (plan->recorded[i].space == SPACE_ARENA)
            planner->pieces[plan->recorded[i].offset].slot = planner->cut != CUT_NONE;
    }
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
    return rc;
}

/* Behind the last step. */
static int read_outputs(struct planner *planner, struct err *err)
{
    read_now(planner, &planner->plan->loss);
    read_now(planner, &planner->plan->output);
    read_now(planner, &planner->plan->prediction);
    return keep_recorded(planner, err);
}

/* What is sent, one behind the other. */
static int place_outbox(struct planner *planner, struct err *err)
{
    struct plan *plan = planner->plan;
    for (size_t i = 0; i < planner->order.n; i++) {
        const struct node *node = planner->order.nodes[i];
        if (!node->op->send)
            continue;
        const struct layout *layout = plain(planner, node->in[0], err);
        if (layout == NULL)
            return err->code;
        if (planner->senders[node->in[0]->id] == NULL)
            planner->senders[node->in[0]->id] = node;
        planner->outbox[node->out[0]->id] = plan->outbox_bytes;
        size_t bytes = plan->backend->layout_bytes(layout);
        plan->outbox_bytes += (bytes + LIVENESS_ALIGN - 1) / LIVENESS_ALIGN * LIVENESS_ALIGN;
    }
    return 0;
}

/* Where a value that crosses lies, received or sent. */
static int carry(struct planner *planner, const struct value *value, struct plan_buffer *ret_buffer,
                 struct err *err)
{
    if (value == NULL)
        return 0;
    int rc = value->kind == VALUE_RECEIVED ? meet(planner, value, err) : 0;
    const struct layout *layout = rc == 0 ? plain(planner, value, err) : NULL;
    if (layout == NULL)
        return err->code;
    *ret_buffer = value->kind == VALUE_RECEIVED ? planner->copies[value->id]->buffer
                                                : outbox(planner, value, layout);
    return 0;
}

static int carry_values(struct planner *planner, struct err *err)
{
    const struct graph *graph = planner->plan->graph;
    int rc = 0;
    for (int i = 0; rc == 0 && i < graph->n_received; i++)
        rc = carry(planner, graph->received[i].value, &planner->plan->received[i].value, err);
    for (int i = 0; rc == 0 && i < graph->n_sent; i++)
        rc = carry(planner, graph->sent[i].value, &planner->plan->sent[i].value, err);
    return rc;
}

static int carry_grads(struct planner *planner, struct err *err)
{
    const struct graph *graph = planner->plan->graph;
    int rc = 0;
    for (int i = 0; rc == 0 && i < graph->n_received; i++)
        rc = carry(planner, graph->received[i].grad, &planner->plan->received[i].grad, err);
    for (int i = 0; rc == 0 && i < graph->n_sent; i++)
        rc = carry(planner, graph->sent[i].grad, &planner->plan->sent[i].grad, err);
    return rc;
}

static int plan_section(struct planner *planner, enum section section, struct err *err)
{
    struct plan_steps *steps = &planner->plan->sections[section];
    int rc = 0;
    steps->begin = planner->plan->n_steps;
    if (section == SECTION_FORWARD)
        rc = carry_values(planner, err);
    if (section == (planner->cut == CUT_NONE ? SECTION_FORWARD : SECTION_BACKWARD) && rc == 0)
        rc = carry_grads(planner, err);
    for (; rc == 0 && planner->at < planner->order.n &&
           planner->order.section[planner->at] == section;
         planner->at++)
        rc = plan_node(planner, planner->order.nodes[planner->at], err);
    if (section == SECTION_FORWARD && rc == 0)
        rc = keep_outputs(planner, err);
    steps->end = planner->plan->n_steps;
    return rc;
}

static int prepare(struct planner *planner, struct err *err)
{
    struct plan *plan = planner->plan;
    const struct graph *graph = plan->graph;
    int rc = sections_order(graph, planner->cut, planner->scratch, &planner->order, err);
    if (rc != 0)
        return rc;
    planner->last_read = lifetime_build(graph, &planner->order, planner->scratch);
    planner->copies = arena_array(planner->scratch, graph->n_values, sizeof(struct copy *));
    planner->senders = arena_array(planner->scratch, graph->n_values, sizeof(struct node *));
    planner->outbox = arena_array(planner->scratch, graph->n_values, sizeof *planner->outbox);
    plan->received = arena_array(plan->arena, (size_t)graph->n_received, sizeof *plan->received);
    plan->sent = arena_array(plan->arena, (size_t)graph->n_sent, sizeof *plan->sent);
    if (planner->last_read == NULL || planner->copies == NULL || planner->senders == NULL ||
        planner->outbox == NULL || plan->received == NULL || plan->sent == NULL)
        return nomem(err);
    return place_outbox(planner, err);
}

static int plan_graph(struct planner *planner, struct err *err)
{
    int rc = prepare(planner, err);
    for (int section = 0; rc == 0 && section < SECTION_COUNT; section++)
        rc = plan_section(planner, (enum section)section, err);
    if (rc == 0)
        rc = read_outputs(planner, err);
    assert(rc != 0 || planner->plan->n_steps == planner->plan->sections[SECTION_COUNT - 1].end);
    return rc != 0 ? rc : place_assign(planner, err);
}

int plan_build(const struct backend *backend, const struct graph *graph,
               const struct variable_map *map, enum plan_cut cut, struct plan **ret_plan,
               struct err *err)
{
    struct arena *arena = arena_new();
    struct plan *plan = arena == NULL ? NULL : arena_alloc(arena, sizeof *plan);
    if (plan == NULL) {
        arena_free(arena);
        return nomem(err);
    }
    *plan = (struct plan){.backend = backend, .graph = graph, .arena = arena};
    struct planner planner = {.plan = plan, .map = map, .cut = cut, .scratch = arena_new()};
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
