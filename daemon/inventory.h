/* inventory.h: the devices of this machine, as `traind-worker probe --json` lists them. Pure. */
#ifndef DAEMON_INVENTORY_H
#define DAEMON_INVENTORY_H

#include <stddef.h>
#include <stdint.h>

#include "proto/err.h"
#include "proto/job.h"
#include "proto/limits.h"

struct inventory_device {
    char name[32]; /* "cpu:0" */
    enum device_type type;
    char uuid[64];
    char model[128];
    int *cores; /* n_cores CPU numbers, or NULL */
    size_t n_cores;
    int64_t memory_bytes;
};

struct inventory {
    size_t n; /* at most LIMIT_DEVICES */
    struct inventory_device device[LIMIT_DEVICES];
};

/* Parses probe's one object (doc/processes.md). The worker is our own program, but its words are
 * checked all the same. *ret_inventory is the caller's, freed with inventory_free. Errors:
 * ERR_DEVICE_FAILED saying what is wrong with the list, ERR_NOMEM. */
int inventory_parse(const char *text, size_t size, struct inventory **ret_inventory,
                    struct err *err);
void inventory_free(struct inventory *inventory);

#endif
