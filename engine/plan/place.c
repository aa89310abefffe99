/* place.c: see planner.h. A piece that is filled ahead of its section, or lives on behind it, goes
 * to the slot; all others share the arena. */
#include "engine/graph/op.h"
#include "engine/plan/planner.h"

static int nomem(struct err *err)
{
    return err_set(err, ERR_NOMEM, "no memory for the plan");
}

static enum section section_at(const struct plan *plan, int step)
{
    int section = 0;
    while (step >= (int)plan->sections[section].end && plan->sections[section].end < plan->n_steps)
        section++;
    return (enum section)section;
}

/* Offsets of the pieces of one space; *ret_bytes: how large it is. */
static int assign_space(struct planner *planner, bool slot, size_t *ret_bytes, struct err *err)
{
    size_t n = 0;
    struct interval *intervals =
        arena_array(planner->scratch, planner->n_pieces, sizeof *intervals);
    if (intervals == NULL)
        return nomem(err);
    for (size_t i = 0; i < planner->n_pieces; i++)
        if (planner->pieces[i].slot == slot)
            intervals[n++] = planner->pieces[i].interval;
    int rc = liveness_assign(intervals, n, ret_bytes, err);
    for (size_t i = planner->n_pieces; rc == 0 && i-- > 0;)
        if (planner->pieces[i].slot == slot)
            planner->pieces[i].interval = intervals[--n];
    return rc;
}

static void resolve(const struct planner *planner, struct plan_buffer *buffer)
{
    if (buffer->space != SPACE_ARENA)
        return;
    const struct piece *piece = &planner->pieces[buffer->offset];
    buffer->space = piece->slot ? SPACE_SLOT : SPACE_ARENA;
    buffer->offset = piece->interval.offset;
}

static void resolve_step(const struct planner *planner, struct plan_step *step)
{
    for (int k = 0; k < step->node->n_in; k++)
        resolve(planner, &step->in[k]);
    for (int k = 0; k < step->node->n_out; k++)
        resolve(planner, &step->out[k]);
    if (step->choice.scratch_bytes > 0)
        step->scratch_offset = planner->pieces[step->scratch_offset].interval.offset;
}

int place_assign(struct planner *planner, struct err *err)
{
    struct plan *plan = planner->plan;
    for (size_t i = 0; i < planner->n_pieces; i++) {
        struct piece *piece = &planner->pieces[i];
        piece->slot |=
            section_at(plan, piece->interval.first) != section_at(plan, piece->interval.last);
    }
    int rc = assign_space(planner, false, &plan->arena_bytes, err);
    if (rc == 0)
        rc = assign_space(planner, true, &plan->slot_bytes, err);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < plan->n_steps; i++)
        resolve_step(planner, &plan->steps[i]);
    for (int i = 0; i < MODEL_MAX_INPUTS; i++)
        resolve(planner, &plan->data[i]);
    resolve(planner, &plan->target);
    resolve(planner, &plan->loss);
    resolve(planner, &plan->output);
    resolve(planner, &plan->prediction);
    for (int i = 0; plan->recorded != NULL && i < plan->graph->model->n_recorded; i++)
        resolve(planner, &plan->recorded[i]);
    for (int i = 0; i < plan->graph->n_received; i++)
        resolve(planner, &plan->received[i].value);
    for (int i = 0; i < plan->graph->n_sent; i++)
        resolve(planner, &plan->sent[i].grad);
    return 0;
}
