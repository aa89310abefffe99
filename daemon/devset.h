/* devset.h: sets of devices and what a job wants of them. PURE functions of values.
 *
 * A device is its position in the inventory; LIMIT_DEVICES is 64, so a set is one word.
 */
#ifndef DAEMON_DEVSET_H
#define DAEMON_DEVSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/device_id.h"
#include "proto/err.h"
#include "proto/limits.h"

typedef uint64_t devset;

/* A list of device ids. As the devices there are: position → id. As a job's wish: the job's devices
 * in its order, index -1 standing for any one of the type. As its assignment: the ids it got. */
struct devlist {
    size_t n;
    struct device_id id[LIMIT_DEVICES];
};

/* "cpu:0,cpu:1" or "cpu,cpu"; "" is the empty list. Errors: ERR_DEVICE_UNKNOWN. */
int devlist_parse(const char *text, struct devlist *ret_list, struct err *err);
/* Writes the text of a list (at most 32 bytes a device); returns `buf`. */
const char *devlist_format(const struct devlist *list, char *buf, size_t size);

/* What the `parallel` of a document wants, given the devices there are: a count becomes that many
 * "any of the type"; a named device stays named. Errors: ERR_DEVICE_UNKNOWN when it could not be
 * had even on an idle machine. */
int devlist_want(const struct job_parallel *parallel, const struct devlist *devices,
                 struct devlist *ret_want, struct err *err);

/* All devices there are, as a set. */
devset devset_all(const struct devlist *devices);
/* The set of the devices of `list` that exist; others are left out. */
devset devset_of(const struct devlist *devices, const struct devlist *list);
size_t devset_count(devset set);

/* The devices of one type. */
devset devset_type(const struct devlist *devices, enum device_type type);

/* A job's wish, as counts: what scheduling compares. */
enum { DEVWISH_TYPES = DEVICE_CUDA + 1 };
struct devwish {
    devset named;
    uint8_t any[DEVWISH_TYPES]; /* of each type */
};
/* Devices that `want` names must exist. */
struct devwish devwish_of(const struct devlist *devices, const struct devlist *want);
size_t devwish_count(const struct devwish *wish);
/* How many of the devices could not be had from `set`. */
size_t devwish_missing(const struct devlist *devices, const struct devwish *wish, devset set);
/* The lowest that fit, so that large sets stay free; `set` has them all. */
devset devwish_pick(const struct devlist *devices, const struct devwish *wish, devset set);

/* Chooses devices for `want` among `free`: named ones as named, the others lowest first.
 * True and *ret_got in the order of `want`; false when they are not all free. */
bool devset_pick(const struct devlist *devices, const struct devlist *want, devset free,
                 struct devlist *ret_got);
/* How many of `want` could be had now. */
size_t devset_available(const struct devlist *devices, const struct devlist *want, devset free);

#endif
