/* check_idx.c: IDX files of every type, and every way in which one can be broken. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "engine/data/idx.h"
#include "tests/engine/idx_files.h"
#include "tests/lib/checks.h"

static const uint32_t dim23[] = {2, 3};
static const uint8_t elements6[] = {0, 1, 2, 250, 4, 5};

/* The message of the error that reading `path` must end in. */
static const char *fault(const char *path, int code)
{
    static struct err err;
    struct array idx;
    ck_assert_int_eq(idx_read(path, &idx, &err), code);
    ck_assert_int_eq(err.code, code);
    if (code == ERR_DATA_INVALID)
        ck_assert_msg(strstr(err.message, path) == err.message, "no path in «%s»", err.message);
    return err.message;
}

static void ck_says(const char *message, const char *part)
{
    ck_assert_msg(strstr(message, part) != NULL, "«%s» does not say «%s»", message, part);
}

START_TEST(plain_and_gz_are_read_alike)
{
    uint8_t bytes[64];
    size_t n = idx_make(bytes, 0x08, 2, dim23, elements6, 6);
    for (int gz = 0; gz <= 1; gz++) {
        struct err err;
        struct array idx;
        const char *path = gz ? idx_file_gz("a.gz", bytes, n) : idx_file("a", bytes, n);
        ck_assert_int_eq(idx_read(path, &idx, &err), 0);
        ck_assert_int_eq(idx.shape.rank, 2);
        ck_assert_int_eq(idx.shape.dim[0], 2);
        ck_assert_int_eq(idx.shape.dim[1], 3);
        ck_assert_uint_eq(idx.bytes, 6);
        ck_assert_mem_eq(idx.data, elements6, 6);
        array_done(&idx);
    }
}
END_TEST

/* -2 (254 as uint8) and 3, big-endian, in every type. */
static const struct {
    int type;
    size_t size;
    uint8_t bytes[16];
    float floats[2];
    bool integer;
} typed[] = {
    {0x08, 1, {0xfe, 3}, {254, 3}, true},
    {0x09, 1, {0xfe, 3}, {-2, 3}, true},
    {0x0b, 2, {0xff, 0xfe, 0, 3}, {-2, 3}, true},
    {0x0c, 4, {0xff, 0xff, 0xff, 0xfe, 0, 0, 0, 3}, {-2, 3}, true},
    {0x0d, 4, {0xc0, 0, 0, 0, 0x40, 0x40, 0, 0}, {-2, 3}, false},
    {0x0e, 8, {0xc0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x08}, {-2, 3}, false},
};

START_TEST(elements_of_every_type)
{
    uint8_t bytes[64];
    float floats[2];
    struct err err;
    struct array idx;
    size_t n = idx_make(bytes, typed[_i].type, 1, dim23, typed[_i].bytes, 2 * typed[_i].size);
    ck_assert_int_eq(idx_read(idx_file("typed", bytes, n), &idx, &err), 0);
    idx.type->floats(idx.data, 2, floats);
    ck_assert_mem_eq(floats, typed[_i].floats, sizeof floats);
    ck_assert_int_eq(idx.type->integer, typed[_i].integer);
    if (typed[_i].integer) {
        int64_t wholes[2];
        idx.type->wholes(idx.data, 2, wholes);
        ck_assert_int_eq(wholes[0], (int64_t)typed[_i].floats[0]);
        ck_assert_int_eq(wholes[1], (int64_t)typed[_i].floats[1]);
    }
    array_done(&idx);
}
END_TEST

static const struct {
    size_t size;
    uint8_t bytes[40];
    const char *says;
} broken[] = {
    {0, {0}, "ends in the magic number: 0 of 4 bytes"},
    {3, {0, 0, 8}, "ends in the magic number: 3 of 4 bytes"},
    {4, "PK\3\4", "it begins with 50 4b 03 04, want 00 00"},
    {5, {0, 0, 0x0a, 1, 0}, "element type 0x0a"},
    {4, {0, 0, 8, 0}, "0 dimensions, want 1 to 6"},
    {4, {0, 0, 8, 7}, "7 dimensions, want 1 to 6"},
    {6, {0, 0, 8, 1, 0, 0}, "ends in the dimensions: 2 of 4 bytes"},
    {8, {0, 0, 8, 1, 0, 0, 0, 0}, "its shape [0] holds nothing"},
    {16,
     {0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255},
     "beyond any memory"},
    {12, {0, 0, 14, 2, 255, 255, 255, 255, 255, 255, 255, 255}, "beyond any memory"},
    {12, {0, 0, 8, 2, 127, 0, 0, 0, 0, 255, 255, 255}, "a plain file of 12 bytes has at most 0"},
    {10, {0, 0, 8, 1, 0, 0, 0, 3, 1, 2}, "needs 3 bytes, a plain file of 10 bytes has at most 2"},
    {12, {0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 3, 4}, "bytes are left over after its 3 of shape [3]"},
    {2, {0x1f, 0x8b}, "the gz data is cut off"},
};

