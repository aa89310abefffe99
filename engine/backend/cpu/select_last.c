/* select_last.c: select_last and its gradient: the last valid step of each sample. */
#include <string.h>

#include "engine/backend/cpu/own.h"

/* The last valid step of sample i; lengths NULL: all are. Errors: ERR_DATA_INVALID. */
static int last_step(const int64_t *lengths, int64_t i, int64_t steps, const struct step *step,
                     int64_t *ret_last, struct err *err)
{
    int64_t length = lengths ? lengths[i] : steps;
    if (length < 1 || length > steps) /* it indexes memory: not left to the loader alone */
        return err_set(err, ERR_DATA_INVALID,
                       "sample %lld of the epoch has the length %lld, and there are %lld steps",
                       (long long)(step->first_sample + i), (long long)length, (long long)steps);
    *ret_last = length - 1;
    return 0;
}

/* Bytes of a step of a sample of x [N, T, …]. */
static int64_t step_bytes(const struct value *x)
{
    return shape_count(&x->shape) / x->shape.dim[0] / x->shape.dim[1] *
           (int64_t)dtype_size(x->dtype);
}

static int select_last_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct shape *x = &own->node->in[0]->shape;
    const int64_t *lengths = own_in(own->node, 1) ? args->in[1] : NULL;
    int64_t size = step_bytes(own->node->in[0]), last = 0;
    for (int64_t i = 0; i < x->dim[0]; i++) {
        int rc = last_step(lengths, i, x->dim[1], args->step, &last, err);
        if (rc)
            return rc;
        memcpy((char *)args->out[0] + i * size,
               (const char *)args->in[0] + (i * x->dim[1] + last) * size, (size_t)size);
    }
    return 0;
}

static int select_last_grad_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct shape *x = &own->node->out[0]->shape;
    const int64_t *lengths = own_in(own->node, 1) ? args->in[1] : NULL;
    int64_t size = step_bytes(own->node->out[0]), last = 0;
    memset(args->out[0], 0, own->choice->out[0]->bytes);
    for (int64_t i = 0; i < x->dim[0]; i++) {
        int rc = last_step(lengths, i, x->dim[1], args->step, &last, err);
        if (rc)
            return rc;
        memcpy((char *)args->out[0] + (i * x->dim[1] + last) * size,
               (const char *)args->in[0] + i * size, (size_t)size);
    }
    return 0;
}

const struct kernel kernel_select_last = {"select_last", own_query_plain, own_create,
                                          select_last_run, own_destroy};
const struct kernel kernel_select_last_grad = {"select_last_grad", own_query_plain, own_create,
                                               select_last_grad_run, own_destroy};
