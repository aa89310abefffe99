/* The scheduler in simulated time: random events with invariants after each, and what users may
 * rely on: nobody starves, shares become equal, one user's many jobs do not delay another's first.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/sched.h"
#include "daemon/share.h"
#include "tests/lib/checks.h"

enum { USERS = 20, JOBS_MAX = 60000, QUEUE_MAX = 120, HALF_LIFE_S = 3600 };

struct sim_job {
    size_t user;
    int64_t priority, after; /* an id, 0: none */
    struct devwish wish;
    double limit_s, run_s; /* INFINITY: none; how long it runs if nothing happens */
    enum { QUEUED, RUNNING, OVER } state;
    int starts;
    double start_s;
    devset held;
};

struct sim {
    struct devlist devices;
    devset drained;
    size_t user_devices, n_users;
    struct sim_job job[JOBS_MAX];
    size_t n, first; /* all before `first` are over */
    size_t n_queued;
    struct sched_user user[USERS];
    double amount[USERS], at_s[USERS], had[USERS];
    double now_s;
    unsigned seed;
    struct sched_head head;
    long looked_twice;
};

static unsigned draw(struct sim *sim, unsigned n)
{
    return (unsigned)rand_r(&sim->seed) % n;
}

static struct sim *sim_new(size_t n_devices, size_t n_users, unsigned seed)
{
    struct sim *sim = calloc(1, sizeof *sim);
    ck_assert_ptr_nonnull(sim);
    sim->seed = seed;
    sim->n_users = n_users;
    sim->devices.n = n_devices;
    for (size_t i = 0; i < n_devices; i++)
        sim->devices.id[i] = (struct device_id){DEVICE_CPU, (int)i};
    return sim;
}

static int64_t submit(struct sim *sim, size_t user, unsigned n, double limit_s, double run_s)
{
    ck_assert_uint_lt(sim->n, JOBS_MAX);
    struct sim_job *job = &sim->job[sim->n++];
    *job = (struct sim_job){.user = user, .limit_s = limit_s, .run_s = run_s};
    job->wish.any[DEVICE_CPU] = (uint8_t)n;
    sim->n_queued++;
    return (int64_t)sim->n;
}

/* ── What the scheduler is shown ── */

struct view {
    struct sched_box box;
    struct sched_run runs[LIMIT_DEVICES];
    struct sched_job queue[JOBS_MAX];
    size_t n;
};
static struct view view;

static void look(struct sim *sim)
{
    devset held = 0;
    view.n = 0;
    view.box = (struct sched_box){.devices = &sim->devices,
                                  .drained = sim->drained,
                                  .runs = view.runs,
                                  .now_s = sim->now_s,
                                  .user_devices = sim->user_devices};
    for (size_t u = 0; u < sim->n_users; u++)
        sim->user[u] = (struct sched_user){
            .uid = (uid_t)u,
            .usage = share_decay(sim->amount[u], sim->now_s - sim->at_s[u], HALF_LIFE_S)};
    for (size_t i = sim->first; i < sim->n; i++) {
        struct sim_job *job = &sim->job[i];
        if (job->state == RUNNING) {
            struct sched_user *user = &sim->user[job->user];
            ck_assert_msg((held & job->held) == 0, "a device is in two jobs");
            held |= job->held;
            user->devices += devset_count(job->held);
            user->usage +=
                share_run((double)devset_count(job->held), sim->now_s - job->start_s, HALF_LIFE_S);
            view.runs[view.box.n_runs++] =
                (struct sched_run){job->held, job->start_s + job->limit_s};
        } else if (job->state == QUEUED) {
            bool waits = job->after != 0 && sim->job[job->after - 1].state != OVER;
            view.queue[view.n++] = (struct sched_job){.id = (int64_t)i + 1,
                                                      .user = job->user,
                                                      .priority = job->priority,
                                                      .after = waits ? job->after : 0,
                                                      .wish = job->wish,
                                                      .limit_s = job->limit_s};
        }
    }
    view.box.free = devset_all(&sim->devices) & ~held & ~sim->drained;
}

static void decide(struct sim *sim)
{
    struct err err = ERR_INIT;
    ck_assert_int_eq(
        sched_decide(&view.box, sim->user, sim->n_users, view.queue, view.n, &sim->head, &err), 0);
}

/* ── Invariants ── */

static void check_start(const struct sim *sim, const struct sched_job *decision)
{
    const struct sim_job *job = &sim->job[decision->id - 1];
    ck_assert_msg(job->state == QUEUED && job->starts == 0, "a job is run twice");
    ck_assert_uint_eq(devset_count(decision->got), devwish_count(&job->wish));
    ck_assert((decision->got & job->wish.named) == job->wish.named);
    ck_assert_msg((decision->got & ~view.box.free) == 0, "a device that is not free is given");
    ck_assert(decision->after == 0);
}

