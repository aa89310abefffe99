/* drain.h: devices that administrators have drained: what runs there goes on, nothing starts there.
 * They are kept by name, over restarts, also while a device is not there. The loop's thread.
 */
#ifndef DAEMON_DRAIN_H
#define DAEMON_DRAIN_H

#include <sys/types.h>

#include "daemon/devset.h"
#include "proto/err.h"

struct daemon;

enum { DRAIN_MOST = 4 * LIMIT_DEVICES, DRAIN_REASON_BYTES = 200 };

struct drain {
    struct device_id device;
    uid_t uid; /* whose wish it was */
    char reason[DRAIN_REASON_BYTES + 1];
};

/* Zero-initialise. */
struct drains {
    size_t n;
    struct drain list[DRAIN_MOST];
};

/* Reads them, before the store's thread runs. Errors: the store's. */
int drain_load(struct daemon *daemon, struct err *err);
/* Those of the devices there are. */
devset drain_set(const struct daemon *daemon);
/* NULL: it is not drained. */
const struct drain *drain_find(const struct daemon *daemon, struct device_id device);

#endif
