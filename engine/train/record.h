/* record.h: record.jsonl, the statistics that train.record asks for: one object a line for each
 * tensor and each device that had it, cut back to where a resume begins. */
#ifndef ENGINE_TRAIN_RECORD_H
#define ENGINE_TRAIN_RECORD_H

#include "engine/parallel/strategy.h"
#include "engine/train/step_rows.h"

struct record {
    struct step_rows rows; /* fd -1: nothing is recorded and nothing was */
    char **names;          /* by model->recorded, as JSON strings */
    int n_names;
    const struct device_config *devices;
};

/* Drops the rows after `step`, also where this run records nothing; no file is made then. Errors:
 * ERR_IO, ERR_NOMEM. */
int record_open(const char *output, const struct strategy_config *config, int64_t step,
                struct record *ret_record, struct err *err);
int record_write(struct record *record, int64_t step, int64_t epoch,
                 const struct strategy_record *records, size_t n, struct err *err);
int record_sync(struct record *record, struct err *err);
void record_close(struct record *record); /* zeroed with fd -1: fine */

#endif
