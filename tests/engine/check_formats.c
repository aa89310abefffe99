/* check_formats.c: what a model gets of npy, safetensors, CIFAR, token and text files, of inputs
 * with lengths, and what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/safetensors.h"
#include "tests/engine/data_test.h"
#include "tests/engine/idx_files.h"
#include "tests/lib/checks.h"
#include "tests/lib/oom.h"

/* An array of n rows of `width` bytes; width 0: a flat one. */
static const char *npy(const char *name, const char *descr, int n, int width, const void *bytes,
                       size_t size)
{
    char file[1024];
    char shape[32] = "";
    if (width > 0)
        snprintf(shape, sizeof shape, " %d", width);
    int header =
        snprintf(file + 10, sizeof file - 10,
                 "{'descr': '%s', 'fortran_order': False, 'shape': (%d,%s)}", descr, n, shape);
    memcpy(file, "\x93NUMPY\1\0", 8);
    file[8] = (char)header;
    file[9] = 0;
    memcpy(file + 10 + header, bytes, size);
    return idx_file(name, file, (size_t)(10 + header) + size);
}

static const uint8_t pixels[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
static const uint8_t labels[] = {2, 0, 1};

/* Three samples of four pixels. */
static struct job_source npy_source(void)
{
    return (struct job_source){.format = DATA_NPY,
                               .inputs =
                                   data_test_text(npy("x.npy", "|u1", 3, 4, pixels, sizeof pixels)),
                               .targets = (char *)npy("y.npy", "|u1", 3, 0, labels, sizeof labels)};
}

static void ck_three(struct job_source source)
{
    static const int64_t index[] = {2, 0};
    static const float wanted[] = {8, 9, 10, 11, 0, 1, 2, 3};
    float input[8];
    int64_t label[2];
    struct dataset *dataset =
        data_test_open(source, data_test_plain(), data_test_labels(SHAPE(4), 3));
    ck_assert_int_eq(dataset_samples(dataset), 3);
    data_test_gather(dataset, index, 2, input, label);
    ck_assert_mem_eq(input, wanted, sizeof wanted);
    ck_assert_int_eq(label[0], 1);
    ck_assert_int_eq(label[1], 2);
    dataset_close(dataset);
}

START_TEST(npy_arrays)
{
    struct job_source source = npy_source();
    ck_three(source);
    data_test_refused(source, data_test_plain(), data_test_labels(SHAPE(5), 3), ERR_DATA_INVALID,
                      "/data/train/inputs", "samples of shape [4], the model's input is [5]");
    source.targets = (char *)npy("f.npy", "<f4", 3, 0, pixels, 12);
    data_test_refused(source, data_test_plain(), data_test_labels(SHAPE(4), 3), ERR_DATA_INVALID,
                      "/data/train/targets", "float32 of shape [3], the loss wants one integer");
    source.targets = (char *)npy("t.npy", "|u1", 2, 0, labels, 2);
    data_test_refused(source, data_test_plain(), data_test_labels(SHAPE(4), 3), ERR_DATA_INVALID,
                      "/data/train/targets", "has 2 targets");
}
END_TEST

static struct job_source safetensors_source(void)
{
    static char path[600];
    static const int32_t wide[3] = {2, 0, 1};
    static const struct safetensor tensors[] = {
        {"images", {2, {3, 4}}, DTYPE_U8, pixels, sizeof pixels},
        {"labels", {1, {3}}, DTYPE_I32, wide, sizeof wide},
        {"scalar", {0, {0}}, DTYPE_I32, wide, 4},
    };
    struct err err = ERR_INIT;
    snprintf(path, sizeof path, "%s/d.safetensors", checks_scratch());
    ck_assert_int_eq(safetensors_write(path, tensors, 3, NULL, &err), 0);
    return (struct job_source){.format = DATA_SAFETENSORS,
                               .path = path,
                               .inputs = data_test_text("images"),
                               .targets = (char *)"labels"};
}

START_TEST(safetensors_tensors)
{
    struct job_source source = safetensors_source();
    struct dataset_want want = data_test_labels(SHAPE(4), 3);
    ck_three(source);
    source.targets = (char *)"nothing";
    data_test_refused(source, data_test_plain(), want, ERR_DATA_INVALID, "/data/train/targets",
                      "d.safetensors: nothing: there is no tensor of that name");
    source.targets = (char *)"scalar";
    data_test_refused(source, data_test_plain(), want, ERR_DATA_INVALID, "/data/train/targets",
                      "scalar: its shape [] holds no samples");
    source.path = (char *)idx_file("broken", "\xff\0\0\0\0\0\0\0{", 9);
    data_test_refused(source, data_test_plain(), want, ERR_DATA_INVALID, "/data/train/path",
                      "its header of 255 bytes is cut off");
}
END_TEST

enum { RECORD = 3072 };

/* n records of CIFAR-10 whose pixels are their label times 10 plus the channel. */
static const char *cifar_file(const char *name, int label_bytes, const uint8_t *label, int n)
{
    static uint8_t bytes[8 * (RECORD + 2)];
    uint8_t *at = bytes;
    for (int i = 0; i < n; i++, at += label_bytes + RECORD) {
        at[0] = 99; /* CIFAR-100's coarse label */
        at[label_bytes - 1] = label[i];
        for (int p = 0; p < RECORD; p++)
            at[label_bytes + p] = (uint8_t)(10 * label[i] + p / 1024);
    }
    return idx_file(name, bytes, (size_t)(at - bytes));
}

static void ck_cifar(struct job_source source, bool training, const uint8_t *label, int n)
{
    static float input[3 * 32 * 32];
    struct dataset_want want = data_test_labels(SHAPE(3, 32, 32), 10);
    want.training = training;
    struct dataset *dataset = data_test_open(source, data_test_plain(), want);
    ck_assert_int_eq(dataset_samples(dataset), n);
    for (int64_t i = 0; i < n; i++) {
        int64_t got;
        data_test_gather(dataset, &i, 1, input, &got);
        ck_assert_int_eq(got, label[i]);
        ck_assert_float_eq(input[0], (float)(10 * label[i]));
        ck_assert_float_eq(input[2 * 1024 + 5], (float)(10 * label[i] + 2));
    }
    dataset_close(dataset);
}

START_TEST(cifar_files_and_folders)
{
    static const uint8_t wanted[] = {1, 2, 3, 4, 5, 6};
    static const char *const batches[] = {"data_batch_1.bin", "data_batch_2.bin",
                                          "data_batch_3.bin", "data_batch_4.bin",
                                          "data_batch_5.bin"};
    struct job_source source = {.format = DATA_CIFAR10};
    source.path = (char *)cifar_file("one.bin", 1, wanted, 6);
    ck_cifar(source, true, wanted, 6);
    for (int i = 0; i < 5; i++)
        cifar_file(batches[i], 1, wanted + i, i == 4 ? 2 : 1);
    cifar_file("test_batch.bin", 1, wanted + 3, 2);
    source.path = (char *)checks_scratch();
    ck_cifar(source, true, wanted, 6);
    ck_cifar(source, false, wanted + 3, 2);

    source.format = DATA_CIFAR100;
    data_test_refused(source, data_test_plain(), data_test_labels(SHAPE(3, 32, 32), 10), ERR_IO,
                      "/data/train/path", "test.bin: No such file");
    source.path = (char *)cifar_file("train.bin", 2, wanted, 6);
    ck_cifar(source, true, wanted, 6);
}
END_TEST

START_TEST(cifar_refuses)
{
    static const uint8_t ten[] = {9, 10};
    struct dataset_want want = data_test_labels(SHAPE(3, 32, 32), 10);
    struct job_source source = {.format = DATA_CIFAR10,
                                .path = (char *)cifar_file("b.bin", 1, ten, 2)};
    data_test_refused(source, data_test_plain(), want, ERR_DATA_INVALID, "/data/train/path",
                      "b.bin: sample 1 has label 10, want 0 to 9");
    data_test_refused(source, data_test_plain(), data_test_labels(SHAPE(1, 32, 32), 10),
                      ERR_DATA_INVALID, "/data/train/format", "CIFAR images are [3, 32, 32]");
    source.path = (char *)idx_file("short", pixels, sizeof pixels);
    data_test_refused(source, data_test_plain(), want, ERR_DATA_INVALID, "/data/train/path",
                      "12 bytes are no records of 3073");
}
END_TEST

static void ck_ids(struct job_source source, const int64_t *ids)
{
    static const int64_t index[] = {1, 0};
    int64_t input[6], target[6];
    struct dataset *dataset = data_test_open(source, data_test_plain(), data_test_ids(3, 300));
    ck_assert_int_eq(dataset_samples(dataset), 2);
    data_test_gather(dataset, index, 2, input, target);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(input[i], ids[3 + i]);
        ck_assert_int_eq(input[3 + i], ids[i]);
        ck_assert_int_eq(target[i], ids[4 + i]);
        ck_assert_int_eq(target[3 + i], ids[1 + i]);
    }
    dataset_close(dataset);

    /* One answer a sample: the id behind the last. */
    struct dataset_want want = data_test_ids(3, 300);
    want.target = (struct shape){.rank = 0};
    dataset = data_test_open(source, data_test_plain(), want);
    data_test_gather(dataset, index, 2, input, target);
    ck_assert_int_eq(target[0], ids[6]);
    ck_assert_int_eq(target[1], ids[3]);
    dataset_close(dataset);
}

