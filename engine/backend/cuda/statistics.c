/* statistics.c: mean, standard deviation, norm, largest magnitude and NaN count, in one pass. */
#include "engine/backend/cuda/own.h"
#include "engine/backend/cuda/reduce.h"
#include "engine/ops/attr.h"

static int statistics_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct own *own = state;
    const struct statistics_attr *attr = own->node->attr;
    return own_launched(launch_statistics(args->in[0], own_count(own->choice->in[0]), attr->scaled,
                                          args->scratch, args->out[0], own->device->step,
                                          own->device->compute),
                        err);
}

/* The order of the elements does not matter. */
static int statistics_query(const struct node *node, const struct layout *const *in,
                            struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    int rc = own_query_plain(node, in, arena, ret_choice, err);
    if (rc)
        return rc;
    ret_choice->in[0] = in[0];
    ret_choice->scratch_bytes = STATISTICS_PARTS * STATISTICS_SUMS * sizeof(double);
    return 0;
}

const struct kernel kernel_statistics = {"statistics", statistics_query, own_create, statistics_run,
                                         own_destroy};
