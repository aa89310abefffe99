/* progress.c: see progress.h. */
#include "engine/parallel/progress.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "engine/base/bell.h"

struct counter {
    _Alignas(64) atomic_int n; /* a cache line each: they are watched from other cores */
};

struct progress {
    int n_counters;
    struct counter *counters;
    atomic_bool aborted;
    struct bell bell; /* a counter or aborted changed */
};

int progress_new(int counters, struct progress **ret_progress, struct err *err)
{
    struct progress *progress = calloc(1, sizeof *progress);
    struct counter *list = aligned_alloc(_Alignof(struct counter), (size_t)counters * sizeof *list);
    if (progress == NULL || list == NULL) {
        free(progress);
        free(list);
        return err_set(err, ERR_NOMEM, "out of memory");
    }
    progress->n_counters = counters;
    progress->counters = list;
    bell_init(&progress->bell);
    progress_reset(progress);
    *ret_progress = progress;
    return 0;
}

void progress_free(struct progress *progress)
{
    if (progress == NULL)
        return;
    bell_done(&progress->bell);
    free(progress->counters);
    free(progress);
}

void progress_reset(struct progress *progress)
{
    for (int i = 0; i < progress->n_counters; i++)
        atomic_store(&progress->counters[i].n, 0);
}

void progress_count(struct progress *progress, int counter)
{
    atomic_fetch_add(&progress->counters[counter].n, 1);
    bell_ring(&progress->bell);
}

void progress_abort(struct progress *progress)
{
    atomic_store(&progress->aborted, true);
    bell_ring(&progress->bell);
}

struct awaited {
    struct progress *progress;
    int counter, least;
};

static bool has_come(const struct awaited *awaited)
{
    return atomic_load(&awaited->progress->counters[awaited->counter].n) >= awaited->least;
}

static bool is_over(const void *context)
{
    const struct awaited *awaited = context;
    return has_come(awaited) || atomic_load(&awaited->progress->aborted);
}

int progress_wait(struct progress *progress, int counter, int least, struct err *err)
{
    const struct awaited awaited = {progress, counter, least};
    bell_wait(&progress->bell, is_over, &awaited);
    if (!has_come(&awaited))
        return err_set(err, ERR_CANCELLED, "another stage failed");
    return 0;
}
