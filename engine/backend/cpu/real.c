/* real.c: see real.h. */
#include "engine/backend/cpu/real.h"

#include "engine/base/team.h"

VECTOR_CLONES void real_widen_all(const uint16_t *from, int64_t n, float *to)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        to[i] = real_widen(from[i]);
}

VECTOR_CLONES void real_round_all(const float *from, int64_t n, uint16_t *to)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        to[i] = real_round(from[i]);
}

struct real real_of(void *at, const struct layout *layout)
{
    return (struct real){at, layout->dtype == DTYPE_BF16};
}

struct planes {
    struct real in, out;
    int64_t n, in_size, out_size; /* planes; elements of one */
    int64_t n_parts;              /* of BF16: runs of planes, each with a scratch of its own */
    float *scratch;
    real_plane *run;
    const void *context;
};

static struct planes planes_of(const struct kernel_choice *choice)
{
    struct grid in, out;
    layout_grid(choice->in[0], &in);
    layout_grid(choice->out[0], &out);
    struct planes planes = {
        .n = in.n * in.blocks,
        .in_size = in.h * in.w * in.block,
        .out_size = out.h * out.w * out.block,
        .n_parts = team_size(),
    };
    if (planes.n * (planes.in_size + planes.out_size) < 2 * OWN_GRAIN)
        planes.n_parts = 1;
    return planes;
}

size_t real_planes_scratch(const struct kernel_choice *choice)
{
    struct planes planes = planes_of(choice);
    size_t floats = (size_t)(planes.n_parts * (planes.in_size + planes.out_size));
    return choice->in[0]->dtype == DTYPE_BF16 ? floats * sizeof(float) : 0;
}

static void run_planes(int64_t begin, int64_t end, void *context)
{
    const struct planes *planes = context;
    for (int64_t p = begin; p < end; p++)
        planes->run(planes->context, p, (const float *)planes->in.at + p * planes->in_size,
                    (float *)planes->out.at + p * planes->out_size);
}

static void run_part(const struct planes *planes, int64_t part)
{
    int64_t in_size = planes->in_size, out_size = planes->out_size, n_parts = planes->n_parts;
    float *in = planes->scratch + part * (in_size + out_size), *out = in + in_size;
    for (int64_t p = part * planes->n / n_parts; p < (part + 1) * planes->n / n_parts; p++) {
        real_widen_all((const uint16_t *)planes->in.at + p * in_size, in_size, in);
        planes->run(planes->context, p, in, out);
        real_round_all(out, out_size, (uint16_t *)planes->out.at + p * out_size);
    }
}

static void run_parts(int64_t begin, int64_t end, void *context)
{
    for (int64_t part = begin; part < end; part++)
        run_part(context, part);
}

void real_planes_run(const struct own *own, const struct kernel_args *args, real_plane *run,
                     const void *context)
{
    struct planes planes = planes_of(own->choice);
    int64_t size = planes.in_size > planes.out_size ? planes.in_size : planes.out_size;
    planes.in = real_of(args->in[0], own->choice->in[0]);
    planes.out = real_of(args->out[0], own->choice->out[0]);
    planes.scratch = args->scratch;
    planes.run = run;
    planes.context = context;
    if (planes.in.low)
        team_for(planes.n_parts, 1, run_parts, &planes);
    else
        team_for(planes.n, OWN_GRAIN / size + 1, run_planes, &planes);
}
