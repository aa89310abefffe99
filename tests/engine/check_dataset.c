/* check_dataset.c: what a model gets of a data set, and what it refuses. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engine/data_test.h"
#include "tests/engine/idx_files.h"
#include "tests/lib/checks.h"
#include "tests/lib/oom.h"

static struct job_source random_source(int64_t samples, int64_t classes)
{
    return (struct job_source){
        .format = DATA_RANDOM, .samples = samples, .seed = 5, .classes = classes};
}

/* Four 2x3 images with the pixels 0 … 23, and their labels 3, 0, 2, 1. */
static struct job_source tiny(void)
{
    static const uint32_t dim[] = {4, 2, 3};
    static const uint8_t labels[] = {3, 0, 2, 1};
    uint8_t pixels[24], bytes[64];
    for (uint8_t i = 0; i < 24; i++)
        pixels[i] = i;
    size_t n = idx_make(bytes, 0x08, 3, dim, pixels, sizeof pixels);
    const char *inputs = idx_file_gz("images.gz", bytes, n);
    n = idx_make(bytes, 0x08, 1, dim, labels, sizeof labels);
    return (struct job_source){.format = DATA_IDX,
                               .inputs = data_test_text(inputs),
                               .targets = (char *)idx_file("labels", bytes, n)};
}

START_TEST(random_samples_are_a_function_of_seed_and_sample)
{
    static const int64_t all[] = {0, 1, 2, 3}, some[] = {3, 1};
    float four[4][7], two[2][7];
    int64_t label4[4], label2[2];
    struct dataset *dataset =
        data_test_open(random_source(10, 3), data_test_plain(), data_test_labels(SHAPE(7), 5));
    ck_assert_int_eq(dataset_samples(dataset), 10);
    data_test_gather(dataset, all, 4, four[0], label4);
    data_test_gather(dataset, some, 2, two[0], label2);
    ck_assert_mem_eq(two[0], four[3], sizeof two[0]);
    ck_assert_mem_eq(two[1], four[1], sizeof two[1]);
    ck_assert_int_eq(label2[0], label4[3]);
    ck_assert_int_eq(label2[1], label4[1]);
    ck_assert_mem_ne(four[0], four[1], sizeof four[0]);
    dataset_close(dataset);
}
END_TEST

START_TEST(random_inputs_are_normal_and_labels_uniform)
{
    enum { SAMPLES = 2000, CLASSES = 4, WIDTH = 5 };
    double sum = 0, square = 0;
    int count[CLASSES] = {0};
    struct dataset *dataset = data_test_open(random_source(SAMPLES, CLASSES), data_test_plain(),
                                             data_test_labels(SHAPE(WIDTH), CLASSES));
    for (int64_t i = 0; i < SAMPLES; i++) {
        float input[WIDTH];
        int64_t label;
        data_test_gather(dataset, &i, 1, input, &label);
        for (int j = 0; j < WIDTH; j++) {
            sum += input[j];
            square += input[j] * input[j];
        }
        ck_assert_int_ge(label, 0);
        ck_assert_int_lt(label, CLASSES);
        count[label]++;
    }
    /* Four standard errors. */
    ck_assert_double_lt(fabs(sum / (SAMPLES * WIDTH)), 0.04);
    ck_assert_double_lt(fabs(square / (SAMPLES * WIDTH) - 1), 0.06);
    for (int c = 0; c < CLASSES; c++)
        ck_assert_int_lt(abs(count[c] - SAMPLES / CLASSES), 80);
    dataset_close(dataset);
}
END_TEST

START_TEST(random_targets_have_the_outputs_shape)
{
    static const int64_t index[] = {4, 4};
    float input[2][2], target[2][6];
    struct dataset *dataset = data_test_open(random_source(10, 0), data_test_plain(),
                                             data_test_values(SHAPE(2), SHAPE(2, 3), 0));
    data_test_gather(dataset, index, 2, input[0], target[0]);
    ck_assert_mem_eq(target[0], target[1], sizeof target[0]);
    ck_assert_mem_ne(target[0], input[0], sizeof input[0]);
    ck_assert_float_ne(target[0][0], target[0][5]);
    dataset_close(dataset);
}
END_TEST

