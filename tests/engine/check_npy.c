/* check_npy.c: .npy files as NumPy writes them, and every way in which one is refused. */
#include <stdio.h>
#include <string.h>

#include "engine/data/npy.h"
#include "tests/engine/idx_files.h"
#include "tests/lib/checks.h"

/* A file of this version and header, padded to 64 bytes, with `bytes` of elements. */
static const char *npy_file(int version, const char *header, const void *elements, size_t bytes)
{
    uint8_t file[1024] = "\x93NUMPY";
    size_t prefix = version == 1 ? 10 : 12, size = strlen(header);
    size_t padded = (prefix + size + 1 + 63) / 64 * 64 - prefix;
    file[6] = (uint8_t)version;
    for (size_t i = 0; i < prefix - 8; i++)
        file[8 + i] = (uint8_t)(padded >> 8 * i);
    memset(file + prefix, ' ', padded);
    memcpy(file + prefix, header, size);
    file[prefix + padded - 1] = '\n';
    memcpy(file + prefix + padded, elements, bytes);
    return idx_file("a.npy", file, prefix + padded + bytes);
}

/* -2 (254 without a sign) and 3 in every type. */
static const struct {
    const char *descr, *name;
    size_t size;
    uint8_t bytes[16];
    float floats[2];
} typed[] = {
    {"|u1", "uint8", 1, {0xfe, 3}, {254, 3}},
    {"|b1", "uint8", 1, {1, 0}, {1, 0}},
    {"|i1", "int8", 1, {0xfe, 3}, {-2, 3}},
    {"<u2", "uint16", 2, {0xfe, 0, 3, 0}, {254, 3}},
    {"<i2", "int16", 2, {0xfe, 0xff, 3, 0}, {-2, 3}},
    {"<u4", "uint32", 4, {0xfe, 0, 0, 0, 3}, {254, 3}},
    {"<i4", "int32", 4, {0xfe, 0xff, 0xff, 0xff, 3}, {-2, 3}},
    {"<i8", "int64", 8, {0xfe, 255, 255, 255, 255, 255, 255, 255, 3}, {-2, 3}},
    {"<f4", "float32", 4, {0, 0, 0, 0xc0, 0, 0, 0x40, 0x40}, {-2, 3}},
    {"<f8", "float64", 8, {0, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 8, 0x40}, {-2, 3}},
};

START_TEST(elements_of_every_type)
{
    char header[128];
    float floats[2];
    struct err err = ERR_INIT;
    struct array array;
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }",
             typed[_i].descr);
    for (int version = 1; version <= 3; version++) {
        const char *path = npy_file(version, header, typed[_i].bytes, 2 * typed[_i].size);
        ck_assert_msg(npy_open(path, &array, &err) == 0, "%s", err.message);
        ck_assert_str_eq(array.type->name, typed[_i].name);
        ck_assert(shape_equal(&array.shape, &SHAPE(2)));
        array.type->floats(array.data, 2, floats);
        ck_assert_mem_eq(floats, typed[_i].floats, sizeof floats);
        array_done(&array);
    }
}
END_TEST