START_TEST(tokens_and_texts)
{
    static const uint16_t narrow[] = {7, 299, 1, 2, 3, 4, 5, 6};
    static const uint32_t wide[] = {7, 299, 1, 2, 3, 4, 5, 6};
    static const int64_t ids[] = {7, 299, 1, 2, 3, 4, 5, 6};
    static const int64_t bytes[] = {'h', 'e', 0xc3, 0xa9, 'l', 'l', 'o'};
    struct job_source source = {.format = DATA_TOKENS, .context = 3};
    source.path = (char *)idx_file("u16", narrow, sizeof narrow);
    ck_ids(source, ids);
    source.dtype = TOKEN_UINT32;
    source.path = (char *)idx_file("u32", wide, sizeof wide);
    ck_ids(source, ids);
    source.format = DATA_TEXT;
    source.path = (char *)idx_file("txt", "he\xc3\xa9llo", 7);
    ck_ids(source, bytes);
}
END_TEST

START_TEST(tokens_refuse)
{
    static const uint16_t narrow[] = {7, 299, 1, 2};
    struct job_source source = {.format = DATA_TOKENS, .context = 3};
    source.path = (char *)idx_file("u16", narrow, sizeof narrow);
    data_test_refused(source, data_test_plain(), data_test_ids(2, 300), ERR_DATA_INVALID,
                      "/data/train/context", "samples of shape [3], the model's input is [2]");
    data_test_refused(source, data_test_plain(), data_test_labels(SHAPE(3), 300), ERR_DATA_INVALID,
                      "/data/train/context", "ids are int64");
    source.path = (char *)idx_file("odd", narrow, 7);
    data_test_refused(source, data_test_plain(), data_test_ids(3, 300), ERR_DATA_INVALID,
                      "/data/train/path", "7 bytes are no whole number of uint16");
    source.path = (char *)idx_file("few", narrow, 6);
    data_test_refused(source, data_test_plain(), data_test_ids(3, 300), ERR_DATA_INVALID,
                      "/data/train/path", "3 ids, want 4 or more");
}
END_TEST

