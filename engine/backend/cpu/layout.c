/* layout.c: see layout.h. */
#include "engine/backend/cpu/layout.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <string.h>

/* Row-major tags by rank. */
static const dnnl_format_tag_t plain_tags[LIMIT_RANK + 1] = {
    dnnl_format_tag_undef, dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde, dnnl_abcdef,
};

dnnl_data_type_t layout_data_type(enum dtype dtype)
{
    static const dnnl_data_type_t types[DTYPE_COUNT] = {
        [DTYPE_F32] = dnnl_f32, [DTYPE_BF16] = dnnl_bf16};
    return types[dtype];
}

int64_t layout_count(const struct layout *layout)
{
    return (int64_t)(layout->bytes / dtype_size(layout->dtype));
}

static bool memory_init(dnnl_memory_desc_t *memory, const struct shape *shape,
                        dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    dnnl_dims_t dims = {0};
    for (int i = 0; i < shape->rank; i++)
        dims[i] = shape->dim[i];
    return dnnl_memory_desc_init_by_tag(memory, shape->rank, dims, type, tag) == dnnl_success;
}

const struct layout *layout_plain(struct arena *arena, const struct shape *shape, enum dtype dtype)
{
    struct layout *layout = arena_alloc(arena, sizeof *layout);
    if (!layout)
        return NULL;
    struct shape one = {1, {1}}; /* oneDNN knows no scalar */
    layout->shape = *shape;
    layout->dtype = dtype;
    layout->block = 1;
    layout->bytes = (size_t)shape_count(shape) * dtype_size(dtype);
    if (layout_data_type(dtype)) {
        const struct shape *ranked = shape->rank ? shape : &one;
        memory_init(&layout->memory, ranked, layout_data_type(dtype), plain_tags[ranked->rank]);
    }
    return layout;
}

const struct layout *layout_private(struct arena *arena, const struct shape *shape, int64_t block,
                                    size_t size)
{
    struct layout *layout = arena_alloc(arena, sizeof *layout);
    if (!layout)
        return NULL;
    struct grid grid;
    layout->shape = *shape;
    layout->dtype = DTYPE_U8;
    layout->block = block;
    layout_grid(layout, &grid);
    layout->bytes = (size_t)grid_count(&grid) * size;
    return layout;
}

/* The grid's block of a descriptor, or 0. */
static int64_t find_block(const dnnl_memory_desc_t *memory, const struct shape *shape)
{
    const struct {
        int rank;
        dnnl_format_tag_t tag;
        int64_t block;
    } family[] = {
        {shape->rank, plain_tags[shape->rank], 1},
        {4, dnnl_aBcd16b, 16},
        {4, dnnl_aBcd8b, 8},
        {4, dnnl_acdb, shape->dim[1]},
    };
    for (size_t i = 0; i < sizeof family / sizeof family[0]; i++) {
        dnnl_memory_desc_t member;
        if (family[i].rank == shape->rank &&
            memory_init(&member, shape, memory->data_type, family[i].tag) &&
            dnnl_memory_desc_equal(&member, memory))
            return family[i].block;
    }
    return 0;
}

const struct layout *layout_from_memory(struct arena *arena, const dnnl_memory_desc_t *memory)
{
    struct layout *layout = arena_alloc(arena, sizeof *layout);
    if (!layout)
        return NULL;
    layout->shape.rank = memory->ndims;
    for (int i = 0; i < memory->ndims; i++)
        layout->shape.dim[i] = memory->dims[i];
    layout->dtype = memory->data_type == dnnl_bf16 ? DTYPE_BF16 : DTYPE_F32;
    layout->memory = *memory;
    layout->bytes = dnnl_memory_desc_get_size(memory);
    layout->block = find_block(memory, &layout->shape);
    return layout;
}

const struct layout *layout_blocked(struct arena *arena, const struct shape *shape,
                                    enum dtype dtype, int64_t block)
{
    if (block == 1 || shape->rank != 4)
        return layout_plain(arena, shape, dtype);
    dnnl_memory_desc_t memory;
    memory_init(&memory, shape, layout_data_type(dtype),
                block == 16  ? dnnl_aBcd16b
                : block == 8 ? dnnl_aBcd8b
                             : dnnl_acdb);
    return layout_from_memory(arena, &memory);
}

const struct layout *layout_cast(struct arena *arena, const struct layout *layout, enum dtype dtype)
{
    dnnl_memory_desc_t memory = layout->memory;
    memory.data_type = layout_data_type(dtype);
    return layout_from_memory(arena, &memory);
}

size_t layout_bytes(const struct layout *layout)
{
    return layout->bytes;
}

bool layout_equal(const struct layout *a, const struct layout *b)
{
    if (a == b)
        return true;
    if (a->dtype != b->dtype || a->bytes != b->bytes || a->block != b->block ||
        !shape_equal(&a->shape, &b->shape))
        return false;
    return !layout_data_type(a->dtype) || dnnl_memory_desc_equal(&a->memory, &b->memory);
}

const char *layout_name(const struct layout *layout, char buf[static 64])
{
    if (layout->block == 1)
        return strcpy(buf, layout->shape.rank == 4 ? "nchw" : "plain");
    if (layout->block == 8 || layout->block == 16)
        snprintf(buf, 64, "nChw%dc", (int)layout->block);
    else
        strcpy(buf, layout->block ? "nhwc" : "dnnl");
    return buf;
}

bool layout_grid(const struct layout *layout, struct grid *ret_grid)
{
    const struct shape *shape = &layout->shape;
    int64_t block = layout->block;
    if (!block)
        return false;
    if (shape->rank == 4 || shape->rank == 2) {
        int64_t h = shape->rank == 4 ? shape->dim[2] : 1, w = shape->rank == 4 ? shape->dim[3] : 1;
        int64_t blocks = (shape->dim[1] + block - 1) / block;
        *ret_grid = (struct grid){shape->dim[0], blocks, h, w, block, shape->dim[1]};
        return true;
    }
    int64_t n = shape->rank ? shape->dim[0] : 1;
    *ret_grid = (struct grid){n, 1, 1, n ? shape_count(shape) / n : 0, 1, 1};
    return true;
}

int64_t grid_count(const struct grid *grid)
{
    return grid->n * grid->blocks * grid->h * grid->w * grid->block;
}
