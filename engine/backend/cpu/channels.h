/* channels.h: a tensor cut into units of a few channels, of all samples: for sums a channel.
 *
 * What goes over a tensor with them in which order: tasks.h, or a unit a thread.
 */
#ifndef ENGINE_BACKEND_CPU_CHANNELS_H
#define ENGINE_BACKEND_CPU_CHANNELS_H

#include "engine/backend/cpu/real.h"

enum { LANES = 16 };

/* A grid as [n][groups][steps][width]: `width` channels lie side by side. */
struct view {
    int64_t n, groups, steps, width, channels;
};

static inline struct view view_of(const struct layout *layout)
{
    struct grid grid;
    layout_grid(layout, &grid);
    struct view view = {grid.n, grid.blocks, grid.h * grid.w, grid.block, grid.channels};
    if (view.steps == 1 && view.width == 1) /* [N, C]: samples are the steps of one */
        view = (struct view){1, 1, grid.n, grid.blocks, grid.channels};
    return view;
}

/* Where the unit's channels begin in group `group` of a sample. */
struct unit {
    int64_t group, lane, channel;
    int lanes;
};

static inline int64_t units_of(const struct view *view)
{
    return view->groups * ((view->width + LANES - 1) / LANES);
}

static inline struct unit unit_at(const struct view *view, int64_t u)
{
    int64_t a_group = (view->width + LANES - 1) / LANES;
    struct unit unit = {.group = u / a_group, .lane = u % a_group * LANES};
    unit.channel = unit.group * view->width + unit.lane;
    unit.lanes = (int)(view->width - unit.lane < LANES ? view->width - unit.lane : LANES);
    return unit;
}

/* The unit's channels that are not there to fill up a block. */
static inline int real_lanes(const struct view *view, const struct unit *unit)
{
    int64_t left = view->channels - unit->channel;
    return (int)(left < 0 ? 0 : left < unit->lanes ? left : unit->lanes);
}

static inline int64_t grain_of(const struct view *view)
{
    return OWN_GRAIN / (view->n * view->steps * LANES) + 1;
}

/* What a sample has of a unit as chunks: rows of LANES floats, one behind the other, that stay in a
 * cache while they are gone over. Where a group is narrower than a row, a row holds several steps.
 * Chunks of one sample after units after samples: so they lie in memory. */
struct chunk {
    int64_t at, rows, stride; /* its first element; from row to row */
    int lanes;                /* of each row that are elements of the tensor */
};

enum { CHUNK_ROWS = 128, CHUNK_FLOATS = CHUNK_ROWS * LANES };
enum { CHUNK_AHEAD = 32 * LANES }; /* floats between what is read and what is fetched by then */

/* After how many lanes of a row its channels come again. */
static inline int chunk_period(const struct view *view)
{
    return LANES % view->width == 0 ? (int)view->width : LANES;
}

int64_t chunks_of(const struct view *view); /* of a sample's part of a unit */
struct chunk chunk_at(const struct view *view, int64_t sample, const struct unit *unit, int64_t i);
/* The chunk's rows: where they lie if they do, else in `room`, missing lanes 0. */
const float *chunk_load(struct real tensor, const struct chunk *chunk, float *room);
/* Where the chunk's rows may be written before chunk_store. */
float *chunk_rows(struct real tensor, const struct chunk *chunk, float *room);
/* Rows elsewhere, though they might have been written in place, go past the caches: ahead of what
 * others read, store_fence. */
void chunk_store(struct real tensor, const struct chunk *chunk, const float *rows);

void store_fence(void);

/* One number a channel for each lane; 0 for lanes that only fill up. NULL: `absent` for all. */
void unit_spread(const struct view *view, const struct unit *unit, const float *values,
                 float absent, float *ret_lanes);

#endif
