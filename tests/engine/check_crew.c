/* check_crew.c: tasks on devices' threads: errors, and devices that do not answer. */
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/parallel/crew.h"
#include "tests/lib/checks.h"

enum { DEVICES = 3, HUNG = 7 /* the status with which a process ends that has a hanging device */ };

static const struct device_config devices[DEVICES] = {
    {.name = "cpu:0", .n_threads = 1},
    {.name = "cpu:1", .n_threads = 1},
    {.name = "cpu:2", .n_threads = 1},
};

/* Slices so short that a test need not wait; real ones are seconds. */
static const struct crew_patience short_patience = {
    .slice_ms = 10, .first = 20, .after = 5, .times = 4};

struct scene {
    struct crew *crew;
    sem_t released; /* what waiters wait for, as replicas wait for each other */
    sem_t never;
    atomic_int runs, aborts;
};

static void on_abort(void *context)
{
    struct scene *scene = context;
    if (atomic_fetch_add(&scene->aborts, 1) == 0)
        for (int i = 0; i < DEVICES; i++)
            sem_post(&scene->released);
}

static int on_place(void *context, int device, struct err *err)
{
    (void)context;
    return err_context(err, "replica %d on %s", device, devices[device].name);
}

static void on_hang(void *context, const struct err *err)
{
    const char *expected = context;
    ck_assert_str_eq(err->message, expected);
    _exit(HUNG);
}

static void scene_open(struct scene *scene)
{
    struct err err = ERR_INIT;
    memset(scene, 0, sizeof *scene);
    sem_init(&scene->released, 0, 0);
    sem_init(&scene->never, 0, 0);
    const struct crew_config config = {.devices = devices,
                                       .n_devices = DEVICES,
                                       .abort = on_abort,
                                       .place = on_place,
                                       .context = scene,
                                       .patience = &short_patience,
                                       .hang = on_hang,
                                       .hang_context = "replica 1 on cpu:1: no answer for 0.2 s"};
    ck_assert_msg(crew_start(&config, &scene->crew, &err) == 0, "%s", err.message);
}

static int run_through(void *context, int device, struct err *err)
{
    struct scene *scene = context;
    (void)device;
    (void)err;
    atomic_fetch_add(&scene->runs, 1);
    return 0;
}

static int wait_for_others(struct scene *scene, struct err *err)
{
    sem_wait(&scene->released);
    return err_set(err, ERR_CANCELLED, "another replica failed");
}

static int fail_on_one(void *context, int device, struct err *err)
{
    return device == 1 ? err_set(err, ERR_IO, "no luck") : wait_for_others(context, err);
}

static int hang_on_one(void *context, int device, struct err *err)
{
    struct scene *scene = context;
    if (device != 1)
        return wait_for_others(scene, err);
    sem_wait(&scene->never);
    return 0;
}

/* All wait for what never comes, and come back when told to. */
static int stall(void *context, int device, struct err *err)
{
    (void)device;
    return wait_for_others(context, err);
}

START_TEST(runs_on_all)
{
    static struct scene scene; /* there still when a thread comes back too late */
    struct err err = ERR_INIT;
    scene_open(&scene);
    ck_assert_int_eq(crew_run(scene.crew, 0, DEVICES, run_through, &err), 0);
    ck_assert_int_eq(crew_run(scene.crew, 1, 2, run_through, &err), 0);
    ck_assert_int_eq(scene.runs, DEVICES + 2);
    ck_assert_int_eq(scene.aborts, 0);
    crew_stop(scene.crew);
}
END_TEST

START_TEST(the_cause_is_reported)
{
    static struct scene scene; /* there still when a thread comes back too late */
    struct err err = ERR_INIT;
    scene_open(&scene);
    ck_assert_int_eq(crew_run(scene.crew, 0, DEVICES, fail_on_one, &err), ERR_IO);
    ck_assert_str_eq(err.message, "replica 1 on cpu:1: no luck");
    crew_stop(scene.crew);
}
END_TEST

START_TEST(who_hangs_is_named_and_ends_all)
{
    static struct scene scene; /* there still when a thread comes back too late */
    struct err err = ERR_INIT;
    scene_open(&scene);
    ck_assert_int_eq(crew_run(scene.crew, 0, DEVICES, run_through, &err), 0);
    crew_run(scene.crew, 0, DEVICES, hang_on_one, &err);
    ck_abort_msg("it came back: %s", err.message);
}
END_TEST

START_TEST(who_stalls_together_comes_back)
{
    static struct scene scene; /* there still when a thread comes back too late */
    struct err err = ERR_INIT;
    scene_open(&scene);
    ck_assert_int_eq(crew_run(scene.crew, 0, DEVICES, stall, &err), ERR_DEVICE_FAILED);
    ck_assert_str_eq(err.message, "no answer for 0.2 s");
    crew_stop(scene.crew);
}
END_TEST

static int slow_at_first(void *context, int device, struct err *err)
{
    struct scene *scene = context;
    const struct timespec slow = {.tv_nsec = 35 * 1000 * 1000}; /* three slices are over */
    (void)device;
    if (atomic_fetch_add(&scene->runs, 1) > 0)
        return wait_for_others(scene, err);
    nanosleep(&slow, NULL);
    return 0;
}

/* With a task that took long, patience is longer. */
START_TEST(patience_follows_the_longest)
{
    static struct scene scene; /* there still when a thread comes back too late */
    struct err err = ERR_INIT;
    scene_open(&scene);
    ck_assert_int_eq(crew_run(scene.crew, 0, 1, slow_at_first, &err), 0);
    ck_assert_int_eq(crew_run(scene.crew, 0, 1, slow_at_first, &err), ERR_DEVICE_FAILED);
    double seconds;
    ck_assert_msg(sscanf(err.message, "no answer for %lf s, where", &seconds) == 1, "%s",
                  err.message);
    ck_assert_double_ge(seconds, 0.05 + 4 * 0.02);
    crew_stop(scene.crew);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("crew");
    TCase *tcase = checks_case(suite, "crew", 30);
    tcase_add_test(tcase, runs_on_all);
    tcase_add_test(tcase, the_cause_is_reported);
    tcase_add_exit_test(tcase, who_hangs_is_named_and_ends_all, HUNG);
    tcase_add_test(tcase, who_stalls_together_comes_back);
    tcase_add_test(tcase, patience_follows_the_longest);
    return checks_run(suite);
}