/* What is wrong only in the samples is found when they are gathered. */
static void ck_gather_refused(struct job_source source, struct dataset_want want, const char *says)
{
    static const int64_t index[] = {0, 1};
    int64_t input[6], target[6];
    struct err err = ERR_INIT;
    const struct dataset_rows rows = {.index = index, .n = 2};
    struct dataset *dataset = data_test_open(source, data_test_plain(), want);
    ck_assert_int_eq(dataset_gather(dataset, &rows, (void *[]){input}, target, &err),
                     ERR_DATA_INVALID);
    ck_assert_str_eq(err.path, "/data/train");
    ck_assert_msg(strstr(err.message, says) != NULL, "«%s» does not say «%s»", err.message, says);
    dataset_close(dataset);
}

START_TEST(ids_and_labels_are_checked_when_gathered)
{
    static const uint16_t ids[] = {7, 2, 1, 2, 300, 4, 5};
    struct job_source source = {.format = DATA_TOKENS, .context = 3};
    source.path = (char *)idx_file("u16", ids, sizeof ids);
    struct dataset_want want = data_test_ids(3, 400);
    struct model_input input = want.inputs[0];
    input.values = 300;
    want.inputs = &input;
    ck_gather_refused(source, want, "sample 1 has 300 in \"input\", want 0 to 299");
    ck_gather_refused(source, data_test_ids(3, 300), "sample 1 has label 300, want 0 to 299");
}
END_TEST

/* Two inputs: "ids" [4] with lengths, and "image" [1, 4]. */
static void two_inputs(struct model_input inputs[3])
{
    inputs[0] = (struct model_input){
        .name = "ids", .shape = SHAPE(4), .dtype = DTYPE_I64, .lengths = 2, .of = -1};
    inputs[1] = (struct model_input){
        .name = "image", .shape = SHAPE(1, 4), .dtype = DTYPE_F32, .lengths = -1, .of = -1};
    inputs[2] =
        (struct model_input){.name = "ids.lengths", .dtype = DTYPE_I64, .lengths = -1, .of = 0};
}

