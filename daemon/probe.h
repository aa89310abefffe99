/* probe.h: runs `traind-worker probe --json` on the loop and reads its list of devices. */
#ifndef DAEMON_PROBE_H
#define DAEMON_PROBE_H

#include "daemon/inventory.h"
#include "proto/err.h"

struct uv_loop_s;
struct probe;

struct probe_events {
    /* The inventory becomes the owner's; or NULL, and why. At most once, never from within a
     * function below. */
    void (*answered)(void *owner, struct inventory *inventory, const struct err *why);
    /* The probe has let go of the loop and is freed. Always comes, last. */
    void (*closed)(void *owner);
};

/* Starts `worker` (cpu_devices 0: its default). A worker that cannot be started, fails, says too
 * much or takes longer than PROBE_LIMIT_MS is answered as an error. NULL without memory. */
enum { PROBE_LIMIT_MS = 60000, PROBE_BYTES = 1 << 20 };
struct probe *probe_start(struct uv_loop_s *loop, const char *worker, int cpu_devices,
                          const struct probe_events *events, void *owner);
/* No answer any more; kills the worker. `closed` still comes. */
void probe_cancel(struct probe *probe);

#endif
