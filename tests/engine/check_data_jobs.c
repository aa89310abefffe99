/* check_data_jobs.c: whole jobs on data of several formats: the same losses on any number of
 * devices, the same bits with any number of workers and after a resume. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json.h"
#include "tests/engine/idx_files.h"
#include "tests/engine/run_job.h"
#include "tests/lib/checks.h"

/* Each file is made in the scratch directory, which %s stands for. */
static const char text_job[] =
    "{\"version\": 1, \"model\": {\"input\": {\"shape\": [6], \"dtype\": \"int64\"}, \"layers\": ["
    " {\"type\": \"Embedding\", \"num_embeddings\": 256, \"embedding_dim\": 8},"
    " {\"type\": \"PositionalEmbedding\", \"num_embeddings\": 6},"
    " {\"type\": \"Linear\", \"out_features\": 256}]},"
    " \"data\": {\"train\": {\"format\": \"text\", \"path\": \"%s/text\", \"context\": 6}},"
    " \"loss\": {\"type\": \"CrossEntropyLoss\"}, \"optimizer\": {\"type\": \"SGD\", \"lr\": 0.5},"
    " \"train\": {\"epochs\": 2, \"batch_size\": 5, \"seed\": 3},"
    " \"checkpoint\": {\"every\": \"2 steps\"}}";

static const char csv_job[] =
    "{\"version\": 1, \"model\": {\"input\": {\"shape\": [2]}, \"layers\": ["
    " {\"type\": \"Linear\", \"out_features\": 8}, {\"type\": \"Tanh\"},"
    " {\"type\": \"Linear\", \"out_features\": 1}]},"
    " \"data\": {\"train\": {\"format\": \"csv\", \"path\": \"%s/table\", \"target\": \"y\"},"
    "   \"transform\": {\"mean\": [10, 5], \"std\": [6, 3]}},"
    " \"loss\": {\"type\": \"MSELoss\"}, \"optimizer\": {\"type\": \"SGD\", \"lr\": 0.1},"
    " \"train\": {\"epochs\": 3, \"batch_size\": 8, \"seed\": 3},"
    " \"checkpoint\": {\"every\": \"2 steps\"}}";

static const char image_job[] =
    "{\"version\": 1, \"model\": {\"input\": {\"shape\": [3, 32, 32]}, \"layers\": ["
    " {\"type\": \"Conv2d\", \"out_channels\": 4, \"kernel_size\": 5, \"stride\": 4},"
    " {\"type\": \"ReLU\"}, {\"type\": \"Flatten\"}, {\"type\": \"Linear\", \"out_features\": "
    "10}]},"
    " \"data\": {\"train\": {\"format\": \"cifar10\", \"path\": \"%s/cifar\"}, \"workers\": %d,"
    "   \"transform\": {\"scale\": 0.004, \"random_crop\": {\"padding\": 4}, \"random_flip\": "
    "true}},"
    " \"loss\": {\"type\": \"CrossEntropyLoss\"}, \"optimizer\": {\"type\": \"SGD\", \"lr\": 0.1},"
    " \"train\": {\"epochs\": 2, \"batch_size\": 8, \"seed\": 3},"
    " \"checkpoint\": {\"every\": \"2 steps\"}}";

static void make_files(void)
{
    static uint8_t records[20 * 3073];
    char table[4096] = "a,y,b\n";
    size_t used = strlen(table);
    for (int i = 0; i < 30; i++)
        used += (size_t)snprintf(table + used, sizeof table - used, "%d,%g,%d\n", i % 20, 0.1 * i,
                                 i % 11);
    idx_file("table", table, used);
    for (size_t i = 0; i < sizeof records; i++)
        records[i] = i % 3073 == 0 ? (uint8_t)(i / 3073 % 10) : (uint8_t)(i * i / 7);
    idx_file("cifar", records, sizeof records);
    idx_file("text",
             "the quick brown fox jumps over the lazy dog, and the dog does not mind at all", 77);
}

static struct job *parse(const char *document, int workers)
{
    char text[4096];
    struct err err = ERR_INIT;
    struct job *job = NULL;
    int n = document == image_job
                ? snprintf(text, sizeof text, image_job, checks_scratch(), workers)
            : document == text_job ? snprintf(text, sizeof text, text_job, checks_scratch())
                                   : snprintf(text, sizeof text, csv_job, checks_scratch());
    ck_assert_msg(job_parse(text, (size_t)n, &job, &err) == 0, "%s: %s", err.path, err.message);
    return job;
}

/* Runs into the directory `name`; returns the last loss. */
static double run(const char *document, const char *name, int n_devices, int workers,
                  int64_t stop_after)
{
    static struct run_job result;
    char output[600];
    struct job *job = parse(document, workers);
    snprintf(output, sizeof output, "%s/%s", checks_scratch(), name);
    run_job_parsed(job, output, n_devices, stop_after, &result);
    ck_assert_msg(result.rc == 0 || stop_after > 0, "%s: %s", result.err.path, result.err.message);
    job_free(job);
    return result.progress.loss;
}

static size_t weights(const char *name, char *to, size_t size)
{
    char path[600];
    snprintf(path, sizeof path, "%s/%s/weights.safetensors", checks_scratch(), name);
    FILE *file = fopen(path, "rb");
    ck_assert_msg(file != NULL, "%s is missing", path);
    size_t n = fread(to, 1, size, file);
    fclose(file);
    return n;
}

static void ck_same_weights(const char *one, const char *other)
{
    static char a[1 << 16], b[1 << 16];
    size_t n = weights(one, a, sizeof a);
    ck_assert_uint_gt(n, 100);
    ck_assert_uint_eq(weights(other, b, sizeof b), n);
    ck_assert_mem_eq(a, b, n);
}

static const char *const documents[] = {text_job, csv_job, image_job};

START_TEST(losses_are_the_same_on_any_number_of_devices)
{
    make_files();
    double one = run(documents[_i], "1", 1, 1, 0);
    ck_assert_double_gt(one, 0);
    ck_assert_double_eq_tol(run(documents[_i], "2", 2, 1, 0), one, 1e-5 * one);
    ck_assert_double_eq_tol(run(documents[_i], "3", 3, 1, 0), one, 1e-5 * one);
}
END_TEST

START_TEST(bits_are_the_same_after_a_resume)
{
    make_files();
    run(documents[_i], "whole", 2, 1, 0);
    run(documents[_i], "parts", 2, 1, 3);
    run(documents[_i], "parts", 2, 1, 0);
    ck_same_weights("whole", "parts");
}
END_TEST

START_TEST(bits_are_the_same_with_any_number_of_workers)
{
    make_files();
    run(image_job, "one", 1, 1, 0);
    run(image_job, "five", 1, 5, 0);
    ck_same_weights("one", "five");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("data_jobs");
    TCase *tcase = checks_case(suite, "data_jobs", 60);
    tcase_add_checked_fixture(tcase, NULL, checks_scratch_remove);
    tcase_add_loop_test(tcase, losses_are_the_same_on_any_number_of_devices, 0, 3);
    tcase_add_loop_test(tcase, bits_are_the_same_after_a_resume, 0, 3);
    tcase_add_test(tcase, bits_are_the_same_with_any_number_of_workers);
    return checks_run(suite);
}
