/* check_weights_file.c: comparing and renaming without a model. */
#include "engine/train/weights_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/lib/checks.h"

static struct safetensor tensor(enum dtype dtype, const void *data, size_t bytes)
{
    return (struct safetensor){.name = "t",
                               .shape = {1, {(int64_t)(bytes / dtype_size(dtype))}},
                               .dtype = dtype,
                               .data = data,
                               .bytes = bytes};
}

static struct weights_difference compare(const float *a, const float *b, size_t n)
{
    struct safetensor x = tensor(DTYPE_F32, a, n * sizeof *a);
    struct safetensor y = tensor(DTYPE_F32, b, n * sizeof *b);
    return weights_compare(&x, &y);
}

START_TEST(the_largest_distance_counts)
{
    const float a[3] = {1, -3, 0}, b[3] = {1.5f, -4, 0};
    struct weights_difference difference = compare(a, b, 3);
    ck_assert_double_eq(difference.max_abs, 1);
    ck_assert_double_eq(difference.relative, 0.25);
    difference = compare(a, a, 3);
    ck_assert_double_eq(difference.max_abs, 0);
    ck_assert_double_eq(difference.relative, 0);
}
END_TEST

START_TEST(zeros_of_either_sign_are_equal)
{
    const float a[2] = {0, INFINITY}, b[2] = {-0.0f, INFINITY};
    ck_assert_double_eq(compare(a, b, 2).max_abs, 0);
}
END_TEST

START_TEST(a_nan_differs_from_every_number)
{
    const float a[3] = {1, NAN, 9}, b[3] = {1, 2, 3}, same[3] = {1.5f, NAN, 9};
    ck_assert(isnan(compare(a, b, 3).max_abs));
    ck_assert(isnan(compare(b, a, 3).max_abs));
    ck_assert_double_eq(compare(a, same, 3).max_abs, 0.5);
}
END_TEST

/* -2, the largest F16, its least above 0, infinity. */
START_TEST(halves_are_read)
{
    static const uint16_t f16[] = {0xc000, 0x7bff, 0x0001, 0x7c00}, bf16[] = {0xc000, 0x3f80};
    static const float floats[] = {-2, 65504, 5.9604644775390625e-8f, INFINITY};
    static const float others[] = {-2, 1};
    struct safetensor half = tensor(DTYPE_F16, f16, sizeof f16);
    struct safetensor whole = tensor(DTYPE_F32, floats, sizeof floats);
    ck_assert_double_eq(weights_compare(&half, &whole).max_abs, 0);
    half = tensor(DTYPE_BF16, bf16, sizeof bf16);
    whole = tensor(DTYPE_F32, others, sizeof others);
    ck_assert_double_eq(weights_compare(&half, &whole).max_abs, 0);
}
END_TEST

START_TEST(integers_of_every_width)
{
    static const int64_t i64[] = {-3, 100};
    static const int32_t i32[] = {-3, 100};
    static const int16_t i16[] = {-3, 100};
    static const int8_t i8[] = {-3, 100};
    const struct safetensor all[] = {
        tensor(DTYPE_I64, i64, sizeof i64), tensor(DTYPE_I32, i32, sizeof i32),
        tensor(DTYPE_I16, i16, sizeof i16), tensor(DTYPE_I8, i8, sizeof i8)};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        ck_assert_double_eq(weights_compare(&all[i], &all[0]).max_abs, 0);
}
END_TEST

/* A file with these keys. */
static const char *written(const char *name, const char *const *keys, size_t n)
{
    static char path[2][600];
    static int turn;
    char *to = path[turn++ % 2];
    static const float data[2] = {1, 2};
    struct safetensor tensors[4];
    struct err err = ERR_INIT;
    for (size_t i = 0; i < n; i++) {
        tensors[i] = tensor(DTYPE_F32, data, sizeof data);
        tensors[i].name = keys[i];
    }
    json_t *metadata = json_pack("{s:s}", "format", "pt");
    snprintf(to, sizeof path[0], "%s/%s", checks_scratch(), name);
    ck_assert_msg(safetensors_write(to, tensors, n, metadata, &err) == 0, "%s", err.message);
    json_decref(metadata);
    return to;
}

