/* timetable.h: what each stage of a pipeline runs, in what order, and how long a step takes: PURE.
 *
 * A stage's step is cut in sections: a micro-batch's forward pass, its backward pass (input
 * gradients) and its weight gradients. A stage runs its list in order; a section waits for those of
 * other stages that it needs: forward for the stage before, backward for the stage after. Sections
 * of one kind are in micro-batch order, so that gradients are summed in one order whatever the
 * timing. With PIPELINE_ZERO_BUBBLE weight gradients are sections of their own; else a backward
 * section holds them too.
 *
 * GPipe: Huang et al., «GPipe», 2019. 1F1B: Narayanan et al., «Efficient Large-Scale Language Model
 * Training on GPU Clusters», 2021, figure 4 (PipeDream-Flush). ZB-H1: Qi et al., «Zero Bubble
 * Pipeline Parallelism», 2023, figure 3: 1F1B, where stage s puts off the weight gradients of s
 * micro-batches, so that every stage holds as many in flight as the first does in 1F1B.
 */
#ifndef ENGINE_PARALLEL_TIMETABLE_H
#define ENGINE_PARALLEL_TIMETABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/plan/plan.h"
#include "proto/err.h"
#include "proto/job_parallel.h"

/* Seconds, or any other unit, of one micro-batch in one stage; 0 is allowed. */
struct timetable_cost {
    double of[SECTION_COUNT];
};

struct timetable_config {
    enum pipeline_schedule schedule;
    int stages, microbatches; /* at least 1 */
    bool training;            /* false: forward sections only */
    /* costs[microbatch * stages + stage]; NULL: 1 a kind, so 2 where backward holds both */
    const struct timetable_cost *costs;
};

struct timetable_entry {
    enum section kind;
    int microbatch;
    double start, end; /* as predicted, from the step's begin */
};

struct timetable_stage {
    struct timetable_entry *entries; /* in the order in which they run */
    size_t n;
    int slots;   /* the most micro-batches whose forward section has begun and whose last has not
                    ended */
    double busy; /* the sum of its costs */
};

struct timetable {
    struct timetable_config config; /* without costs */
    struct timetable_stage *stages;
    double seconds; /* of the step */
    double bubble;  /* the part of all stages' time in which they rest: 0 to 1 */
};

/* The caller frees *ret_table. Errors: ERR_NOMEM. */
int timetable_build(const struct timetable_config *config, struct timetable **ret_table,
                    struct err *err);
void timetable_free(struct timetable *table);

/* Whether weight gradients are sections of their own. */
bool timetable_splits_backward(enum pipeline_schedule schedule);

/* The slots of a stage, as timetable_build counts them, without building. */
int timetable_slots(enum pipeline_schedule schedule, int stages, int stage, int microbatches);

/* The lists as text: a row a step, a column a stage, "F0" the forward section of micro-batch 0, "."
 * where a stage rests; of more than 100 rows the first 80, " ..." and the last 20. A section takes
 * as many steps as costs NULL says, whatever it costs. The caller frees it; NULL without memory. */
char *timetable_grid(const struct timetable *table);

#endif
