/* check_safetensors.c: what is written is read back; every broken rule of the format is refused. */
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/safetensors.h"
#include "tests/engine/idx_files.h"
#include "tests/lib/checks.h"
#include "tests/lib/oom.h"

/* A file of this header and `data_bytes` bytes of tensors. */
static const char *file_of(const char *header, size_t data_bytes)
{
    char bytes[4096] = {0};
    size_t n = strlen(header);
    uint64_t prefix = htole64(n);
    memcpy(bytes, &prefix, 8);
    memcpy(bytes + 8, header, n);
    return idx_file("t.safetensors", bytes, 8 + n + data_bytes);
}

static void refused(const char *path, int code, const char *says)
{
    struct err err = ERR_INIT;
    struct safetensors *file = NULL;
    ck_assert_int_eq(safetensors_open(path, &file, &err), code);
    ck_assert_ptr_null(file);
    ck_assert_msg(strstr(err.message, path) != NULL, "no path in «%s»", err.message);
    ck_assert_msg(strstr(err.message, says) != NULL, "«%s» does not say «%s»", err.message, says);
}

static const float weight[6] = {1, -2, 3.5f, 0, 5, 6};
static const int64_t tracked = 7;
static const double loss = 0.25;

static const struct safetensor tensors[] = {
    {"fc.weight", {2, {2, 3}}, DTYPE_F32, weight, sizeof weight},
    {"bn.num_batches_tracked", {0, {0}}, DTYPE_I64, &tracked, sizeof tracked},
    {"empty", {2, {0, 3}}, DTYPE_F32, weight, 0},
    {"loss", {1, {1}}, DTYPE_F64, &loss, sizeof loss},
};
enum { N_TENSORS = sizeof tensors / sizeof tensors[0] };

static const char *written(void)
{
    static char path[600];
    struct err err;
    snprintf(path, sizeof path, "%s/w.safetensors", checks_scratch());
    json_t *metadata = json_pack("{s:s, s:s}", "format", "pt", "step", "12");
    ck_assert_int_eq(safetensors_write(path, tensors, N_TENSORS, metadata, &err), 0);
    json_decref(metadata);
    return path;
}

START_TEST(what_is_written_is_read_back)
{
    struct err err;
    struct safetensors *file;
    ck_assert_int_eq(safetensors_open(written(), &file, &err), 0);
    ck_assert_uint_eq(safetensors_count(file), N_TENSORS);
    for (int i = 0; i < N_TENSORS; i++) {
        const struct safetensor *got = safetensors_find(file, tensors[i].name);
        ck_assert_ptr_nonnull(got);
        ck_assert(shape_equal(&got->shape, &tensors[i].shape));
        ck_assert_int_eq(got->dtype, tensors[i].dtype);
        ck_assert_uint_eq(got->bytes, tensors[i].bytes);
        ck_assert_mem_eq(got->data, tensors[i].data, got->bytes);
        ck_assert_uint_eq((uintptr_t)got->data % dtype_size(got->dtype), 0);
    }
    ck_assert_ptr_null(safetensors_find(file, "fc.bias"));
    ck_assert_str_eq(safetensors_metadata(file, "step"), "12");
    ck_assert_ptr_null(safetensors_metadata(file, "none"));
    safetensors_close(file);
}
END_TEST

/* The file as the safetensors package writes it: widest types first, header padded to 8 bytes. */
START_TEST(the_files_bytes)
{
    char bytes[1024];
    FILE *stream = fopen(written(), "rb");
    size_t n = fread(bytes, 1, sizeof bytes, stream);
    fclose(stream);
    uint64_t header;
    memcpy(&header, bytes, 8);
    header = le64toh(header);
    ck_assert_uint_eq(header % 8, 0);
    ck_assert_uint_eq(n, 8 + header + 8 + 8 + 24);
    static const char want[] =
        "{\"__metadata__\":{\"format\":\"pt\",\"step\":\"12\"},"
        "\"bn.num_batches_tracked\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
        "\"loss\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[8,16]},"
        "\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[16,40]},"
        "\"empty\":{\"dtype\":\"F32\",\"shape\":[0,3],\"data_offsets\":[40,40]}}";
    ck_assert_mem_eq(bytes + 8, want, sizeof want - 1);
    for (size_t i = sizeof want - 1; i < header; i++)
        ck_assert_int_eq(bytes[8 + i], ' ');
}
END_TEST

#define A(rest) "{\"a\":{\"dtype\":\"F32\",\"shape\":" rest "}}"

