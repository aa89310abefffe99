/* check_loader.c: batches in their order, from any place, and an end at any time. */
#include <string.h>

#include "engine/data/loader.h"
#include "engine/data/order.h"
#include "tests/engine/idx_files.h"
#include "tests/lib/checks.h"

enum { SAMPLES = 100, BATCH = 30, WIDTH = 3, EPOCH_BATCHES = 4 };

static double one = 1, zero = 0;
static struct dataset *dataset;

static void setup(void)
{
    struct err err;
    struct job_source source = {.format = DATA_RANDOM, .samples = SAMPLES, .seed = 2, .classes = 4};
    struct job_data data = {.scale = {1, &one}, .mean = {1, &zero}, .std = {1, &one}};
    struct model_input input = {
        .name = "input", .shape = SHAPE(WIDTH), .dtype = DTYPE_F32, .lengths = -1, .of = -1};
    struct dataset_want want = {
        .inputs = &input, .n_inputs = 1, .target_dtype = DTYPE_I64, .classes = 4};
    ck_assert_int_eq(dataset_open(&source, &data, &want, "/data/train", &dataset, &err), 0);
}

static void teardown(void)
{
    checks_scratch_remove();
    dataset_close(dataset);
}

static struct loader *start(struct loader_config config)
{
    struct err err;
    struct loader *loader;
    config.dataset = dataset;
    config.seed = 9;
    if (config.batch_size == 0)
        config.batch_size = BATCH;
    ck_assert_int_eq(loader_start(&config, &loader, &err), 0);
    return loader;
}

static bool next(struct loader *loader, struct loader_batch *ret_batch)
{
    bool more;
    struct err err = ERR_INIT;
    ck_assert_msg(loader_next(loader, ret_batch, &more, &err) == 0, "%s", err.message);
    return more;
}

/* The batch is the one that a direct gather makes for `number`. */
static void ck_batch(const struct loader_batch *got, int64_t number, bool shuffle)
{
    int64_t order[SAMPLES], label[BATCH];
    float input[BATCH][WIDTH];
    int64_t epoch = number / EPOCH_BATCHES, index = number % EPOCH_BATCHES;
    order_epoch(9, epoch, shuffle, SAMPLES, order);
    int64_t n = order_batch_samples(SAMPLES, BATCH, index);
    struct err err;
    const struct dataset_rows rows = {order + index * BATCH, n, epoch, index * BATCH};
    ck_assert_int_eq(dataset_gather(dataset, &rows, (void *[]){input[0]}, label, &err), 0);
    ck_assert_int_eq(got->epoch, epoch);
    ck_assert_int_eq(got->index, index);
    ck_assert_int_eq(got->first_sample, index * BATCH);
    ck_assert_int_eq(got->batch.n, n);
    ck_assert_mem_eq(got->batch.inputs[0], input, (size_t)n * sizeof input[0]);
    ck_assert_mem_eq(got->batch.targets, label, (size_t)n * sizeof label[0]);
}

START_TEST(batches_come_in_order)
{
    struct loader_batch batch;
    static const int64_t workers[] = {1, 3, LIMIT_WORKERS};
    struct loader *loader = start(
        (struct loader_config){.shuffle = _i % 2, .n_batches = 11, .workers = workers[_i / 2]});
    for (int64_t i = 0; i < 11; i++) {
        ck_assert(next(loader, &batch));
        ck_batch(&batch, i, _i % 2);
    }
    ck_assert(!next(loader, &batch));
    ck_assert(!next(loader, &batch));
    loader_stop(loader);
}
END_TEST

START_TEST(a_resume_begins_anywhere)
{
    for (int64_t first = 0; first < 9; first++) {
        struct loader_batch batch;
        struct loader *loader =
            start((struct loader_config){.shuffle = true, .first_batch = first, .n_batches = 9});
        for (int64_t i = first; i < 9; i++) {
            ck_assert(next(loader, &batch));
            ck_batch(&batch, i, true);
        }
        ck_assert(!next(loader, &batch));
        loader_stop(loader);
    }
}
END_TEST

