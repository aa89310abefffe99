/* weights_file.c: see weights_file.h. */
#include "engine/train/weights_file.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/arena.h"
#include "engine/base/file.h"
#include "proto/limits.h"

/* Element i as a number; the file's elements need not be aligned. */
#define NUMBER_OF(name, type)                                                                      \
    static double name(const void *data, int64_t i)                                                \
    {                                                                                              \
        type element;                                                                              \
        memcpy(&element, (const char *)data + (size_t)i * sizeof element, sizeof element);         \
        return (double)element;                                                                    \
    }

NUMBER_OF(number_f32, float)
NUMBER_OF(number_f64, double)
NUMBER_OF(number_i64, int64_t)
NUMBER_OF(number_i32, int32_t)
NUMBER_OF(number_i16, int16_t)
NUMBER_OF(number_i8, int8_t)
NUMBER_OF(number_u8, uint8_t)
NUMBER_OF(bits_16, uint16_t)

/* The upper half of a float. */
static double number_bf16(const void *data, int64_t i)
{
    uint32_t bits = (uint32_t)bits_16(data, i) << 16;
    return number_f32(&bits, 0);
}

/* IEEE 754 binary16: sign, 5 bits of exponent, 10 of fraction. */
static double number_f16(const void *data, int64_t i)
{
    unsigned bits = (unsigned)bits_16(data, i);
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double magnitude = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
                       : exponent == 0 ? ldexp(fraction, -24)
                                       : ldexp(1024 + fraction, exponent - 25);
    return bits >> 15 != 0 ? -magnitude : magnitude;
}

static double (*const numbers[DTYPE_COUNT])(const void *data, int64_t i) = {
    [DTYPE_F32] = number_f32,   [DTYPE_F64] = number_f64, [DTYPE_I64] = number_i64,
    [DTYPE_I32] = number_i32,   [DTYPE_I16] = number_i16, [DTYPE_I8] = number_i8,
    [DTYPE_U8] = number_u8,     [DTYPE_BOOL] = number_u8, [DTYPE_F16] = number_f16,
    [DTYPE_BF16] = number_bf16,
};

/* |x - y|, of which two NaNs and two equal infinities have 0. */
static double distance(double x, double y)
{
    return x == y || (isnan(x) && isnan(y)) ? 0 : fabs(x - y);
}

struct weights_difference weights_compare(const struct safetensor *a, const struct safetensor *b)
{
    struct weights_difference difference = {0, 0};
    double largest = 0;
    int64_t count = shape_count(&b->shape);
    if (a->dtype == b->dtype && memcmp(a->data, b->data, a->bytes) == 0)
        return difference;
    for (int64_t i = 0; i < count; i++) {
        double y = numbers[b->dtype](b->data, i);
        double d = distance(numbers[a->dtype](a->data, i), y);
        if (!(d <= difference.max_abs)) /* a NaN stays */
            difference.max_abs = isnan(difference.max_abs) ? difference.max_abs : d;
        largest = fmax(largest, fabs(y));
    }
    if (difference.max_abs != 0)
        difference.relative = difference.max_abs / largest;
    return difference;
}

static const char prefix[] = "module.";
enum { PREFIX = sizeof prefix - 1 };

static bool prefixed(const char *name)
{
    return strncmp(name, prefix, PREFIX) == 0;
}

/* Keys with and without the prefix are a mixture of two models; without it there is none to take.
 */
static int check_keys(const struct safetensors *file, const char *path, bool parallel,
                      struct err *err)
{
    const char *with = NULL, *without = NULL;
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const char *name = safetensors_at(file, i)->name;
        *(prefixed(name) ? &with : &without) = name;
    }
    if (with != NULL && without != NULL)
        return err_set(err, ERR_WEIGHTS_INVALID,
                       "%s: keys with and without «module.»: \"%.128s\" and \"%.128s\"", path, with,
                       without);
    if (!parallel && with == NULL)
        return err_set(err, ERR_WEIGHTS_INVALID, "%s: no key begins with «module.»", path);
    return 0;
}

static const char *rename_key(struct arena *arena, const char *name, bool parallel)
{
    return parallel ? arena_format(arena, "%s%s", prefix, name) : name + PREFIX;
}

/* The tensors under their new names, in the file's memory and the arena's. */
static struct safetensor *rename_all(const struct safetensors *file, struct arena *arena,
                                     bool parallel)
{
    size_t n = safetensors_count(file);
    struct safetensor *tensors = arena_array(arena, n + 1, sizeof *tensors);
    for (size_t i = 0; tensors != NULL && i < n; i++) {
        tensors[i] = *safetensors_at(file, i);
        tensors[i].name = rename_key(arena, tensors[i].name, parallel);
        if (tensors[i].name == NULL)
            return NULL;
    }
    return tensors;
}

/* Beside the file, then in its place. */
static int write_whole(const struct safetensors *file, const struct safetensor *tensors,
                       const char *out, struct err *err)
{
    char fresh[LIMIT_PATH_BYTES], dir[LIMIT_PATH_BYTES];
    const char *slash = strrchr(out, '/');
    int rc = file_path(fresh, err, "%s.new", out);
    if (rc == 0)
        rc = file_path(dir, err, "%.*s", slash != NULL ? (int)(slash - out) + 1 : 1,
                       slash != NULL ? out : ".");
    if (rc != 0)
        return rc;
    rc = safetensors_write(fresh, tensors, safetensors_count(file), safetensors_all_metadata(file),
                           err);
    if (rc == 0)
        rc = file_rename(fresh, out, dir, err);
    if (rc != 0)
        unlink(fresh);
    return rc;
}

int weights_convert(const char *in, const char *out, bool parallel, size_t *ret_keys,
                    struct err *err)
{
    struct safetensors *file = NULL;
    struct arena *arena = NULL;
    int rc = safetensors_open(in, &file, err);
    if (rc == 0)
        rc = check_keys(file, in, parallel, err);
    if (rc != 0)
        goto out;
    arena = arena_new();
    const struct safetensor *tensors = arena != NULL ? rename_all(file, arena, parallel) : NULL;
    if (tensors == NULL) {
        rc = err_set(err, ERR_NOMEM, "no memory to convert %s", in);
        goto out;
    }
    rc = write_whole(file, tensors, out, err);
    if (rc == 0)
        *ret_keys = safetensors_count(file);
out:
    arena_free(arena);
    safetensors_close(file);
    return rc;
}
