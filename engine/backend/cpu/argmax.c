/* argmax.c: the predicted class: the first largest logit; NaN counts as the largest, as in PyTorch.
 */
#include "engine/backend/cpu/own.h"

static int64_t argmax(const float *row, int64_t n)
{
    int64_t best = 0;
    for (int64_t c = 1; c < n && row[best] == row[best]; c++)
        if (row[c] > row[best] || row[c] != row[c])
            best = c;
    return best;
}

static int argmax_run(void *state, const struct kernel_args *args, struct err *err)
{
    (void)err;
    const struct own *own = state;
    const struct shape *shape = &own->node->in[0]->shape;
    const float *logits = args->in[0];
    int64_t *prediction = args->out[0];
    int64_t classes = shape->dim[shape->rank - 1], n = shape_count(shape) / classes;
    for (int64_t i = 0; i < n; i++)
        prediction[i] = argmax(logits + i * classes, classes);
    return 0;
}

const struct kernel kernel_argmax = {"argmax", own_query_plain, own_create, argmax_run,
                                     own_destroy};
