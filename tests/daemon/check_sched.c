/* The queue's decisions and device sets, by value, and in a simulation with invariants. */
#include <stdlib.h>
#include <string.h>

#include "daemon/sched.h"
#include "tests/lib/checks.h"

static struct devlist list(const char *text)
{
    struct devlist list;
    struct err err = ERR_INIT;
    ck_assert_msg(devlist_parse(text, &list, &err) == 0, "%s: %s", text, err.message);
    return list;
}

static const char *text(const struct devlist *list)
{
    static char buf[LIMIT_DEVICES * 32];
    return devlist_format(list, buf, sizeof buf);
}

START_TEST(list_is_read_and_written)
{
    struct devlist l = list("cpu:0,cuda:12,cpu");
    ck_assert_uint_eq(l.n, 3);
    ck_assert_str_eq(text(&l), "cpu:0,cuda:12,cpu");
    l = list("");
    ck_assert_uint_eq(l.n, 0);
    struct err err = ERR_INIT;
    ck_assert_int_eq(devlist_parse("cpu:0,,cpu:1", &l, &err), ERR_DEVICE_UNKNOWN);
    ck_assert_int_eq(devlist_parse("gpu:0", &l, &err), ERR_DEVICE_UNKNOWN);
}
END_TEST

START_TEST(pick_keeps_the_order_and_spares_named_devices)
{
    static const struct {
        const char *want;
        devset free;
        const char *got; /* NULL: does not fit */
        size_t available;
    } cases[] = {
        {"cpu,cpu", 0xf, "cpu:0,cpu:1", 2},
        {"cpu,cpu:0", 0xf, "cpu:1,cpu:0", 2},
        {"cpu:3,cpu:1", 0xf, "cpu:3,cpu:1", 2},
        {"cpu,cpu", 0xa, "cpu:1,cpu:3", 2},
        {"cpu,cpu,cpu", 0xa, NULL, 2},
        {"cpu:0,cpu:1", 0xa, NULL, 1},
        {"cuda", 0xf, NULL, 0},
        {"cuda,cuda:0", 0x30, "cuda:1,cuda:0", 2},
    };
    struct devlist devices = list("cpu:0,cpu:1,cpu:2,cpu:3,cuda:0,cuda:1");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct devlist want = list(cases[i].want), got;
        bool fits = devset_pick(&devices, &want, cases[i].free, &got);
        ck_assert_msg(fits == (cases[i].got != NULL), "%s", cases[i].want);
        if (fits)
            ck_assert_str_eq(text(&got), cases[i].got);
        ck_assert_uint_eq(devset_available(&devices, &want, cases[i].free), cases[i].available);
    }
}
END_TEST

START_TEST(want_of_a_document)
{
    struct devlist devices = list("cpu:0,cpu:1,cpu:2"), want;
    struct err err = ERR_INIT;
    struct job_parallel count = {.mode = PARALLEL_REPLICATE, .n_devices = 2};
    ck_assert_int_eq(devlist_want(&count, &devices, &want, &err), 0);
    ck_assert_str_eq(text(&want), "cpu,cpu");
    struct job_parallel all = {.mode = PARALLEL_REPLICATE, .n_devices = 0};
    ck_assert_int_eq(devlist_want(&all, &devices, &want, &err), 0);
    ck_assert_str_eq(text(&want), "cpu,cpu,cpu");
    char *names[] = {"cpu:2", "cpu"};
    struct job_parallel named = {.mode = PARALLEL_REPLICATE, .n_devices = 2, .devices = names};
    ck_assert_int_eq(devlist_want(&named, &devices, &want, &err), 0);
    ck_assert_str_eq(text(&want), "cpu:2,cpu");
    count.n_devices = 4;
    ck_assert_int_eq(devlist_want(&count, &devices, &want, &err), ERR_DEVICE_UNKNOWN);
    ck_assert_msg(strstr(err.message, "cpu:0 to cpu:2") != NULL, "%s", err.message);
}
END_TEST

START_TEST(sixty_four_devices_are_one_word)
{
    struct devlist devices = {.n = LIMIT_DEVICES};
    for (int i = 0; i < LIMIT_DEVICES; i++)
        devices.id[i] = (struct device_id){DEVICE_CPU, i};
    ck_assert(devset_all(&devices) == ~(devset)0);
    ck_assert_uint_eq(devset_count(devset_of(&devices, &devices)), LIMIT_DEVICES);
}
END_TEST

START_TEST(first_come_first_served_with_reasons)
{
    struct devlist devices = list("cpu:0,cpu:1,cpu:2,cpu:3");
    struct devlist two = list("cpu,cpu"), four = list("cpu,cpu,cpu,cpu"), one = list("cpu");
    char buf[64];
    struct sched_job queue[] = {
        {.id = 10, .want = &two}, {.id = 17, .want = &four}, {.id = 18, .want = &one}};
    sched_decide(&devices, 0xf, queue, 3);
    ck_assert(queue[0].start && !queue[1].start && !queue[2].start);
    ck_assert_uint_eq(queue[0].got, 0x3);
    ck_assert_str_eq(sched_reason(&queue[1].why, &four, buf), "waiting for 2 of 4 devices");
    ck_assert_str_eq(sched_reason(&queue[2].why, &one, buf), "behind job 17");
    struct sched_job alone[] = {{.id = 1, .want = &one}};
    sched_decide(&devices, 0, alone, 1);
    ck_assert_str_eq(sched_reason(&alone[0].why, &one, buf), "waiting for 1 of 1 device");
}
END_TEST

