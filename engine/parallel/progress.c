/* progress.c: see progress.h. A wait spins briefly, since stages in balance are nearly together,
 * then sleeps: CPU devices may share a core with the very stage that they wait for. */
#include "engine/parallel/progress.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

enum { SPINS = 1000 }; /* some microseconds */

struct counter {
    _Alignas(64) atomic_int n; /* a cache line each: they are watched from other cores */
};

struct progress {
    int n_counters;
    struct counter *counters;
    atomic_bool aborted;
    pthread_mutex_t mutex;  /* for sleeping only */
    pthread_cond_t changed; /* a counter or aborted did */
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
    pthread_mutex_init(&progress->mutex, NULL);
    pthread_cond_init(&progress->changed, NULL);
    progress_reset(progress);
    *ret_progress = progress;
    return 0;
}

void progress_free(struct progress *progress)
{
    if (progress == NULL)
        return;
    pthread_cond_destroy(&progress->changed);
    pthread_mutex_destroy(&progress->mutex);
    free(progress->counters);
    free(progress);
}

void progress_reset(struct progress *progress)
{
    for (int i = 0; i < progress->n_counters; i++)
        atomic_store(&progress->counters[i].n, 0);
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void wake_all(struct progress *progress)
{
    pthread_mutex_lock(&progress->mutex);
    pthread_cond_broadcast(&progress->changed);
    pthread_mutex_unlock(&progress->mutex);
}

void progress_count(struct progress *progress, int counter)
{
    atomic_fetch_add(&progress->counters[counter].n, 1);
    wake_all(progress);
}

void progress_abort(struct progress *progress)
{
    atomic_store(&progress->aborted, true);
    wake_all(progress);
}

static bool has_come(struct progress *progress, int counter, int least)
{
    return atomic_load(&progress->counters[counter].n) >= least;
}

static bool wait_is_over(struct progress *progress, int counter, int least)
{
    return has_come(progress, counter, least) || atomic_load(&progress->aborted);
}

static void sleep_until_over(struct progress *progress, int counter, int least)
{
    pthread_mutex_lock(&progress->mutex);
    while (!wait_is_over(progress, counter, least))
        pthread_cond_wait(&progress->changed, &progress->mutex);
    pthread_mutex_unlock(&progress->mutex);
}

int progress_wait(struct progress *progress, int counter, int least, struct err *err)
{
    for (int i = 0; i < SPINS && !wait_is_over(progress, counter, least); i++)
        relax();
    if (!wait_is_over(progress, counter, least))
        sleep_until_over(progress, counter, least);
    if (!has_come(progress, counter, least))
        return err_set(err, ERR_CANCELLED, "another stage failed");
    return 0;
}