static void has(const char *path, const char *key)
{
    struct safetensors *file;
    struct err err = ERR_INIT;
    ck_assert_msg(safetensors_open(path, &file, &err) == 0, "%s", err.message);
    ck_assert_msg(safetensors_find(file, key) != NULL, "%s has no %s", path, key);
    ck_assert_str_eq(safetensors_metadata(file, "format"), "pt");
    safetensors_close(file);
}

START_TEST(exactly_one_prefix_is_added_or_taken)
{
    static const char *const keys[] = {"fc.weight", "fc.bias"};
    static const char *const twice[] = {"module.module.fc.weight"};
    const char *path = written("w", keys, 2), *deep = written("d", twice, 1);
    struct err err = ERR_INIT;
    size_t n = 0;
    ck_assert_int_eq(weights_convert(path, path, true, &n, &err), 0);
    ck_assert_uint_eq(n, 2);
    has(path, "module.fc.weight");
    has(path, "module.fc.bias");
    ck_assert_int_eq(weights_convert(path, path, false, &n, &err), 0);
    has(path, "fc.weight");
    ck_assert_int_eq(weights_convert(deep, deep, false, &n, &err), 0);
    has(deep, "module.fc.weight");
    ck_assert_int_eq(weights_convert(deep, deep, true, &n, &err), 0);
    has(deep, "module.module.fc.weight");
}
END_TEST

static const struct {
    const char *keys[2];
    size_t n;
    bool parallel;
    const char *says;
} refusals[] = {
    {{"module.a", "b"}, 2, true, "\"module.a\" and \"b\""},
    {{"module.a", "b"}, 2, false, "\"module.a\" and \"b\""},
    {{"a", "b"}, 2, false, "no key begins with"},
};

START_TEST(mixed_keys_are_refused)
{
    struct err err = ERR_INIT;
    size_t n = 77;
    char out[600];
    const char *path = written("w", refusals[_i].keys, refusals[_i].n);
    snprintf(out, sizeof out, "%s/out", checks_scratch());
    ck_assert_int_eq(weights_convert(path, out, refusals[_i].parallel, &n, &err),
                     ERR_WEIGHTS_INVALID);
    ck_assert_msg(strstr(err.message, refusals[_i].says) != NULL, "%s", err.message);
    ck_assert_uint_eq(n, 77);
    struct safetensors *file;
    ck_assert_int_eq(safetensors_open(out, &file, &err), ERR_IO);
}
END_TEST

START_TEST(what_cannot_be_written_leaves_nothing)
{
    static const char *const keys[] = {"a"};
    struct err err = ERR_INIT;
    size_t n;
    ck_assert_int_eq(weights_convert(written("w", keys, 1), "/nowhere/w", true, &n, &err), ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.message, "/nowhere/w"));
}
END_TEST

int main(void)
{
    checks_scratch(); /* one for all of the forked tests */
    Suite *suite = suite_create("weights_file");
    TCase *tcase = checks_case(suite, "weights_file", 0);
    tcase_add_test(tcase, the_largest_distance_counts);
    tcase_add_test(tcase, zeros_of_either_sign_are_equal);
    tcase_add_test(tcase, a_nan_differs_from_every_number);
    tcase_add_test(tcase, halves_are_read);
    tcase_add_test(tcase, integers_of_every_width);
    tcase_add_test(tcase, exactly_one_prefix_is_added_or_taken);
    tcase_add_loop_test(tcase, mixed_keys_are_refused, 0, sizeof refusals / sizeof *refusals);
    tcase_add_test(tcase, what_cannot_be_written_leaves_nothing);
    int status = checks_run(suite);
    checks_scratch_remove();
    return status;
}
