/* check_shard_optimizer.c: where replicas share the optimizer's state, each has less of it, and
 * nothing else is different: not one bit of weights, state or metrics. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/engine/run_job.h"
#include "tests/lib/checks.h"

/* The base has a Linear of 8 x 5, a BatchNorm of 8, a Linear of 3 x 8; 40 samples, batches of 16.
 * Its smallest parameter has 3 elements: only one device has a part of its state. */
static const char *const jobs[] = {
    "{}",
    "{'optimizer': {'type': 'RMSprop', 'lr': 0.01, 'centered': true}}",
    "{'optimizer': {'nesterov': true, 'weight_decay': 0.01, 'no_decay': ['*.bias']}}",
    "{'train': {'accumulate': 2, 'clip_grad_norm': 0.1, 'batch_size': 12}}",
    "{'model': {'freeze': ['a']}, 'train': {'batch_size': 12}}",
    "{'parallel': {'mode': 'replicate', 'devices': 2, 'shards': 4}}",
    "{'parallel': {'mode': 'replicate', 'devices': 2, 'shards': 4}, 'train': {'accumulate': 2}}",
    "{'parallel': {'mode': 'replicate', 'devices': 2, 'batch_norm': 'synchronized'}}",
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

static struct job *parse(const char *patch, int devices, bool cut)
{
    struct job *job = run_job_parse(patch);
    job->parallel.mode = PARALLEL_REPLICATE; /* also of a patch that says nothing of it */
    job->parallel.n_devices = devices;
    job->parallel.shard_optimizer = cut;
    return job;
}

static void run_at(struct place at, const char *patch, int devices, bool cut, int64_t stop_after)
{
    static struct run_job run;
    struct job *job = parse(patch, devices, cut);
    run_job_parsed(job, at.path, devices, stop_after, &run);
    ck_assert_msg(run.rc == 0 || (stop_after > 0 && run.rc == ERR_CANCELLED), "%s: %s: %s", patch,
                  run.err.path, run.err.message);
    job_free(job);
}

static void ck_same_end(struct place a, struct place b, const char *checkpoint)
{
    char name[64];
    snprintf(name, sizeof name, "checkpoints/%s/state.safetensors", checkpoint);
    run_job_same_file(a.path, b.path, "weights.safetensors");
    run_job_same_file(a.path, b.path, name);
}

static const char *last_checkpoint(const char *patch)
{
    bool windows = strstr(patch, "accumulate") != NULL, small = strstr(patch, "12") != NULL;
    return windows ? "step-00000004" : small ? "step-00000008" : "step-00000006";
}

START_TEST(changes_no_bit)
{
    const char *last = last_checkpoint(jobs[_i]);
    for (int devices = 2; devices <= 4; devices++) {
        if (devices == 4 && strstr(jobs[_i], "synchronized") == NULL)
            continue; /* its BatchNorm would see one sample */
        struct place plain = place("plain", _i, devices), cut = place("cut", _i, devices);
        run_at(plain, jobs[_i], devices, false, 0);
        run_at(cut, jobs[_i], devices, true, 0);
        ck_same_end(plain, cut, last);
    }
}
END_TEST

/* A checkpoint has all of the state: it goes on with all, with parts, with other parts. */
START_TEST(resumes_either_way)
{
    static const char job[] =
        "{'parallel': {'mode': 'replicate', 'devices': 2, 'shards': 4}, 'train': {'epochs': 3}}";
    struct place whole = place("whole", 0, 0), mixed = place("mixed", 0, 0);
    run_at(whole, job, 2, false, 0);
    run_at(mixed, job, 2, true, 2);
    run_at(mixed, job, 3, true, 4);
    run_at(mixed, job, 1, false, 5);
    run_at(mixed, job, 4, true, 7);
    run_at(mixed, job, 2, true, 0);
    ck_same_end(whole, mixed, "step-00000009");
}
END_TEST

static size_t planned(int devices, bool cut)
{
    struct err err = ERR_INIT;
    struct trainer_plan plan;
    struct job *job =
        parse("{'model': {'layers': [{'type': 'Linear', 'name': 'a', 'out_features': 1000},"
              " {'type': 'Linear', 'name': 'b', 'out_features': 3}]},"
              " 'optimizer': {'type': 'RMSprop', 'lr': 0.01, 'centered': true}}",
              devices, cut);
    struct trainer_config config = run_job_config(job, devices, "unused");
    ck_assert_msg(trainer_plan(&config, &plan, &err) == 0, "%s", err.message);
    size_t bytes = plan.devices[0].variable_bytes;
    trainer_plan_done(&plan);
    job_free(job);
    return bytes;
}

/* Parameters and gradients stay whole; of three state tensors each has a part. */
START_TEST(plan_counts_the_parts)
{
    size_t whole = planned(1, false), padding = 4 * 3 * 64;
    ck_assert_uint_eq(planned(4, false), whole);
    for (int devices = 2; devices <= 4; devices++) {
        size_t parts = (size_t)devices, expected = whole / 5 * 2 + whole / 5 * 3 / parts;
        size_t bytes = planned(devices, true);
        ck_assert_msg(bytes <= expected + parts * padding && bytes + padding >= expected,
                      "%d devices: %zu of %zu bytes", devices, bytes, whole);
    }
}
END_TEST

int main(void)
{
    checks_scratch(); /* one for all of the forked tests */
    Suite *suite = suite_create("shard_optimizer");
    TCase *tcase = checks_case(suite, "shard_optimizer", 60);
    tcase_add_loop_test(tcase, changes_no_bit, 0, (int)(sizeof jobs / sizeof jobs[0]));
    tcase_add_test(tcase, resumes_either_way);
    tcase_add_test(tcase, plan_counts_the_parts);
    int status = checks_run(suite);
    checks_scratch_remove();
    return status;
}
