/* bell.h: waiting for what other threads change in atomic variables. Who waits spins briefly, since
 * devices in balance are nearly together, then sleeps: CPU devices may share a core with the very
 * one that they wait for. */
#ifndef ENGINE_BASE_BELL_H
#define ENGINE_BASE_BELL_H

#include <pthread.h>
#include <stdbool.h>

struct bell {
    pthread_mutex_t mutex; /* for sleeping only */
    pthread_cond_t rung;
};

void bell_init(struct bell *bell);
void bell_done(struct bell *bell);
/* Wakes everybody who waits; call it behind each change that may end a wait. Any thread. */
void bell_ring(struct bell *bell);
/* Returns when `over` says so of the context. Any number of threads. */
void bell_wait(struct bell *bell, bool (*over)(const void *context), const void *context);

#endif
