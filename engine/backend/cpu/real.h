/* real.h: tensors of F32 or BF16 in our own loops.
 *
 * All compute in floats: BF16 is widened on the way in and rounded to nearest even on the way out
 * (a NaN stays one), in registers or, plane by plane, in a scratch that stays in a cache.
 */
#ifndef ENGINE_BACKEND_CPU_REAL_H
#define ENGINE_BACKEND_CPU_REAL_H

#include "engine/backend/cpu/own.h"
#include "engine/backend/cpu/vector.h"

VECTOR_INLINE float real_widen(uint16_t bf16)
{
    uint32_t bits = (uint32_t)bf16 << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

VECTOR_INLINE uint16_t real_round(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    return (uint16_t)((x == x ? rounded : bits | 0x400000) >> 16);
}

struct real {
    void *at;
    bool low; /* BF16, else F32 */
};

/* n elements side by side. */
void real_widen_all(const uint16_t *from, int64_t n, float *to);
void real_round_all(const float *from, int64_t n, uint16_t *to);

struct real real_of(void *at, const struct layout *layout);

VECTOR_INLINE float real_get(struct real tensor, int64_t i)
{
    return tensor.low ? real_widen(((const uint16_t *)tensor.at)[i])
                      : ((const float *)tensor.at)[i];
}

VECTOR_INLINE void real_set(struct real tensor, int64_t i, float x)
{
    if (tensor.low)
        ((uint16_t *)tensor.at)[i] = real_round(x);
    else
        ((float *)tensor.at)[i] = x;
}

/* Work that goes from each plane of in[0] to that of out[0]: a block of channels of a sample, both
 * grids of one block. Planes are run by the whole team and do not depend on each other. */
typedef void real_plane(const void *context, int64_t plane, const float *in, float *out);
void real_planes_run(const struct own *own, const struct kernel_args *args, real_plane *run,
                     const void *context);
size_t real_planes_scratch(const struct kernel_choice *choice); /* bytes that it needs */

#endif
