/* limits.h: time limits of running jobs. The loop's thread.
 *
 * A job that has run for its limit is asked to stop, as a cancelled one is: SIGTERM, a checkpoint,
 * and SIGKILL from its shim after the grace period. It ends as `timed_out`. The limit is of time
 * that passes for users (the wall clock), so that it holds over restarts of the daemon.
 */
#ifndef DAEMON_LIMITS_H
#define DAEMON_LIMITS_H

#include <stdint.h>

struct daemon;
struct live;

/* The job runs (again, after a restart of the daemon). */
void limits_watch(struct daemon *daemon, const struct live *live);
/* Stops what has run long enough; called when the alarm has rung. */
void limits_expire(struct daemon *daemon);
/* When to look again, on the runner's clock_ms; INT64_MAX: never. */
int64_t limits_next_ms(const struct daemon *daemon);

#endif