static const struct sched_job *find_queued(int64_t id)
{
    for (size_t i = 0; i < view.n; i++)
        if (view.queue[i].id == id)
            return &view.queue[i];
    ck_abort_msg("job %d is named as a reason, and is not queued", (int)id);
}

/* `free`: what is left after the pass. */
static void check_reason(const struct sim *sim, const struct sched_job *job, devset free)
{
    const struct sched_why *why = &job->why;
    const struct sched_user *user = &sim->user[job->user];
    devset usable = devset_all(&sim->devices) & ~sim->drained;
    size_t all = devwish_count(&job->wish);
    if (why->cause == SCHED_AFTER) {
        ck_assert(why->other == job->after && job->after != 0);
    } else if (why->cause == SCHED_USER_LIMIT) {
        ck_assert_uint_gt(user->devices + all, sim->user_devices);
    } else if (why->cause == SCHED_DRAINED) {
        ck_assert_uint_gt(devwish_missing(&sim->devices, &job->wish, usable), 0);
    } else if (why->cause == SCHED_DEVICES) {
        ck_assert(job->id == sim->head.id && why->some > 0 && why->all == all);
        ck_assert_uint_ge(devwish_missing(&sim->devices, &job->wish, free), why->some);
    } else {
        const struct sched_job *other = find_queued(why->other);
        ck_assert(!other->start && other->priority >= job->priority);
        ck_assert((other->priority > job->priority) == (why->cause == SCHED_PRIORITY) ||
                  other->id == user->blocked);
        if (why->cause == SCHED_SHARE)
            ck_assert(other->id > job->id && sim->user[other->user].usage <= user->usage);
    }
}

/* Starting what was decided changes nothing for the head, and leaves nothing to start. */
static void look_again(struct sim *sim, struct sched_head before)
{
    look(sim);
    decide(sim);
    if (sim->head.id != before.id)
        return; /* of two users with equal use the one goes first that holds fewer devices */
    sim->looked_twice++;
    ck_assert_msg(sim->head.start_s <= before.start_s + 1e-6, "the head is delayed");
    for (size_t i = 0; i < view.n; i++)
        ck_assert(!view.queue[i].start);
}

static void schedule(struct sim *sim)
{
    look(sim);
    decide(sim);
    devset free = view.box.free;
    bool any = false;
    for (size_t i = 0; i < view.n; i++)
        if (view.queue[i].start) {
            check_start(sim, &view.queue[i]);
            ck_assert_msg((view.queue[i].got & ~free) == 0, "a device is given twice");
            free &= ~view.queue[i].got;
            any = true;
        }
    for (size_t i = 0; i < view.n; i++)
        if (!view.queue[i].start)
            check_reason(sim, &view.queue[i], free);
    ck_assert_msg(sim->head.id == 0 || free != view.box.free || view.box.n_runs > 0,
                  "a job waits on an idle machine");
    for (size_t i = 0; i < view.n; i++) {
        struct sim_job *job = &sim->job[view.queue[i].id - 1];
        if (!view.queue[i].start)
            continue;
        job->state = RUNNING;
        job->starts++;
        job->start_s = sim->now_s;
        job->held = view.queue[i].got;
        sim->n_queued--;
    }
    if (any)
        look_again(sim, sim->head);
}

/* ── Events ── */

static void end(struct sim *sim, struct sim_job *job)
{
    if (job->state == RUNNING) {
        double held = (double)devset_count(job->held), ran_s = sim->now_s - job->start_s;
        size_t u = job->user;
        sim->amount[u] = share_decay(sim->amount[u], sim->now_s - sim->at_s[u], HALF_LIFE_S) +
                         share_run(held, ran_s, HALF_LIFE_S);
        sim->at_s[u] = sim->now_s;
        sim->had[u] += held * ran_s;
    } else {
        sim->n_queued--;
    }
    job->state = OVER;
    while (sim->first < sim->n && sim->job[sim->first].state == OVER)
        sim->first++;
}

static double end_of(const struct sim_job *job)
{
    return job->start_s + fmin(job->run_s, job->limit_s);
}

