/* balance.h: where to cut a model in stages, so that the busiest is as little busy as can be and
 * every stage fits its device: PURE.
 *
 * Dynamic programming over contiguous stages. Of the splits with the smallest bottleneck the most
 * even one is chosen: with the smallest sum of the squares of the stages' times.
 */
#ifndef ENGINE_PARALLEL_BALANCE_H
#define ENGINE_PARALLEL_BALANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/err.h"
#include "proto/job_parallel.h"
#include "proto/limits.h"

struct balance_layer { /* times and bytes of one micro-batch */
    const char *name;
    double forward, backward, weight; /* seconds, or any other unit */
    int64_t slot_bytes;    /* kept from its forward section to its last: activations, what weight
                              gradients wait for */
    int64_t fixed_bytes;   /* whatever the micro-batches: parameters, gradients, optimizer state */
    bool cut;              /* a stage may begin here; the first layer's is not read */
    int64_t carried_bytes; /* what layers before it made and it or later layers read */
};

struct balance_config {
    const struct balance_layer *layers;
    size_t n_layers;
    int stages; /* 1 to LIMIT_DEVICES */
    enum pipeline_schedule schedule;
    int microbatches;
    const int64_t *memory_bytes; /* of each stage's device; NULL: no bound */
};

struct balance {
    size_t first[LIMIT_DEVICES];   /* of each stage: its first layer */
    double seconds[LIMIT_DEVICES]; /* of each stage: forward, backward and weight gradients */
    int64_t bytes[LIMIT_DEVICES];  /* of each stage */
    double bottleneck;             /* the largest of `seconds` */
};

/* Errors: ERR_JOB_INVALID where the model has too few places to cut; where no split fits, with the
 * figures of the stage that lacks most in the split that lacks least; ERR_NOMEM. */
int balance_find(const struct balance_config *config, struct balance *ret_balance, struct err *err);

#endif