START_TEST(every_fault_has_its_sentence)
{
    const char *path = idx_file("broken", broken[_i].bytes, broken[_i].size);
    ck_says(fault(path, ERR_DATA_INVALID), broken[_i].says);
}
END_TEST

START_TEST(gz_left_over_bytes)
{
    uint8_t bytes[64];
    size_t n = idx_make(bytes, 0x08, 2, dim23, elements6, 6);
    bytes[n] = 9;
    ck_says(fault(idx_file_gz("long.gz", bytes, n + 1), ERR_DATA_INVALID), "bytes are left over");
}
END_TEST

/* A header of petabytes in a gz file of a few bytes is refused before memory is asked for. */
START_TEST(gz_cannot_ask_for_more_than_it_holds)
{
    const uint32_t dim[] = {1u << 30, 1u << 20};
    uint8_t bytes[64];
    size_t n = idx_make(bytes, 0x08, 2, dim, NULL, 0);
    ck_says(fault(idx_file_gz("bomb.gz", bytes, n), ERR_DATA_INVALID),
            "needs 1125899906842624 bytes, a gz file of");
}
END_TEST

/* Cut at every length: never read as whole, and never a crash. */
START_TEST(gz_cut_anywhere)
{
    uint8_t bytes[4096], packed[8192];
    const uint32_t dim[] = {4000};
    for (size_t i = 0; i < 4000; i++)
        bytes[i + 8] = (uint8_t)(i * i >> 3);
    idx_make(bytes, 0x08, 1, dim, NULL, 0);
    FILE *file = fopen(idx_file_gz("whole.gz", bytes, 4008), "rb");
    ck_assert_ptr_nonnull(file);
    size_t n = fread(packed, 1, sizeof packed, file);
    fclose(file);
    ck_assert_uint_gt(n, 200);
    for (size_t cut = 2; cut < n; cut += cut + 20 < n && cut > 20 ? 37 : 1)
        ck_says(fault(idx_file("cut.gz", packed, cut), ERR_DATA_INVALID), "the gz data is cut off");
    packed[n / 2] ^= 0x55;
    ck_says(fault(idx_file("bad.gz", packed, n), ERR_DATA_INVALID),
            "bad.gz: the gz data is broken: in"); /* without zlib's "<fd:3>: " */
}
END_TEST

START_TEST(only_files_are_opened)
{
    char path[600];
    snprintf(path, sizeof path, "%s/none", checks_scratch());
    ck_says(fault(path, ERR_IO), "No such file or directory");
    ck_says(fault(checks_scratch(), ERR_IO), "is a directory, not a file");
    ck_says(fault("/dev/zero", ERR_IO), "is a device, not a file");
    snprintf(path, sizeof path, "%s/fifo", checks_scratch());
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_says(fault(path, ERR_IO), "is a FIFO, not a file");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("idx");
    TCase *tcase = checks_case(suite, "idx", 20);
    tcase_add_checked_fixture(tcase, NULL, checks_scratch_remove);
    tcase_add_test(tcase, plain_and_gz_are_read_alike);
    tcase_add_loop_test(tcase, elements_of_every_type, 0, sizeof typed / sizeof typed[0]);
    tcase_add_loop_test(tcase, every_fault_has_its_sentence, 0, sizeof broken / sizeof broken[0]);
    tcase_add_test(tcase, gz_left_over_bytes);
    tcase_add_test(tcase, gz_cannot_ask_for_more_than_it_holds);
    tcase_add_test(tcase, gz_cut_anywhere);
    tcase_add_test(tcase, only_files_are_opened);
    return checks_run(suite);
}
