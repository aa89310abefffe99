#include "engine/ops/dim.h"

#include <inttypes.h>

int dim_resolve(const struct build *build, const struct job_layer *layer, const struct shape *input,
                int *ret_dim, struct err *err)
{
    int64_t dim = layer->dim.dim < 0 ? layer->dim.dim + input->rank : layer->dim.dim;
    char text[SHAPE_TEXT];
    if (dim < 1 || dim >= input->rank)
        return build_shape_error(build, layer, err,
                                 "dim %" PRId64 " is none of its input %s behind the batch",
                                 layer->dim.dim, build_shape_text(input, text));
    *ret_dim = (int)dim;
    return 0;
}
