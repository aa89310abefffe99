/* progress.h: how far the devices of a step have come: counters that only grow, and who waits for
 * one. All waiting between the stages of a pipeline is here.
 *
 * A counter belongs to one thread; any number may wait for it, and see then what its thread wrote
 * before. An abort wakes everybody; from then on a wait for what has not come fails with
 * ERR_CANCELLED.
 */
#ifndef ENGINE_PARALLEL_PROGRESS_H
#define ENGINE_PARALLEL_PROGRESS_H

#include "proto/err.h"

struct progress;

int progress_new(int counters, struct progress **ret_progress, struct err *err);
void progress_free(struct progress *progress); /* NULL is fine */
/* All counters are 0 again. Nobody waits or counts meanwhile. */
void progress_reset(struct progress *progress);
void progress_count(struct progress *progress, int counter);
/* Returns when the counter is at least `least`. */
int progress_wait(struct progress *progress, int counter, int least, struct err *err);
void progress_abort(struct progress *progress);

#endif
