/* metrics.h: metrics.jsonl, one object a line, cut back to where a resume begins. */
#ifndef ENGINE_TRAIN_METRICS_H
#define ENGINE_TRAIN_METRICS_H

#include <stdint.h>

#include "engine/train/step_rows.h"

struct metrics_step {
    int64_t step, epoch; /* from 1 */
    double loss, lr;     /* loss: before the update */
    int64_t samples;
    double seconds;                       /* that the step took, waiting for data included */
    double replica_losses[LIMIT_DEVICES]; /* of the devices that had a chunk; NAN: no target of it
                                             counts */
    int n_replicas;
};

struct metrics_validation {
    int64_t step, epoch;
    double loss, accuracy; /* accuracy NAN: not a classifier */
};

struct metrics {
    struct step_rows rows;
    int64_t validated_step; /* of the last validation row; 0: none */
    double best_loss;       /* the smallest validation loss, as its row shows it; INFINITY: none */
    int64_t since_best;     /* validations after that */
};

/* Opens `output`/metrics.jsonl and drops every row after `step`, and a torn last one. Errors:
 * ERR_IO. */
int metrics_open(const char *output, int64_t step, struct metrics *ret_metrics, struct err *err);
/* Each row is one write: a kill cannot interleave or lose those before it. */
int metrics_write_step(struct metrics *metrics, const struct metrics_step *row, struct err *err);
int metrics_write_validation(struct metrics *metrics, const struct metrics_validation *row,
                             struct err *err);
/* Before a checkpoint: the rows up to its step are then on the disk. */
int metrics_sync(struct metrics *metrics, struct err *err);
void metrics_close(struct metrics *metrics);

#endif
