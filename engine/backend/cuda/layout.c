/* layout.c: see layout.h. */
#include "engine/backend/cuda/layout.h"

#include <string.h>

const struct layout *cuda_layout_image(struct arena *arena, const struct shape *shape,
                                       enum dtype dtype, bool channels_last)
{
    struct layout *layout = arena_alloc(arena, sizeof *layout);
    if (!layout)
        return NULL;
    *layout = (struct layout){
        .shape = *shape,
        .dtype = dtype,
        .bytes = (size_t)shape_count(shape) * dtype_size(dtype),
        .channels_last = channels_last && shape->rank == 4,
    };
    return layout;
}

const struct layout *cuda_layout_plain(struct arena *arena, const struct shape *shape,
                                       enum dtype dtype)
{
    return cuda_layout_image(arena, shape, dtype, false);
}

const struct layout *cuda_layout_private(struct arena *arena, const struct shape *shape,
                                         size_t size, bool channels_last)
{
    struct layout *layout = arena_alloc(arena, sizeof *layout);
    if (!layout)
        return NULL;
    *layout = (struct layout){
        .shape = *shape,
        .dtype = DTYPE_U8,
        .bytes = (size_t)shape_count(shape) * size,
        .channels_last = channels_last && shape->rank == 4,
    };
    return layout;
}

size_t cuda_layout_bytes(const struct layout *layout)
{
    return layout->bytes;
}

bool cuda_layout_equal(const struct layout *a, const struct layout *b)
{
    return a == b || (a->dtype == b->dtype && a->bytes == b->bytes &&
                      a->channels_last == b->channels_last && shape_equal(&a->shape, &b->shape));
}

const char *cuda_layout_name(const struct layout *layout, char buf[static 64])
{
    return strcpy(buf, layout->channels_last ? "nhwc" : layout->shape.rank == 4 ? "nchw" : "plain");
}
