/* vector.h: loops that become vector code, at the width of the machine that runs them.
 *
 * VECTOR_CLONES before a function makes the compiler translate it for AVX2 and AVX-512 as well, and
 * the loader choose; what it calls has to be inlined. Without it (clang, other processors) the
 * function is translated for the build's own target alone.
 */
#ifndef ENGINE_BACKEND_CPU_VECTOR_H
#define ENGINE_BACKEND_CPU_VECTOR_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* The loader chooses a clone before ThreadSanitizer is there to watch it choose: none with it. */
#if defined __x86_64__ && defined __GNUC__ && __GNUC__ >= 12 && !defined __clang__ &&              \
    !defined __SANITIZE_THREAD__
#define VECTOR_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define VECTOR_CLONES
#endif
#define VECTOR_INLINE static inline __attribute__((always_inline))

/* exp(x) for x <= 0, to one unit in the last place; 0 below -88, NaN for NaN. Without a branch:
 * exp(x) = 2^n * exp(r), n = round(x / ln 2); the polynomial of exp(r) is Cephes'. */
VECTOR_INLINE float vector_exp(float x)
{
    const float round = 0x1.8p23f; /* adding it leaves the integer in the low bits */
    float clamped = x < -88.0f ? -88.0f : x;
    float shifted = clamped * 0x1.715476p0f + round, n = shifted - round;
    float r = clamped - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1;
    uint32_t bits;
    float power; /* 2^n; 0 for n = -127 */
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits << 23) + 0x3f800000;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

enum { VECTOR_LANES = 16 };

/* The largest of n floats, -infinity of none. A NaN may be passed over. */
VECTOR_INLINE float vector_max(const float *x, int64_t n)
{
    float lane[VECTOR_LANES], largest = -INFINITY;
    int64_t whole = n - n % VECTOR_LANES;
    for (int k = 0; k < VECTOR_LANES; k++)
        lane[k] = -INFINITY;
    for (int64_t i = 0; i < whole; i += VECTOR_LANES)
#pragma omp simd
        for (int k = 0; k < VECTOR_LANES; k++)
            lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k];
    for (int64_t i = whole; i < n; i++)
        largest = x[i] > largest ? x[i] : largest;
    for (int k = 0; k < VECTOR_LANES; k++)
        largest = lane[k] > largest ? lane[k] : largest;
    return largest;
}

/* 1 / (1 + exp(-x)), to two units in the last place. */
VECTOR_INLINE float vector_sigmoid(float x)
{
    float e = vector_exp(-fabsf(x));
    return (x < 0 ? e : 1) / (1 + e);
}

/* tanh(x), to two units in the last place; the polynomial near zero, where the quotient would
 * cancel, is Cephes'. */
VECTOR_INLINE float vector_tanh(float x)
{
    float e = vector_exp(-2 * fabsf(x)), far = copysignf((1 - e) / (1 + e), x), z = x * x;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    return fabsf(x) < 0.625f ? p * z * x + x : far;
}

#endif