START_TEST(shapes_and_any_order_of_members)
{
    static const uint8_t elements[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    struct err err = ERR_INIT;
    struct array array;
    const char *path = npy_file(1, "{'shape':(2, 3,2) ,'descr':'|u1','fortran_order':False}",
                                elements, sizeof elements);
    ck_assert_msg(npy_open(path, &array, &err) == 0, "%s", err.message);
    ck_assert(shape_equal(&array.shape, &SHAPE(2, 3, 2)));
    ck_assert_int_eq(array_count(&array), 6);
    ck_assert_mem_eq(array_sample(&array, 1), elements + 6, 6);
    array_done(&array);
}
END_TEST

#define HEADER(descr, fortran, shape)                                                              \
    "{'descr': " descr ", 'fortran_order': " fortran ", 'shape': " shape ", }"

static const struct {
    const char *header;
    size_t bytes; /* of elements */
    const char *says;
} broken[] = {
    {HEADER("'>f4'", "False", "(2,)"), 8, "'>f4' are big-endian; save it as '<f4'"},
    {HEADER("'<f4'", "True", "(2, 1)"), 8, "Fortran order; save numpy.ascontiguousarray(a)"},
    {HEADER("'|O'", "False", "(2,)"), 8, "Python objects ('|O')"},
    {HEADER("[('a', '<f4')]", "False", "(2,)"), 8, "records"},
    {HEADER("'<f4'", "False", "(2,)"), 7, "shape [2] of float32 needs 8 bytes, 7 are there"},
    {HEADER("'<f4'", "False", "(2,)"), 9, "needs 8 bytes, 9 are there"},
    {HEADER("'<U3'", "False", "(2,)"), 8, "elements of '<U3', want integers"},
    {HEADER("'<c8'", "False", "(2,)"), 8, "elements of '<c8'"},
    {HEADER("'<u8'", "False", "(2,)"), 8, "not uint64"},
    {HEADER("'f4'", "False", "(2,)"), 8, "'f4' have no byte order"},
    {HEADER("''", "False", "(2,)"), 8, "no byte order"},
    {HEADER("'<f4", "False", "(2,)"), 8, "elements of '<f4, '"},
    {HEADER("'<f4'", "False", "()"), 4, "its shape [] holds no samples"},
    {HEADER("'<f4'", "False", "(2, 0)"), 0, "its shape [2, 0] holds no samples"},
    {HEADER("'<f4'", "False", "(-2,)"), 8, "not a tuple of integers"},
    {HEADER("'<f4'", "False", "(2.0,)"), 8, "has \".0,), }"},
    {HEADER("'<f4'", "False", "(1,1,1,1,1,1,1)"), 4, "more than 6 dimensions"},
    {HEADER("'<f4'", "False", "(4294967296,4294967296)"), 8, "is beyond any memory"},
    {HEADER("'<f4'", "False", "(99999999999999999999,)"), 8, "is beyond any memory"},
    {HEADER("'<f4'", "False", "(4611686018427387904,)"), 8, "is beyond any memory"},
    {HEADER("'<f4'", "0", "(2,)"), 8, "neither True nor False"},
    {"{'descr': '<f4', 'fortran_order': False, }", 8, "does not say shape"},
    {"{'fortran_order': False, 'shape': (2,)}", 8, "does not say descr"},
    {"{'descr': '<f4', 'shape': (2,)}", 8, "does not say fortran_order"},
    {"{'descr': '<f4', 'descr': '<f4'}", 8, "'descr' twice"},
    {"{'descr': '<f4', 'order': 1}", 8, "an unknown 'order'"},
    {"{'descr': '<f4'", 8, "where \"}\" should be"},
    {"('<f4', False, (2,))", 8, "where \"{\" should be"},
    {HEADER("'<f4'", "False", "(2,)") " x", 8, "goes on behind its end"},
};

static void ck_refused(const char *path, const char *says)
{
    struct err err = ERR_INIT;
    struct array array;
    ck_assert_int_eq(npy_open(path, &array, &err), ERR_DATA_INVALID);
    ck_assert_msg(strstr(err.message, path) == err.message, "no path in «%s»", err.message);
    ck_assert_msg(strstr(err.message, says) != NULL, "«%s» does not say «%s»", err.message, says);
}

START_TEST(a_broken_header_is_refused)
{
    static const uint8_t elements[16];
    ck_refused(npy_file(1, broken[_i].header, elements, broken[_i].bytes), broken[_i].says);
}
END_TEST

static const struct {
    size_t size;
    const char *bytes, *says;
} prefixes[] = {
    {0, "", "does not begin with \\x93NUMPY"},
    {9, "\x93NUMPY\1\0\0", "does not begin"},
    {12, "PK\3\4\0\0\0\0\0\0\0\0", "does not begin"},
    {12, "\x93NUMPY\4\0\0\0\0\0", "version 4.0, want 1, 2 or 3"},
    {11, "\x93NUMPY\2\0\0\0\0", "too few"},
    {12, "\x93NUMPY\1\0\x76\0{'", "its header of 118 bytes is cut off: the file has 12"},
    {12, "\x93NUMPY\2\0\xff\xff\xff\xff", "its header would be 4294967295 bytes"},
    {10, "\x93NUMPY\1\0\0\0", "where \"{\" should be"},
};

START_TEST(a_broken_prefix_is_refused)
{
    ck_refused(idx_file("a.npy", prefixes[_i].bytes, prefixes[_i].size), prefixes[_i].says);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("npy");
    TCase *tcase = checks_case(suite, "npy", 20);
    tcase_add_checked_fixture(tcase, NULL, checks_scratch_remove);
    tcase_add_loop_test(tcase, elements_of_every_type, 0, sizeof typed / sizeof typed[0]);
    tcase_add_test(tcase, shapes_and_any_order_of_members);
    tcase_add_loop_test(tcase, a_broken_header_is_refused, 0, sizeof broken / sizeof broken[0]);
    tcase_add_loop_test(tcase, a_broken_prefix_is_refused, 0, sizeof prefixes / sizeof prefixes[0]);
    return checks_run(suite);
}