START_TEST(priority_and_dependencies)
{
    struct devlist devices = list("cpu:0,cpu:1");
    struct devlist two = list("cpu,cpu"), one = list("cpu");
    char buf[64];
    struct sched_job queue[] = {{.id = 1, .want = &one, .priority = -1},
                                {.id = 2, .want = &two},
                                {.id = 3, .want = &one},
                                {.id = 4, .want = &one, .priority = 5, .after = 2},
                                {.id = 5, .want = &one, .priority = 1}};
    static const int64_t order[] = {4, 5, 2, 3, 1};
    static const char *const reasons[] = {"after job 2", NULL, "waiting for 1 of 2 devices",
                                          "behind job 2", "behind job 2 (priority)"};
    sched_decide(&devices, 0x3, queue, 5);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_eq(queue[i].id, order[i]);
        ck_assert_int_eq(queue[i].start, reasons[i] == NULL);
        if (reasons[i] != NULL)
            ck_assert_str_eq(sched_reason(&queue[i].why, queue[i].want, buf), reasons[i]);
    }
}
END_TEST

/* ── Simulation: jobs come and end at random ── */

enum { SIM_JOBS = 400, SIM_DEVICES = 8 };

struct sim_job {
    struct devlist want;
    enum { ABSENT, QUEUED, RUNNING, OVER } state;
    devset held;
    int starts;
};

struct sim {
    struct devlist devices;
    struct sim_job job[SIM_JOBS];
    int n;
    devset assigned;
    unsigned seed;
};

static void sim_submit(struct sim *sim)
{
    struct sim_job *job = &sim->job[sim->n++];
    size_t n = (size_t)rand_r(&sim->seed) % SIM_DEVICES + 1;
    job->state = QUEUED;
    job->want.n = n;
    for (size_t i = 0; i < n; i++) /* some by name, all different */
        job->want.id[i] = (struct device_id){DEVICE_CPU, rand_r(&sim->seed) % 4 == 0 ? (int)i : -1};
}

static void sim_end_one(struct sim *sim)
{
    int at = rand_r(&sim->seed) % (sim->n > 0 ? sim->n : 1);
    for (int i = 0; i < sim->n; i++) {
        struct sim_job *job = &sim->job[(at + i) % sim->n];
        if (job->state != RUNNING)
            continue;
        sim->assigned &= ~job->held;
        job->state = OVER;
        return;
    }
}

static void sim_schedule(struct sim *sim)
{
    struct sched_job queue[SIM_JOBS];
    int who[SIM_JOBS];
    size_t n = 0;
    bool waited = false;
    for (int i = 0; i < sim->n; i++)
        if (sim->job[i].state == QUEUED) {
            queue[n] = (struct sched_job){.id = i + 1, .want = &sim->job[i].want};
            who[n++] = i;
        }
    sched_decide(&sim->devices, devset_all(&sim->devices) & ~sim->assigned, queue, n);
    for (size_t k = 0; k < n; k++) {
        struct sim_job *job = &sim->job[who[k]];
        waited |= !queue[k].start;
        ck_assert_msg(queue[k].start == !waited, "a job overtook another");
        if (!queue[k].start) {
            ck_assert(k == 0 || queue[k - 1].start || queue[k].why.behind != 0);
            continue;
        }
        devset got = queue[k].got;
        struct devlist ordered;
        ck_assert(devset_pick(&sim->devices, &job->want, got, &ordered));
        ck_assert_uint_eq(devset_count(got), job->want.n);
        ck_assert_msg((got & sim->assigned) == 0, "a device is in two jobs");
        for (size_t i = 0; i < job->want.n; i++)
            if (job->want.id[i].index >= 0)
                ck_assert_int_eq(ordered.id[i].index, job->want.id[i].index);
        sim->assigned |= got;
        job->held = got;
        job->state = RUNNING;
        job->starts++;
    }
}

static void sim_check(const struct sim *sim)
{
    devset held = 0;
    bool queued = false;
    for (int i = 0; i < sim->n; i++) {
        if (sim->job[i].state == RUNNING)
            held |= sim->job[i].held;
        queued |= sim->job[i].state == QUEUED;
    }
    ck_assert(held == sim->assigned);
    ck_assert_msg(!queued || sim->assigned != 0, "jobs wait on an idle machine");
}

START_TEST(simulation)
{
    static struct sim sim;
    sim = (struct sim){.devices = list("cpu:0,cpu:1,cpu:2,cpu:3,cpu:4,cpu:5,cpu:6,cpu:7"),
                       .seed = (unsigned)_i + 1};
    bool busy = true;
    while (busy) {
        if (sim.n < SIM_JOBS && rand_r(&sim.seed) % 2 == 0)
            sim_submit(&sim);
        else
            sim_end_one(&sim);
        sim_schedule(&sim);
        sim_check(&sim);
        busy = sim.n < SIM_JOBS || sim.assigned != 0;
    }
    for (int i = 0; i < SIM_JOBS; i++) {
        ck_assert_int_eq(sim.job[i].state, OVER);
        ck_assert_int_eq(sim.job[i].starts, 1);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched");
    TCase *tcase = checks_case(suite, "devset", 0);
    tcase_add_test(tcase, list_is_read_and_written);
    tcase_add_test(tcase, pick_keeps_the_order_and_spares_named_devices);
    tcase_add_test(tcase, want_of_a_document);
    tcase_add_test(tcase, sixty_four_devices_are_one_word);
    tcase = checks_case(suite, "sched", 0);
    tcase_add_test(tcase, first_come_first_served_with_reasons);
    tcase_add_test(tcase, priority_and_dependencies);
    tcase_add_loop_test(tcase, simulation, 0, 20);
    return checks_run(suite);
}