static const struct {
    const char *header;
    size_t data_bytes;
    const char *says;
} broken[] = {
    {"[]", 0, "does not begin with '{'"},
    {" {}", 0, "does not begin with '{'"},
    {"{", 0, "line 1"},
    {"{\"a\":1,\"a\":1}", 0, "duplicate"},
    {"{\"\xff\":1}", 0, "unable to decode byte 0xff"},
    {"{} x", 0, "end of file expected"},
    {"{}", 1, "its tensors end at byte 0 of 1"},
    {"{\"a\":1}", 0, "tensor \"a\" is not described by an object"},
    {"{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "dtype F8_E4M3"},
    {"{\"a\":{\"dtype\":32,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "dtype (none)"},
    {A("1,\"data_offsets\":[0,4]"), 4, "its shape is not a list"},
    {A("[1.0],\"data_offsets\":[0,4]"), 4, "dimension 0 is the number 1.0, want an integer"},
    {A("[-1],\"data_offsets\":[0,4]"), 4,
     "dimension 0 is the number -1, want an integer of 0 or more"},
    {A("[1,1,1,1,1,1,1],\"data_offsets\":[0,4]"), 4, "7 dimensions"},
    {A("[4611686018427387904,4],\"data_offsets\":[0,4]"), 4, "beyond any memory"},
    {A("[4611686018427387904],\"data_offsets\":[0,0]"), 0, "beyond any memory"},
    {A("[1],\"data_offsets\":[0]"), 4, "not two integers"},
    {A("[1],\"data_offsets\":[0,4.0]"), 4, "not two integers"},
    {A("[1],\"data_offsets\":[-4,0]"), 4, "do not lie in the 4 bytes"},
    {A("[1],\"data_offsets\":[4,0]"), 4, "do not lie in the 4 bytes"},
    {A("[2],\"data_offsets\":[0,8]"), 4, "do not lie in the 4 bytes"},
    {A("[1],\"data_offsets\":[0,8]"), 8, "data_offsets [0, 8] for 4 bytes"},
    {A("[1],\"data_offsets\":[4,8]"), 8, "begins at byte 4, want 0: a hole"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}",
     6, "begins at byte 2, want 4: an overlap"},
    {"{\"__metadata__\":[]}", 0, "__metadata__ is not an object"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "__metadata__ \"a\" is not a string"},
};

START_TEST(every_broken_rule_has_its_sentence)
{
    refused(file_of(broken[_i].header, broken[_i].data_bytes), ERR_WEIGHTS_INVALID,
            broken[_i].says);
}
END_TEST

START_TEST(a_header_that_lies_about_its_size)
{
    static const uint8_t huge[] = {255, 255, 255, 255, 255, 255, 255, 255, '{', '}'};
    static const uint8_t long_one[] = {3, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
    refused(idx_file("short", huge, 7), ERR_WEIGHTS_INVALID, "7 bytes are too few");
    refused(idx_file("empty", huge, 0), ERR_WEIGHTS_INVALID, "0 bytes are too few");
    refused(idx_file("huge", huge, sizeof huge), ERR_WEIGHTS_INVALID,
            "would be 18446744073709551615 bytes");
    refused(idx_file("long", long_one, sizeof long_one), ERR_WEIGHTS_INVALID, "is cut off");
    refused("/nonexistent/w.safetensors", ERR_IO, "No such file or directory");
}
END_TEST

/* Cut anywhere, a file is never taken for whole. */
START_TEST(a_torn_file_is_refused)
{
    char bytes[1024];
    FILE *stream = fopen(written(), "rb");
    size_t n = fread(bytes, 1, sizeof bytes, stream);
    fclose(stream);
    for (size_t cut = 0; cut < n; cut++) {
        struct err err;
        struct safetensors *file;
        ck_assert_int_eq(safetensors_open(idx_file("torn", bytes, cut), &file, &err),
                         ERR_WEIGHTS_INVALID);
    }
}
END_TEST

/* jansson's lexer drops what it has no memory for (lex_save); reading is tried with our own
 * allocations only. */
void *__real_malloc(size_t size);

START_TEST(every_allocation_is_checked)
{
    const char *path = written();
    long n = 1;
    for (;; n++) {
        struct err err;
        struct safetensors *file = NULL;
        oom_arm(n);
        json_set_alloc_funcs(__real_malloc, free);
        int rc = safetensors_open(path, &file, &err);
        bool failed = oom_disarm();
        safetensors_close(file);
        if (!failed)
            break;
        ck_assert_int_eq(rc, ERR_NOMEM);
    }
    ck_assert_int_gt(n, 2);
    for (n = 1;; n++) {
        struct err err;
        oom_arm(n);
        int rc = safetensors_write(path, tensors, N_TENSORS, NULL, &err);
        if (!oom_disarm())
            break;
        ck_assert_msg(rc == ERR_NOMEM, "allocation %ld: %s", n, err.message);
    }
    ck_assert_int_gt(n, 10);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("safetensors");
    TCase *tcase = checks_case(suite, "safetensors", 20);
    tcase_add_checked_fixture(tcase, NULL, checks_scratch_remove);
    tcase_add_test(tcase, what_is_written_is_read_back);
    tcase_add_test(tcase, the_files_bytes);
    tcase_add_loop_test(tcase, every_broken_rule_has_its_sentence, 0,
                        sizeof broken / sizeof broken[0]);
    tcase_add_test(tcase, a_header_that_lies_about_its_size);
    tcase_add_test(tcase, a_torn_file_is_refused);
    tcase_add_test(tcase, every_allocation_is_checked);
    return checks_run(suite);
}
