/* dump.c: a plan as text, a step a line:
 *
 *     fc linear [own] data:plain@data+0, fc.weight:plain@variables+0 -> %4:plain@arena+128
 */
#include <stdio.h>
#include <stdlib.h>

#include "engine/graph/op.h"
#include "engine/plan/plan.h"

static const char *space_name(enum plan_space space)
{
    static const char *const names[] = {
        [SPACE_NONE] = "none",     [SPACE_VARIABLES] = "variables", [SPACE_ARENA] = "arena",
        [SPACE_TARGET] = "target", [SPACE_DATA] = "data",           [SPACE_SLOT] = "slot",
        [SPACE_OUTBOX] = "outbox",
    };
    return names[space < SPACE_DATA ? space : SPACE_DATA];
}

static void print_buffer(FILE *out, const struct plan *plan, const struct value *value,
                         const struct plan_buffer *buffer)
{
    char layout[64];
    if (value == NULL) {
        fputs("-", out);
        return;
    }
    if (value->name != NULL)
        fputs(value->name, out);
    else
        fprintf(out, "%%%d", value->id);
    fprintf(out, ":%s@%s+%zu", plan->backend->layout_name(buffer->layout, layout),
            space_name(buffer->space), buffer->offset);
}

static void print_step(FILE *out, const struct plan *plan, const struct plan_step *step)
{
    fprintf(out, "%s %s [%s]", step->node->name, step->node->op->name, step->choice.impl);
    for (int i = 0; i < step->node->n_in; i++) {
        fputs(i == 0 ? " " : ", ", out);
        print_buffer(out, plan, step->node->in[i], &step->in[i]);
    }
    for (int i = 0; i < step->node->n_out; i++) {
        fputs(i == 0 ? " -> " : ", ", out);
        print_buffer(out, plan, step->node->out[i], &step->out[i]);
    }
    if (step->choice.scratch_bytes > 0)
        fprintf(out, " scratch %zu@arena+%zu", step->choice.scratch_bytes, step->scratch_offset);
    fputs("\n", out);
}

char *plan_dump(const struct plan *plan)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < plan->n_steps; i++)
        print_step(out, plan, &plan->steps[i]);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