START_TEST(random_refuses_what_the_loss_cannot_use)
{
    data_test_refused(random_source(10, 0), data_test_plain(), data_test_labels(SHAPE(2), 4),
                      ERR_DATA_INVALID, "/data/train/classes",
                      "has no labels; the loss wants class numbers below 4");
    data_test_refused(random_source(10, 5), data_test_plain(), data_test_labels(SHAPE(2), 4),
                      ERR_DATA_INVALID, "/data/train/classes", "5 classes for a model of 4");
    data_test_refused(random_source(10, 5), data_test_plain(),
                      data_test_values(SHAPE(2), SHAPE(2, 3), 0), ERR_DATA_INVALID,
                      "/data/train/classes", "no row of classes");
}
END_TEST

START_TEST(idx_images_serve_one_channel)
{
    static const int64_t index[] = {2, 0};
    float input[2][6];
    int64_t label[2];
    struct dataset *dataset =
        data_test_open(tiny(), data_test_plain(), data_test_labels(SHAPE(1, 2, 3), 4));
    ck_assert_int_eq(dataset_samples(dataset), 4);
    data_test_gather(dataset, index, 2, input[0], label);
    for (int i = 0; i < 6; i++) {
        ck_assert_float_eq(input[0][i], (float)(12 + i));
        ck_assert_float_eq(input[1][i], (float)i);
    }
    ck_assert_int_eq(label[0], 2);
    ck_assert_int_eq(label[1], 3);
    dataset_close(dataset);
}
END_TEST

START_TEST(labels_become_rows_under_mse)
{
    static const int64_t index[] = {0, 1};
    static const float want[2][4] = {{0, 0, 0, 1}, {1, 0, 0, 0}};
    float input[2][6], target[2][4];
    struct dataset *dataset =
        data_test_open(tiny(), data_test_plain(), data_test_values(SHAPE(2, 3), SHAPE(4), 4));
    data_test_gather(dataset, index, 2, input[0], target[0]);
    ck_assert_mem_eq(target, want, sizeof want);
    dataset_close(dataset);
}
END_TEST

START_TEST(idx_values_are_targets_under_mse)
{
    static const int64_t index[] = {1};
    float input[6], target[6];
    struct job_source source = tiny();
    source.targets = source.inputs.texts[0];
    double half = 0.5;
    struct job_data data = data_test_plain();
    data.scale.v = &half;
    struct dataset *dataset =
        data_test_open(source, data, data_test_values(SHAPE(2, 3), SHAPE(2, 3), 0));
    data_test_gather(dataset, index, 1, input, target);
    for (int i = 0; i < 6; i++) {
        ck_assert_float_eq(target[i], (float)(6 + i));
        ck_assert_float_eq(input[i], (float)(6 + i) / 2);
    }
    dataset_close(dataset);
}
END_TEST

START_TEST(transform_of_one_number_and_of_one_a_channel)
{
    static const int64_t index[] = {1};
    float input[6];
    int64_t label;
    double scale[] = {0.5, 2}, mean = 1, std[] = {4, 8};
    struct job_data data = {.scale = {2, scale}, .mean = {1, &mean}, .std = {2, std}};
    struct dataset *dataset = data_test_open(tiny(), data, data_test_labels(SHAPE(2, 3), 4));
    data_test_gather(dataset, index, 1, input, &label);
    for (int i = 0; i < 6; i++)
        ck_assert_float_eq(input[i], (float)(((6 + i) * scale[i / 3] - 1) / std[i / 3]));
    dataset_close(dataset);

    double three[] = {1, 2, 3};
    data.mean = (struct job_numbers){3, three};
    data_test_refused(tiny(), data, data_test_labels(SHAPE(2, 3), 4), ERR_DATA_INVALID,
                      "/data/transform/mean", "3 numbers for an input of 2 channels");
    data.mean = (struct job_numbers){1, &mean};
    std[1] = 0;
    data_test_refused(tiny(), data, data_test_labels(SHAPE(2, 3), 4), ERR_DATA_INVALID,
                      "/data/transform/std", "standard deviation of 0");
}
END_TEST

/* A number for all takes no memory a channel: planning stays cheap however wide the input is. */
START_TEST(transform_of_one_number_is_one_whatever_the_input)
{
    static const int64_t most = INT32_MAX;
    dataset_close(
        data_test_open(random_source(10, 4), data_test_plain(), data_test_labels(SHAPE(most), 4)));
}
END_TEST

