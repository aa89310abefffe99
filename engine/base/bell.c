/* bell.c: see bell.h. */
#include "engine/base/bell.h"

enum { SPINS = 1000 }; /* some microseconds */

void bell_init(struct bell *bell)
{
    pthread_mutex_init(&bell->mutex, NULL);
    pthread_cond_init(&bell->rung, NULL);
}

void bell_done(struct bell *bell)
{
    pthread_cond_destroy(&bell->rung);
    pthread_mutex_destroy(&bell->mutex);
}

void bell_ring(struct bell *bell)
{
    pthread_mutex_lock(&bell->mutex);
    pthread_cond_broadcast(&bell->rung);
    pthread_mutex_unlock(&bell->mutex);
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

void bell_wait(struct bell *bell, bool (*over)(const void *context), const void *context)
{
    for (int i = 0; i < SPINS; i++) {
        if (over(context))
            return;
        relax();
    }
    pthread_mutex_lock(&bell->mutex);
    while (!over(context))
        pthread_cond_wait(&bell->rung, &bell->mutex);
    pthread_mutex_unlock(&bell->mutex);
}