START_TEST(several_inputs_and_lengths)
{
    static const int64_t lengths[] = {4, 1, 2}, bad[] = {4, 5, 0}, index[] = {1};
    char *names[] = {(char *)"image", (char *)"ids"};
    char *x = (char *)npy("x.npy", "|u1", 3, 4, pixels, sizeof pixels);
    char *texts[] = {x, x};
    struct model_input inputs[3];
    two_inputs(inputs);
    const struct dataset_want want = {
        .inputs = inputs, .n_inputs = 3, .target_dtype = DTYPE_I64, .classes = 3};
    struct job_source source = npy_source();
    source.inputs = (struct job_texts){2, names, texts};
    source.lengths = data_test_text(npy("l.npy", "<i8", 3, 0, lengths, sizeof lengths));

    int64_t ids[4], length, label;
    float image[4];
    struct err err = ERR_INIT;
    const struct dataset_rows rows = {.index = index, .n = 1};
    struct dataset *dataset = data_test_open(source, data_test_plain(), want);
    ck_assert_int_eq(dataset_inputs(dataset), 3);
    ck_assert_int_eq(dataset_gather(dataset, &rows, (void *[]){ids, image, &length}, &label, &err),
                     0);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(ids[i], 4 + i);
        ck_assert_float_eq(image[i], (float)(4 + i));
    }
    ck_assert_int_eq(length, 1);
    dataset_close(dataset);

    source.lengths = data_test_text(npy("b.npy", "<i8", 3, 0, bad, sizeof bad));
    data_test_refused(source, data_test_plain(), want, ERR_DATA_INVALID, "/data/train/lengths",
                      "b.npy: sample 1 has length 5, want 1 to 4");
    source.lengths = data_test_text(npy("z.npy", "<i8", 3, 0, bad + 2, 8 * 1));
    data_test_refused(source, data_test_plain(), want, ERR_DATA_INVALID, "/data/train/lengths",
                      "needs 24 bytes, 8 are there");
    source.lengths = data_test_text(npy("f.npy", "<f4", 3, 0, bad, 12));
    data_test_refused(source, data_test_plain(), want, ERR_DATA_INVALID, "/data/train/lengths",
                      "elements are float32, \"ids.lengths\" takes integers");
}
END_TEST

static void each_allocation(struct job_source source, struct dataset_want want)
{
    struct job_data data = data_test_plain();
    long n = 1;
    for (;; n++) {
        struct err err = ERR_INIT;
        struct dataset *dataset = NULL;
        oom_arm(n);
        int rc = dataset_open(&source, &data, &want, "/data/train", &dataset, &err);
        bool failed = oom_disarm();
        dataset_close(dataset);
        if (!failed)
            break;
        ck_assert_msg(rc == ERR_NOMEM, "allocation %ld: %d %s", n, rc, err.message);
    }
    ck_assert_int_gt(n, 2);
}

START_TEST(every_allocation_is_checked)
{
    static const uint8_t one[] = {1};
    struct dataset_want want = data_test_labels(SHAPE(4), 3);
    each_allocation(npy_source(), want);
    each_allocation(safetensors_source(), want);
    each_allocation((struct job_source){.format = DATA_CIFAR10,
                                        .path = (char *)cifar_file("one.bin", 1, one, 1)},
                    data_test_labels(SHAPE(3, 32, 32), 10));
    each_allocation((struct job_source){.format = DATA_TEXT,
                                        .context = 3,
                                        .path = (char *)idx_file("t", "hello", 5)},
                    data_test_ids(3, 256));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("formats");
    TCase *tcase = checks_case(suite, "formats", 20);
    tcase_add_checked_fixture(tcase, NULL, checks_scratch_remove);
    tcase_add_test(tcase, npy_arrays);
    tcase_add_test(tcase, safetensors_tensors);
    tcase_add_test(tcase, cifar_files_and_folders);
    tcase_add_test(tcase, cifar_refuses);
    tcase_add_test(tcase, tokens_and_texts);
    tcase_add_test(tcase, tokens_refuse);
    tcase_add_test(tcase, ids_and_labels_are_checked_when_gathered);
    tcase_add_test(tcase, several_inputs_and_lengths);
    tcase_add_test(tcase, every_allocation_is_checked);
    return checks_run(suite);
}
