/* cat.c: cat and slice: tensors that follow each other in one dimension. A tensor is [outer, size,
 * inner]: under each outer index an input is one run of memory of the output. */
#include "engine/backend/cuda/own.h"
#include "engine/backend/cuda/sequence.h"
#include "engine/ops/attr.h"

/* Elements under one index of the dimensions before `dim`. */
static int64_t run_length(const struct value *value, int dim)
{
    int64_t length = 1;
    for (int i = dim; i < value->shape.rank; i++)
        length *= value->shape.dim[i];
    return length;
}

/* The part's runs, from or to where they begin in the whole. */
static int copy_part(const struct own *own, const struct value *part, const struct value *whole,
                     const struct slice_attr *at, const void *from, void *to, bool into_whole,
                     struct err *err)
{
    size_t element = dtype_size(part->dtype);
    size_t offset = (size_t)(at->begin * run_length(whole, at->dim + 1)) * element;
    int64_t part_step = run_length(part, at->dim), whole_step = run_length(whole, at->dim);
    const struct runs_launch runs = {
        .runs = shape_count(&part->shape) / part_step,
        .length = part_step,
        .from_step = into_whole ? part_step : whole_step,
        .to_step = into_whole ? whole_step : part_step,
    };
    const char *source = (const char *)from + (into_whole ? 0 : offset);
    char *target = (char *)to + (into_whole ? offset : 0);
    return own_launched(launch_copy_runs(element, source, target, &runs, own->device->compute),
                        err);
}

static int cat_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct cat_attr *attr = own->node->attr;
    int rc = 0;
    for (int i = 0; rc == 0 && i < own->node->n_in; i++)
        rc = copy_part(own, own->node->in[i], own->node->out[0], &attr->part[i], args->in[i],
                       args->out[0], true, err);
    return rc;
}

static int slice_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    return copy_part(own, own->node->out[0], own->node->in[0], own->node->attr, args->in[0],
                     args->out[0], false, err);
}

const struct kernel kernel_cat = {"cat", own_query_plain, own_create, cat_run, own_destroy};
const struct kernel kernel_slice = {"slice", own_query_plain, own_create, slice_run, own_destroy};
