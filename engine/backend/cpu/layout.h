/* layout.h: how a tensor lies in memory on a CPU.
 *
 * F32 and BF16 tensors carry oneDNN's memory descriptor; the others are always plain. Almost every
 * layout that oneDNN picks for an image belongs to one family, the grid: [N][C /
 * block][H][W][block], with block 1 (NCHW), 8 or 16 (one vector of channels) or C (NHWC). Our own
 * kernels are written for that family once. Where C is no multiple of the block the last block is
 * padded with channels that are zero, and every kernel keeps them so. PURE.
 */
#ifndef ENGINE_BACKEND_CPU_LAYOUT_H
#define ENGINE_BACKEND_CPU_LAYOUT_H

#include <oneapi/dnnl/dnnl_types.h>

#include "engine/backend/backend.h"

struct layout {
    struct shape shape;
    enum dtype dtype;
    size_t bytes;
    int64_t block;             /* of the grid; 0: another layout */
    dnnl_memory_desc_t memory; /* F32 and BF16 only */
};

/* For struct backend. */
const struct layout *layout_plain(struct arena *arena, const struct shape *shape, enum dtype dtype);
size_t layout_bytes(const struct layout *layout);
bool layout_equal(const struct layout *a, const struct layout *b);
const char *layout_name(const struct layout *layout, char buf[static 64]);

/* oneDNN's name of the type; dnnl_data_type_undef: it has no descriptor here. */
dnnl_data_type_t layout_data_type(enum dtype dtype);
int64_t
layout_count(const struct layout *layout); /* elements, those that fill up blocks included */

/* The tensor of this descriptor. NULL without memory. */
const struct layout *layout_from_memory(struct arena *arena, const dnnl_memory_desc_t *memory);
/* A tensor of rank 4 as a grid of that block, else plain; F32 or BF16. NULL without memory. */
const struct layout *layout_blocked(struct arena *arena, const struct shape *shape,
                                    enum dtype dtype, int64_t block);
/* The same tensor, as it lies, in another type. NULL without memory. */
const struct layout *layout_cast(struct arena *arena, const struct layout *layout,
                                 enum dtype dtype);
/* A tensor without oneDNN's descriptor: `size` bytes an element, as a grid of that block. */
const struct layout *layout_private(struct arena *arena, const struct shape *shape, int64_t block,
                                    size_t size);

struct grid {
    int64_t n, blocks, h, w, block;
    int64_t channels; /* without the padded ones */
};

/* A tensor of rank 4 as it lies; of rank 2 [N, C] with one pixel; of any other rank as N rows of
 * one channel. false: the layout is not of the family. */
bool layout_grid(const struct layout *layout, struct grid *ret_grid);
int64_t grid_count(const struct grid *grid); /* elements, the padded ones included */

#endif
