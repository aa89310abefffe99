/* check_shards.c: a job with shards comes out the same, bit for bit, on any number of devices. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engine/run_job.h"
#include "tests/lib/checks.h"

/* The base has BatchNorm, Dropout, momentum; 40 samples, batches of 16, so a last one of 8. */
static const struct row {
    int shards;
    const char *patch;
} jobs[] = {
    {4, "'name': 'plain'"},
    {8, "'train': {'batch_size': 24}"},
    {5, "'train': {'batch_size': 11}, 'data': {'train': {'samples': 41}}"}, /* the last shard is
                                                                               empty */
    {8, "'train': {'batch_size': 24, 'clip_grad_norm': 0.1, 'accumulate': 2}"},
    {4, "'train': {'batch_size': 8, 'accumulate': 3, 'accumulate_reduction': 'sum'}"},
    {4, "'optimizer': {'type': 'RMSprop', 'lr': 0.01, 'centered': true}"},
    {7, "'train': {'batch_size': 15, 'checkpoint_activations': true}, 'data': {'drop_last': true}"},
    {6, "'model': {'freeze': ['a']}, 'train': {'batch_size': 17}, 'data': {'drop_last': true}"},
};

struct place {
    char path[512];
};

static struct place place(const char *name, int job, int devices)
{
    struct place place;
    snprintf(place.path, sizeof place.path, "%s/%s-%d-%d", checks_scratch(), name, job, devices);
    return place;
}

static void run_at(const char *output, const struct row *row, int devices, int64_t stop_after)
{
    static struct run_job run;
    char patch[512];
    snprintf(patch, sizeof patch,
             "{%s, 'parallel': {'mode': 'replicate', 'devices': %d, 'shards': %d}}", row->patch,
             devices, row->shards);
    run_job(patch, output, devices, stop_after, &run);
    ck_assert_msg(run.rc == 0 || (stop_after > 0 && run.rc == ERR_CANCELLED), "%s: %s: %s", patch,
                  run.err.path, run.err.message);
}

/* The metrics without what a clock says. */
static char *metrics(const char *output)
{
    char *text = run_job_contents(output, "metrics.jsonl", NULL);
    for (char *at = text; (at = strstr(at, "\"seconds\": ")) != NULL;) {
        at += strlen("\"seconds\": ");
        memmove(at, strchr(at, ','), strlen(strchr(at, ',')) + 1);
    }
    ck_assert_uint_gt(strlen(text), 0);
    return text;
}

static void ck_same_run(const char *a, const char *b)
{
    char *of_a = metrics(a), *of_b = metrics(b);
    ck_assert_str_eq(of_a, of_b);
    run_job_same_file(a, b, "weights.safetensors");
    free(of_a);
    free(of_b);
}

START_TEST(same_bits_on_any_devices)
{
    struct place one = place("any", _i, 1);
    run_at(one.path, &jobs[_i], 1, 0);
    for (int devices = 2; devices <= 4; devices++) {
        struct place many = place("any", _i, devices);
        run_at(many.path, &jobs[_i], devices, 0);
        ck_same_run(one.path, many.path);
    }
}
END_TEST

/* A shard is a replica: as many shards as devices are what replicate makes of them. */
START_TEST(shards_are_replicas)
{
    static struct run_job run;
    struct place plain = place("plain", 0, 2), sharded = place("sharded", 0, 1);
    run_job_well("{'parallel': {'mode': 'replicate', 'devices': 2}}", plain.path, 2, &run);
    run_at(sharded.path, &(struct row){2, "'name': 'small'"}, 1, 0);
    ck_same_run(plain.path, sharded.path);
}
END_TEST

START_TEST(resumes_on_other_devices)
{
    struct place whole = place("whole", _i, 1), cut = place("cut", _i, 0);
    run_at(whole.path, &jobs[_i], 1, 0);
    run_at(cut.path, &jobs[_i], 4, 1);
    run_at(cut.path, &jobs[_i], 1, 2);
    run_at(cut.path, &jobs[_i], 3, 0);
    ck_same_run(whole.path, cut.path);
}
END_TEST

