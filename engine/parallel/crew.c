/* crew.c: see crew.h. */
#include "engine/parallel/crew.h"

#include <stdlib.h>

#include "engine/base/thread.h"

/* A device's thread, and what it is to do next. */
struct hand {
    struct crew *crew;
    int device;
    struct thread *thread;
    crew_task task;
    struct err err;
};

struct crew {
    struct crew_config config;
    struct hand hands[];
};

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

int crew_run(struct crew *crew, int first, int n, crew_task task, struct err *err)
{
    struct hand *hands = crew->hands + first;
    for (int i = 0; i < n; i++) {
        hands[i].task = task;
        hands[i].err = (struct err)ERR_INIT;
        thread_submit(hands[i].thread, do_task, &hands[i]);
    }
    for (int i = 0; i < n; i++)
        thread_wait(hands[i].thread);
    return first_error(hands, n, err);
}

int crew_start(const struct crew_config *config, struct crew **ret_crew, struct err *err)
{
    struct crew *crew = calloc(1, sizeof *crew + (size_t)config->n_devices * sizeof crew->hands[0]);
    if (crew == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    crew->config = *config;
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
