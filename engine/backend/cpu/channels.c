#include "engine/backend/cpu/channels.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

/* Elements of a group that its rows hold side by side; 0: a row is one step of it. */
static int64_t folded(const struct view *view)
{
    return chunk_period(view) < LANES || view->width == LANES ? view->steps * view->width : 0;
}

int64_t chunks_of(const struct view *view)
{
    int64_t elements = folded(view), rows = elements > 0 ? elements / LANES : view->steps;
    return (rows + CHUNK_ROWS - 1) / CHUNK_ROWS + (elements % LANES != 0);
}

struct chunk chunk_at(const struct view *view, int64_t sample, const struct unit *unit, int64_t i)
{
    int64_t elements = folded(view), rows = elements > 0 ? elements / LANES : view->steps;
    int64_t begin = (sample * view->groups + unit->group) * view->steps * view->width;
    int64_t first = i * CHUNK_ROWS, left = rows - first;
    if (elements > 0 && left <= 0) /* what is left of the last row */
        return (struct chunk){begin + rows * LANES, 1, LANES, (int)(elements % LANES)};
    if (left > CHUNK_ROWS)
        left = CHUNK_ROWS;
    if (elements > 0)
        return (struct chunk){begin + first * LANES, left, LANES, LANES};
    return (struct chunk){begin + first * view->width + unit->lane, left, view->width, unit->lanes};
}

static bool is_dense(const struct chunk *chunk)
{
    return chunk->stride == LANES && chunk->lanes == LANES;
}

const float *chunk_load(struct real tensor, const struct chunk *chunk, float *room)
{
    if (is_dense(chunk) && !tensor.low)
        return (const float *)tensor.at + chunk->at;
    if (is_dense(chunk)) {
        real_widen_all((const uint16_t *)tensor.at + chunk->at, chunk->rows * LANES, room);
        return room;
    }
    if (chunk->lanes == LANES && !tensor.low) {
        const float *from = (const float *)tensor.at + chunk->at;
        for (int64_t i = 0; i < chunk->rows; i++)
            memcpy(room + i * LANES, from + i * chunk->stride, LANES * sizeof *room);
        return room;
    }
    for (int64_t i = 0; i < chunk->rows; i++)
        for (int l = 0; l < LANES; l++)
            room[i * LANES + l] =
                l < chunk->lanes ? real_get(tensor, chunk->at + i * chunk->stride + l) : 0;
    return room;
}

float *chunk_rows(struct real tensor, const struct chunk *chunk, float *room)
{
    return is_dense(chunk) && !tensor.low ? (float *)tensor.at + chunk->at : room;
}

#ifdef __x86_64__
/* Whole lines: twice as fast as the same in four parts. */
__attribute__((target("avx512f"))) static void stream_lines(float *to, const float *from, int64_t n)
{
    for (int64_t i = 0; i < n; i += LANES)
        _mm512_stream_ps(to + i, _mm512_loadu_ps(from + i));
}

static void stream(float *to, const float *from, int64_t n)
{
    if ((uintptr_t)to % 64 == 0 && __builtin_cpu_supports("avx512f")) {
        stream_lines(to, from, n);
        return;
    }
    for (int64_t i = 0; i < n; i += 4)
        _mm_stream_ps(to + i, _mm_loadu_ps(from + i));
}

void store_fence(void)
{
    _mm_sfence();
}
#else
static void stream(float *to, const float *from, int64_t n)
{
    memcpy(to, from, (size_t)n * sizeof *to);
}

void store_fence(void)
{
}
#endif

void chunk_store(struct real tensor, const struct chunk *chunk, const float *rows)
{
    int64_t n = chunk->rows * LANES;
    float *place = tensor.low ? NULL : (float *)tensor.at + chunk->at;
    if (is_dense(chunk)) {
        if (tensor.low)
            real_round_all(rows, n, (uint16_t *)tensor.at + chunk->at);
        else if (rows != place && (uintptr_t)place % 16 == 0)
            stream(place, rows, n);
        else if (rows != place)
            memcpy(place, rows, (size_t)n * sizeof *rows);
        return;
    }
    for (int64_t i = 0; i < chunk->rows; i++)
        for (int l = 0; l < chunk->lanes; l++)
            real_set(tensor, chunk->at + i * chunk->stride + l, rows[i * LANES + l]);
}

void unit_spread(const struct view *view, const struct unit *unit, const float *values,
                 float absent, float *ret_lanes)
{
    int period = chunk_period(view), real = real_lanes(view, unit);
    for (int l = 0; l < LANES; l++) {
        int c = l % period;
        ret_lanes[l] = c >= real ? 0 : values ? values[unit->channel + c] : absent;
    }
}