/* Devices of several threads all work with as many as the smallest has. */
START_TEST(threads_are_pinned)
{
    static struct run_job run;
    char outputs[2][512];
    for (int i = 0; i < 2; i++) {
        struct job *job = run_job_parse(
            "{'parallel': {'mode': 'replicate', 'devices': 2, 'shards': 4},"
            " 'model': {'layers': [{'type': 'Linear', 'name': 'a', 'out_features': 640},"
            " {'type': 'Linear', 'name': 'b', 'out_features': 3}]}}");
        snprintf(outputs[i], sizeof outputs[i], "%s/threads-%d", checks_scratch(), i);
        struct trainer_config config = run_job_config(job, 2, outputs[i]);
        struct device_config devices[2] = {config.devices[0], config.devices[1]};
        devices[0].n_threads = 1 + i;
        config.devices = devices;
        run_job_with(&config, 0, &run);
        ck_assert_msg(run.rc == 0, "%s", run.err.message);
        job_free(job);
    }
    run_job_same_file(outputs[0], outputs[1], "weights.safetensors");
}
END_TEST

static size_t planned(int devices, int shards, int accumulate, int device)
{
    struct err err = ERR_INIT;
    struct trainer_plan plan;
    char patch[256];
    snprintf(patch, sizeof patch,
             "{'data': {'train': {'samples': 48}}, 'train': {'accumulate': %d}, 'parallel': "
             "{'mode': 'replicate', 'devices': %d%s%d}}",
             accumulate, devices, shards > 0 ? ", 'shards': " : ", 'dim': ", shards);
    struct job *job = run_job_parse(patch);
    struct trainer_config config = run_job_config(job, devices, "unused");
    ck_assert_msg(trainer_plan(&config, &plan, &err) == 0, "%s", err.message);
    size_t bytes = plan.devices[device].variable_bytes;
    trainer_plan_done(&plan);
    job_free(job);
    return bytes;
}

/* Sums of gradients that wait for others: as many as the tree is deep, on one device. */
START_TEST(plan_counts_the_slots)
{
    size_t plain = planned(1, 0, 1, 0), gradients = planned(2, 2, 1, 0) - planned(2, 0, 1, 0);
    ck_assert_uint_gt(gradients, 4 * (5 * 8 + 8 + 8 + 8 + 8 * 3 + 3) - 1);
    ck_assert_uint_eq(planned(1, 1, 1, 0), plain + gradients);
    ck_assert_uint_eq(planned(1, 2, 1, 0), plain + gradients);
    ck_assert_uint_eq(planned(1, 3, 1, 0), plain + 2 * gradients);
    ck_assert_uint_eq(planned(1, 8, 1, 0), plain + 3 * gradients);
    ck_assert_uint_eq(planned(1, 8, 2, 0), plain + 4 * gradients);
    ck_assert_uint_eq(planned(2, 8, 1, 1), plain + 2 * gradients);
    ck_assert_uint_eq(planned(3, 8, 1, 1), plain + 2 * gradients); /* shards 3, 4 and 5 */
}
END_TEST

int main(void)
{
    checks_scratch(); /* one for all of the forked tests */
    Suite *suite = suite_create("shards");
    TCase *tcase = checks_case(suite, "shards", 60);
    tcase_add_loop_test(tcase, same_bits_on_any_devices, 0, (int)(sizeof jobs / sizeof jobs[0]));
    tcase_add_test(tcase, shards_are_replicas);
    tcase_add_loop_test(tcase, resumes_on_other_devices, 2, 5);
    tcase_add_test(tcase, threads_are_pinned);
    tcase_add_test(tcase, plan_counts_the_slots);
    int status = checks_run(suite);
    checks_scratch_remove();
    return status;
}
