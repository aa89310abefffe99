/* crew.c: see crew.h. */
#include "engine/parallel/crew.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/base/thread.h"

/* A device's thread, and what it is to do next. */
struct hand {
    struct crew *crew;
    int device;
    struct thread *thread;
    crew_task task;
    struct err err;
};

enum { MAX_TASKS = 8 };

struct timed {
    crew_task task;
    int64_t longest; /* slices; -1: never done */
};

struct crew {
    struct crew_config config;
    struct timed timed[MAX_TASKS];
    struct hand hands[];
};

static const struct crew_patience usual_patience = {
    .slice_ms = 1000, .first = 3600, .after = 60, .times = 20};

static void do_task(void *context)
{
    struct hand *hand = context;
    const struct crew_config *config = &hand->crew->config;
    if (hand->task(config->context, hand->device, &hand->err) != 0)
        config->abort(config->context);
}

/* The error that made the others stop. */
static int first_error(struct hand *hands, int n, struct err *err)
{
    const struct hand *cause = NULL;
    for (int i = 0; i < n; i++) {
        const struct hand *hand = &hands[i];
        if (hand->err.code == 0)
            continue;
        if (cause == NULL || (cause->err.code == ERR_CANCELLED && hand->err.code != ERR_CANCELLED))
            cause = hand;
    }
    if (cause == NULL)
        return 0;
    const struct crew_config *config = &cause->crew->config;
    *err = cause->err;
    return config->place(config->context, cause->device, err);
}

static struct timed *timed_of(struct crew *crew, crew_task task)
{
    int i = 0;
    while (crew->timed[i].task != NULL && crew->timed[i].task != task)
        i++;
    assert(i < MAX_TASKS - 1);
    if (crew->timed[i].task == NULL)
        crew->timed[i] = (struct timed){task, -1};
    return &crew->timed[i];
}

/* Waits until all have done, or for `limit` slices. Returns how many passed. */
static int64_t wait_all(struct hand *hands, int n, int slice_ms, int64_t limit)
{
    int64_t waited = 0;
    for (int i = 0; i < n && waited < limit;) {
        bool done = thread_wait_for(hands[i].thread, slice_ms);
        i += done;
        waited += !done;
    }
    return waited;
}

static int late(const struct crew *crew, int64_t slices, int64_t longest, struct err *err)
{
    double seconds = (double)crew->config.patience->slice_ms / 1000;
    if (longest < 0)
        return err_set(err, ERR_DEVICE_FAILED, "no answer for %.6g s", (double)slices * seconds);
    return err_set(err, ERR_DEVICE_FAILED,
                   "no answer for %.6g s, where the longest so far took less than %.6g s",
                   (double)slices * seconds, (double)(longest + 1) * seconds);
}

static void end_process(void *context, const struct err *err)
{
    (void)context;
    fprintf(stderr, "%s\n", err->message);
    _exit(EXIT_FAILURE);
}

/* Who does not even come back after an abort is what all wait for. */
static int give_up(struct crew *crew, struct hand *hands, int n, int64_t waited, int64_t longest,
                   struct err *err)
{
    const struct crew_config *config = &crew->config;
    config->abort(config->context);
    wait_all(hands, n, config->patience->slice_ms, config->patience->after);
    for (int i = 0; i < n; i++)
        if (!thread_wait_for(hands[i].thread, 0)) {
            late(crew, waited, longest, err);
            config->place(config->context, hands[i].device, err);
            config->hang(config->hang_context, err);
        }
    int rc = first_error(hands, n, err);
    return rc != 0 && rc != ERR_CANCELLED ? rc : late(crew, waited, longest, err);
}

int crew_run(struct crew *crew, int first, int n, crew_task task, struct err *err)
{
    struct hand *hands = crew->hands + first;
    for (int i = 0; i < n; i++) {
        hands[i].task = task;
        hands[i].err = (struct err)ERR_INIT;
        thread_submit(hands[i].thread, do_task, &hands[i]);
    }
    const struct crew_patience *patience = crew->config.patience;
    struct timed *timed = timed_of(crew, task);
    int64_t limit =
        timed->longest < 0 ? patience->first : patience->after + patience->times * timed->longest;
    int64_t waited = wait_all(hands, n, patience->slice_ms, limit);
    if (waited >= limit)
        return give_up(crew, hands, n, waited, timed->longest, err);
    timed->longest = waited > timed->longest ? waited : timed->longest;
    return first_error(hands, n, err);
}

int crew_start(const struct crew_config *config, struct crew **ret_crew, struct err *err)
{
    struct crew *crew = calloc(1, sizeof *crew + (size_t)config->n_devices * sizeof crew->hands[0]);
    if (crew == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    crew->config = *config;
    if (config->patience == NULL)
        crew->config.patience = &usual_patience;
    if (config->hang == NULL)
        crew->config.hang = end_process;
    for (int i = 0; i < config->n_devices; i++) {
        const struct device_config *device = &config->devices[i];
        struct hand *hand = &crew->hands[i];
        hand->crew = crew;
        hand->device = i;
        int rc = thread_start(device->name, device->cores, device->n_cores, device->n_threads,
                              &hand->thread, err);
        if (rc != 0) {
            crew_stop(crew);
            return config->place(config->context, i, err);
        }
    }
    *ret_crew = crew;
    return 0;
}

void crew_stop(struct crew *crew)
{
    if (crew == NULL)
        return;
    for (int i = 0; i < crew->config.n_devices; i++)
        thread_stop(crew->hands[i].thread);
    free(crew);
}