/* Lets time pass, with the ends that fall into it. */
static void pass_time(struct sim *sim, double until_s)
{
    for (;;) {
        struct sim_job *next = NULL;
        for (size_t i = sim->first; i < sim->n; i++)
            if (sim->job[i].state == RUNNING &&
                (next == NULL || end_of(&sim->job[i]) < end_of(next)))
                next = &sim->job[i];
        if (next == NULL || end_of(next) > until_s)
            break;
        sim->now_s = end_of(next);
        end(sim, next);
        schedule(sim);
    }
    sim->now_s = until_s;
}

static void submit_random(struct sim *sim)
{
    unsigned n = 1 + draw(sim, draw(sim, 4) == 0 ? (unsigned)sim->devices.n : 2);
    n = n < sim->devices.n ? n : (unsigned)sim->devices.n;
    if (sim->user_devices > 0 && n > sim->user_devices)
        n = (unsigned)sim->user_devices;
    double limit_s = draw(sim, 3) == 0 ? INFINITY : 1.0 + draw(sim, 200);
    int64_t id = submit(sim, draw(sim, (unsigned)sim->n_users), n, limit_s, 1 + draw(sim, 200));
    struct sim_job *job = &sim->job[id - 1];
    job->priority = draw(sim, 10) == 0 ? (int64_t)draw(sim, 3) - 1 : 0;
    if (draw(sim, 10) == 0 && id > 1)
        job->after = id - 1 - draw(sim, id > 10 ? 10 : (unsigned)id - 1);
    for (unsigned i = draw(sim, 8) == 0 ? draw(sim, n) : 0; i > 0; i--) { /* some by name */
        devset device = (devset)1 << draw(sim, (unsigned)sim->devices.n);
        if ((job->wish.named & device) == 0) {
            job->wish.named |= device;
            job->wish.any[DEVICE_CPU]--;
        }
    }
}

static void end_random(struct sim *sim)
{
    size_t live = sim->n - sim->first;
    if (live == 0)
        return;
    struct sim_job *job = &sim->job[sim->first + draw(sim, (unsigned)live)];
    if (job->state != OVER)
        end(sim, job); /* cancelled, or crashed */
}

static void run_events(struct sim *sim, long events)
{
    for (long i = 0; i < events; i++) {
        unsigned what = draw(sim, 20);
        if (what < 12 && sim->n_queued < QUEUE_MAX && sim->n < JOBS_MAX)
            submit_random(sim);
        else if (what < 14)
            end_random(sim);
        else if (what == 14)
            sim->drained ^= (devset)1 << draw(sim, (unsigned)sim->devices.n);
        else
            pass_time(sim, sim->now_s + draw(sim, 200));
        schedule(sim);
    }
}

/* Twenty machines of 1 to 16 devices. */
START_TEST(random_events)
{
    struct sim *sim = sim_new(1 + (size_t)_i * 7 % 16, USERS, (unsigned)_i + 1);
    sim->user_devices = _i % 3 == 0 ? 1 + (size_t)_i % 4 : 0;
    run_events(sim, 2000);
    sim->drained = 0;
    schedule(sim);
    for (int i = 0; i < 100000 && sim->first < sim->n; i++)
        pass_time(sim, sim->now_s + 100);
    ck_assert_msg(sim->first == sim->n, "job %zu never ends", sim->first + 1);
    for (size_t i = 0; i < sim->n; i++)
        ck_assert(sim->job[i].state == OVER && sim->job[i].starts <= 1);
    ck_assert_int_gt(sim->looked_twice, 100);
    free(sim);
}
END_TEST

/* One-device jobs without end, and a job that wants all devices: of another user, of the same one,
 * and of one of two, where the other one's turn may come first and move the promise. */
START_TEST(a_wide_job_starts_when_it_was_promised)
{
    struct sim *sim = sim_new(8, 3, 7);
    unsigned streams = _i == 1 ? 1 : 2; /* users */
    int64_t wide = 0;
    double promised_s = 0;
    for (int i = 0; i < 2000 && (wide == 0 || sim->job[wide - 1].state == QUEUED); i++) {
        while (sim->n_queued < 30) {
            double run_s = 1 + draw(sim, 100);
            submit(sim, draw(sim, streams), 1, run_s + draw(sim, 50), run_s);
        }
        if (i == 100)
            wide = submit(sim, _i == 0 ? 2 : 0, 8, 60, 60);
        schedule(sim);
        if (wide != 0 && promised_s == 0 && sim->head.id == wide)
            promised_s = sim->head.start_s;
        pass_time(sim, sim->now_s + 10);
    }
    ck_assert_double_gt(promised_s, 0);
    ck_assert_msg(sim->job[wide - 1].starts == 1, "the wide job starves");
    if (_i < 2)
        ck_assert_double_le(sim->job[wide - 1].start_s, promised_s + 1e-6);
    free(sim);
}
END_TEST

