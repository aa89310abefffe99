/* thread.h: the thread that drives one device: runs tasks in the order in which they were given. */
#ifndef ENGINE_BASE_THREAD_H
#define ENGINE_BASE_THREAD_H

#include <stdbool.h>
#include <stddef.h>

#include "proto/err.h"

struct thread;

/* Starts a thread bound to `cores` (n_cores 0: unbound) with a team of `n_threads`. Errors:
 * ERR_NOMEM; ERR_DEVICE_FAILED (a core that this process may not use). */
int thread_start(const char *name, const int *cores, size_t n_cores, int n_threads,
                 struct thread **ret_thread, struct err *err);
/* Runs fn(context) there after all before it; returns at once unless 64 wait already. One
 * submitter at a time. */
void thread_submit(struct thread *thread, void (*fn)(void *context), void *context);
/* Returns when everything submitted has run. */
void thread_wait(struct thread *thread);
/* The same, but for `ms` at most: whether everything has run. */
bool thread_wait_for(struct thread *thread, int ms);
/* Waits, then ends the thread. NULL is fine. */
void thread_stop(struct thread *thread);

#endif
