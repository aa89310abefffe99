/* device_id.h: device names ("cpu:0", "cuda:1") and CUDA_VISIBLE_DEVICES, as pure functions. */
#ifndef PROTO_DEVICE_ID_H
#define PROTO_DEVICE_ID_H

#include <stddef.h>

#include "proto/err.h"
#include "proto/job.h"

struct device_id {
    enum device_type type; /* DEVICE_CPU or DEVICE_CUDA */
    int index;             /* -1: any one of the type ("cuda") */
};

/* "cpu", "cpu:0", "cuda:12". Errors: ERR_DEVICE_UNKNOWN. */
int device_id_parse(const char *text, struct device_id *ret_id, struct err *err);
/* Writes "cpu:0" (or "cpu" for index -1); returns `buf`. */
const char *device_id_format(struct device_id id, char buf[static 32]);

/* Which of `n` devices, in PCI order with these UUIDs ("GPU-…"), the variable shows, in its order.
 * `value` NULL: all; "": none. NVIDIA's rules: order kept; blanks are skipped; an invalid index
 * hides itself and all after it; a unique UUID prefix is accepted; a repeat is an error.
 * ret_index has room for `n`. Errors: ERR_DEVICE_UNKNOWN. */
int device_visible(const char *value, const char *const *uuids, size_t n, int *ret_index,
                   size_t *ret_n, struct err *err);

/* Picks the devices of a job among those visible: types[i] is the type of visible device i,
 * numbered within its type (cpu:0 is the first of type cpu). ret_index (room for LIMIT_DEVICES)
 * receives positions in `types`, in the job's order. Errors: ERR_DEVICE_UNKNOWN naming what was
 * asked and what there is. */
int device_resolve(const struct job_parallel *parallel, const enum device_type *types, size_t n,
                   int *ret_index, size_t *ret_n, struct err *err);

#endif