START_TEST(idx_refuses_what_does_not_fit)
{
    struct job_source source = tiny();
    data_test_refused(source, data_test_plain(), data_test_labels(SHAPE(6), 4), ERR_DATA_INVALID,
                      "/data/train/inputs", "samples of shape [2, 3], the model's input is [6]");
    data_test_refused(source, data_test_plain(), data_test_labels(SHAPE(2, 3), 3), ERR_DATA_INVALID,
                      "/data/train/targets",
                      "sample 0 has label 3, want 0 to 2 (the model has 3 classes)");
    data_test_refused(source, data_test_plain(), data_test_values(SHAPE(2, 3), SHAPE(5, 2), 0),
                      ERR_DATA_INVALID, "/data/train/targets",
                      "samples of shape [], the model's output is [5, 2]");

    struct job_source swapped = source;
    swapped.targets = source.inputs.texts[0];
    data_test_refused(swapped, data_test_plain(), data_test_labels(SHAPE(2, 3), 4),
                      ERR_DATA_INVALID, "/data/train/targets",
                      "uint8 of shape [4, 2, 3], the loss wants one integer label");

    static const uint32_t five[] = {5};
    uint8_t bytes[64], labels[5] = {0};
    size_t n = idx_make(bytes, 0x08, 1, five, labels, sizeof labels);
    source.targets = (char *)idx_file("five", bytes, n);
    data_test_refused(source, data_test_plain(), data_test_labels(SHAPE(2, 3), 4), ERR_DATA_INVALID,
                      "/data/train/targets", "has 5 targets");
    source.targets = (char *)"/nonexistent/labels.gz";
    data_test_refused(source, data_test_plain(), data_test_labels(SHAPE(2, 3), 4), ERR_IO,
                      "/data/train/targets", "/nonexistent/labels.gz: No such file or directory");
}
END_TEST

static uint64_t fingerprint(struct job_source source, struct job_data data,
                            struct dataset_want want)
{
    struct dataset *dataset = data_test_open(source, data, want);
    uint64_t got = dataset_fingerprint(dataset);
    dataset_close(dataset);
    return got;
}

START_TEST(fingerprint_tells_data_apart)
{
    struct dataset_want want = data_test_labels(SHAPE(2, 3), 4);
    uint64_t first = fingerprint(tiny(), data_test_plain(), want);
    ck_assert_uint_eq(fingerprint(tiny(), data_test_plain(), want), first);

    struct job_source other = tiny();
    static const uint32_t four[] = {4};
    static const uint8_t labels[] = {3, 0, 2, 2};
    uint8_t bytes[64];
    size_t n = idx_make(bytes, 0x08, 1, four, labels, sizeof labels);
    other.targets = (char *)idx_file("others", bytes, n);
    ck_assert_uint_ne(fingerprint(other, data_test_plain(), want), first);

    double half = 0.5;
    struct job_data data = data_test_plain();
    data.scale.v = &half;
    ck_assert_uint_ne(fingerprint(tiny(), data, want), first);
    ck_assert_uint_ne(fingerprint(random_source(10, 4), data_test_plain(), want),
                      fingerprint(random_source(11, 4), data_test_plain(), want));
}
END_TEST

START_TEST(every_allocation_is_checked)
{
    struct job_source source = tiny();
    struct job_data data = data_test_plain();
    struct dataset_want want = data_test_labels(SHAPE(2, 3), 4);
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
        ck_assert_int_eq(rc, ERR_NOMEM);
    }
    ck_assert_int_gt(n, 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dataset");
    TCase *tcase = checks_case(suite, "dataset", 20);
    tcase_add_checked_fixture(tcase, NULL, checks_scratch_remove);
    tcase_add_test(tcase, random_samples_are_a_function_of_seed_and_sample);
    tcase_add_test(tcase, random_inputs_are_normal_and_labels_uniform);
    tcase_add_test(tcase, random_targets_have_the_outputs_shape);
    tcase_add_test(tcase, random_refuses_what_the_loss_cannot_use);
    tcase_add_test(tcase, idx_images_serve_one_channel);
    tcase_add_test(tcase, labels_become_rows_under_mse);
    tcase_add_test(tcase, idx_values_are_targets_under_mse);
    tcase_add_test(tcase, transform_of_one_number_and_of_one_a_channel);
    tcase_add_test(tcase, transform_of_one_number_is_one_whatever_the_input);
    tcase_add_test(tcase, idx_refuses_what_does_not_fit);
    tcase_add_test(tcase, fingerprint_tells_data_apart);
    tcase_add_test(tcase, every_allocation_is_checked);
    return checks_run(suite);
}