/* Everybody has eight jobs waiting. */
static void refill(struct sim *sim)
{
    int waiting[USERS] = {0};
    for (size_t i = sim->first; i < sim->n; i++)
        waiting[sim->job[i].user] += sim->job[i].state == QUEUED;
    for (size_t u = 0; u < sim->n_users; u++)
        for (int k = waiting[u]; k < 8; k++)
            submit(sim, u, 1 + draw(sim, 2), 600, 30 + draw(sim, 90));
}

/* Four users who always have work; one of them has had the machine alone for long. */
START_TEST(shares_become_equal)
{
    struct sim *sim = sim_new(8, 4, 3);
    sim->amount[0] = 8.0 * HALF_LIFE_S;
    double before[4] = {0};
    for (int hour = 0; hour < 60; hour++) {
        for (int step = 0; step < 60; step++) {
            refill(sim);
            schedule(sim);
            pass_time(sim, sim->now_s + 60);
        }
        if (hour == 29)
            memcpy(before, sim->had, sizeof before);
    }
    double mean = 0;
    for (size_t u = 0; u < 4; u++)
        mean += (sim->had[u] - before[u]) / 4;
    ck_assert_double_gt(mean, 0.9 * 8 * 3600 * 30 / 4); /* and the machine is busy */
    for (size_t u = 0; u < 4; u++)
        ck_assert_double_eq_tol(sim->had[u] - before[u], mean, 0.03 * mean);
    free(sim);
}
END_TEST

START_TEST(a_thousand_jobs_do_not_delay_anothers_first)
{
    struct sim *sim = sim_new(4, 2, 5);
    for (int i = 0; i < 1000; i++)
        submit(sim, 0, 1, INFINITY, 50 + draw(sim, 10));
    schedule(sim);
    pass_time(sim, 100);
    int64_t first = submit(sim, 1, 1, INFINITY, 50);
    schedule(sim);
    double next_end_s = INFINITY;
    for (size_t i = 0; i < sim->n; i++)
        if (sim->job[i].state == RUNNING)
            next_end_s = fmin(next_end_s, end_of(&sim->job[i]));
    pass_time(sim, 200);
    ck_assert_double_eq(sim->job[first - 1].start_s, next_end_s);
    free(sim);
}
END_TEST

/* A pass over 100,000 jobs of 20 users for 64 devices, of which three are free and too few. The
 * bound is loose: other work runs beside the tests. */
START_TEST(a_pass_over_a_long_queue)
{
    enum { N = 100000 };
    struct devlist devices = {.n = LIMIT_DEVICES};
    struct sched_job *queue = calloc(N, sizeof *queue);
    struct sched_user users[USERS] = {0};
    struct sched_run runs[LIMIT_DEVICES];
    struct sched_head head;
    struct err err = ERR_INIT;
    double best_s = INFINITY;
    for (int i = 0; i < LIMIT_DEVICES; i++) {
        devices.id[i] = (struct device_id){DEVICE_CPU, i};
        runs[i] = (struct sched_run){(devset)8 << (i % 61), 1000 + i};
    }
    struct sched_box box = {
        .devices = &devices, .free = 0x7, .runs = runs, .n_runs = 61, .now_s = 1};
    for (size_t i = 0; i < N; i++) {
        queue[i] = (struct sched_job){.id = (int64_t)i + 1,
                                      .user = i * 7 % USERS,
                                      .limit_s = 1e6,
                                      .priority = -(i % 50 == 0)};
        queue[i].wish.any[DEVICE_CPU] = (uint8_t)(4 + i % 3);
    }
    for (int k = 0; k < 5; k++) {
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        ck_assert_int_eq(sched_decide(&box, users, USERS, queue, N, &head, &err), 0);
        clock_gettime(CLOCK_MONOTONIC, &b);
        best_s =
            fmin(best_s, (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9);
    }
    printf("# a pass over %d jobs: %.2f ms\n", N, best_s * 1e3);
    ck_assert_int_eq(head.id, 2);
    ck_assert_double_lt(best_s, 1);
    free(queue);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sched_sim");
    TCase *tcase = checks_case(suite, "sim", 120);
    tcase_add_loop_test(tcase, random_events, 0, 20);
    tcase_add_loop_test(tcase, a_wide_job_starts_when_it_was_promised, 0, 3);
    tcase_add_test(tcase, shares_become_equal);
    tcase_add_test(tcase, a_thousand_jobs_do_not_delay_anothers_first);
    tcase_add_test(tcase, a_pass_over_a_long_queue);
    return checks_run(suite);
}
