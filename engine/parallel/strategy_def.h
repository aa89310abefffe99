/* strategy_def.h: a way to spread a job, as strategy.c calls it. Private to engine/parallel. */
#ifndef ENGINE_PARALLEL_STRATEGY_DEF_H
#define ENGINE_PARALLEL_STRATEGY_DEF_H

#include "engine/parallel/strategy.h"

/* The functions of strategy.h; `plan` leaves it to strategy.c to check the memory, `open` does it
 * by strategy_check_memory before it touches a device. */
struct strategy_def {
    int (*plan)(const struct strategy_config *config, struct strategy_memory *ret_memory,
                double *ret_flops, struct err *err);
    int (*open)(const struct strategy_config *config, struct strategy **ret_strategy,
                struct err *err);
    void (*close)(struct strategy *strategy); /* not NULL */
    int (*train)(struct strategy *strategy, const struct batch *batch, enum step_part part,
                 const struct step *step, struct strategy_result *ret_result, struct err *err);
    int (*evaluate)(struct strategy *strategy, const struct batch *batch, const struct step *step,
                    struct strategy_result *ret_result, struct err *err);
    int (*read)(struct strategy *strategy, int variable, void *to, struct err *err);
    int (*write)(struct strategy *strategy, int variable, const void *from, struct err *err);
};

struct strategy { /* the first member of each way's own */
    const struct strategy_def *def;
};

extern const struct strategy_def strategy_replicate; /* one device is one replica */
extern const struct strategy_def strategy_stages;    /* each has some of the layers */

/* Whether the devices have what is asked of them, a row a device. Errors: ERR_JOB_INVALID. */
int strategy_check_memory(const struct strategy_config *config,
                          const struct strategy_memory *memory, struct err *err);
/* The controller's buffers (of a stage: its first device's) to all devices that have them. `room`
 * holds any one of them. */
int strategy_share_buffers(struct strategy *strategy, const struct model *model, void *room,
                           struct err *err);

#endif
