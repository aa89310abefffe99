/* layout.h: how a tensor lies in a GPU's memory: row-major, or of rank 4 with its channels last
 * (NHWC), as tensor cores want an image. PURE. */
#ifndef ENGINE_BACKEND_CUDA_LAYOUT_H
#define ENGINE_BACKEND_CUDA_LAYOUT_H

#include "engine/backend/backend.h"

struct layout {
    struct shape shape;
    enum dtype dtype;
    size_t bytes;
    bool channels_last; /* of rank 4 alone */
};

/* For struct backend. */
const struct layout *cuda_layout_plain(struct arena *arena, const struct shape *shape,
                                       enum dtype dtype);
size_t cuda_layout_bytes(const struct layout *layout);
bool cuda_layout_equal(const struct layout *a, const struct layout *b);
const char *cuda_layout_name(const struct layout *layout, char buf[static 64]);

/* A tensor of rank 4 with its channels last where that is asked, else plain. NULL without memory.
 */
const struct layout *cuda_layout_image(struct arena *arena, const struct shape *shape,
                                       enum dtype dtype, bool channels_last);
/* What a kernel keeps for another: `size` bytes an element of such an image. NULL without memory.
 */
const struct layout *cuda_layout_private(struct arena *arena, const struct shape *shape,
                                         size_t size, bool channels_last);

#endif
