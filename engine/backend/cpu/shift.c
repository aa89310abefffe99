/* shift.c: shift: the steps of [N, T, F] moved to later or earlier ones. */
#include <stdlib.h>
#include <string.h>

#include "engine/backend/cpu/own.h"
#include "engine/base/team.h"
#include "engine/ops/attr.h"

struct shift {
    const float *x;
    float *y;
    int64_t steps, size, by;
};

static void shift_samples(int64_t begin, int64_t end, void *context)
{
    const struct shift *shift = context;
    int64_t gap = llabs(shift->by) < shift->steps ? llabs(shift->by) : shift->steps;
    size_t zeros = (size_t)(gap * shift->size), kept = (size_t)((shift->steps - gap) * shift->size);
    for (int64_t n = begin; n < end; n++) {
        const float *x = shift->x + n * shift->steps * shift->size;
        float *y = shift->y + n * shift->steps * shift->size;
        bool later = shift->by > 0;
        memset(later ? y : y + kept, 0, zeros * sizeof *y);
        memcpy(later ? y + zeros : y, later ? x : x + zeros, kept * sizeof *y);
    }
}

static int shift_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    const struct shift_attr *attr = own->node->attr;
    const struct shape *x = &own->node->in[0]->shape;
    struct shift shift = {args->in[0], args->out[0], x->dim[1], x->dim[2], attr->by};
    team_for(x->dim[0], OWN_GRAIN / (shift.steps * shift.size) + 1, shift_samples, &shift);
    return 0;
}

const struct kernel kernel_shift = {"shift", own_query_plain, own_create, shift_run, own_destroy};