START_TEST(drop_last_drops_the_short_batch)
{
    struct loader_batch batch;
    struct loader *loader = start((struct loader_config){.drop_last = true, .n_batches = 7});
    for (int64_t i = 0; i < 7; i++) {
        ck_assert(next(loader, &batch));
        ck_assert_int_eq(batch.batch.n, BATCH);
        ck_assert_int_eq(batch.epoch, i / 3);
        ck_assert_int_eq(batch.index, i % 3);
    }
    loader_stop(loader);
}
END_TEST

START_TEST(a_batch_larger_than_the_data_is_all_of_it)
{
    struct loader_batch batch;
    struct loader *loader = start((struct loader_config){.batch_size = 1000, .n_batches = 2});
    for (int64_t i = 0; i < 2; i++) {
        ck_assert(next(loader, &batch));
        ck_assert_int_eq(batch.batch.n, SAMPLES);
        ck_assert_int_eq(batch.epoch, i);
        ck_assert_int_eq(batch.index, 0);
    }
    ck_assert(!next(loader, &batch));
    loader_stop(loader);
}
END_TEST

/* Ids of which those of sample 70 are beyond the table. */
START_TEST(a_broken_sample_ends_its_batch)
{
    uint8_t ids[SAMPLES + 1] = {0};
    ids[70] = 200;
    struct err err = ERR_INIT;
    struct model_input input = {.name = "input",
                                .shape = SHAPE(1),
                                .dtype = DTYPE_I64,
                                .lengths = -1,
                                .of = -1,
                                .values = 5};
    struct job_source source = {.format = DATA_TEXT, .context = 1};
    struct job_data data = {.scale = {1, &one}, .mean = {1, &zero}, .std = {1, &one}};
    struct dataset_want want = {.inputs = &input,
                                .n_inputs = 1,
                                .target = SHAPE(1),
                                .target_dtype = DTYPE_I64,
                                .classes = 256};
    source.path = (char *)idx_file("ids", ids, sizeof ids);
    struct dataset *broken;
    ck_assert_int_eq(dataset_open(&source, &data, &want, "/data/train", &broken, &err), 0);
    struct loader *loader;
    struct loader_batch batch;
    bool more;
    const struct loader_config config = {
        .dataset = broken, .batch_size = BATCH, .n_batches = 4, .workers = 1 + 2 * _i};
    ck_assert_int_eq(loader_start(&config, &loader, &err), 0);
    ck_assert(next(loader, &batch) && next(loader, &batch));
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(loader_next(loader, &batch, &more, &err), ERR_DATA_INVALID);
        ck_assert_ptr_nonnull(strstr(err.message, "sample 70 has 200 in \"input\", want 0 to 4"));
    }
    loader_stop(loader);
    dataset_close(broken);
}
END_TEST

START_TEST(stops_at_any_time)
{
    for (int64_t taken = 0; taken < 20; taken++) {
        struct loader_batch batch;
        struct loader *loader =
            start((struct loader_config){.shuffle = true, .n_batches = INT64_MAX});
        for (int64_t i = 0; i < taken; i++)
            ck_assert(next(loader, &batch));
        loader_stop(loader);
    }
    loader_stop(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("loader");
    TCase *tcase = checks_case(suite, "loader", 20);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, batches_come_in_order, 0, 6);
    tcase_add_test(tcase, a_resume_begins_anywhere);
    tcase_add_test(tcase, drop_last_drops_the_short_batch);
    tcase_add_test(tcase, a_batch_larger_than_the_data_is_all_of_it);
    tcase_add_loop_test(tcase, a_broken_sample_ends_its_batch, 0, 2);
    tcase_add_test(tcase, stops_at_any_time);
    return checks_run(suite);
}
