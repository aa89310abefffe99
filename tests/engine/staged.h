/* staged.h: a model's step in stages and micro-batches, by hand: every stage's sections one after
 * the other on this thread, what crosses copied between them. Arena and slots are filled with NaN
 * before each use, so that nothing can be read that a section should have left elsewhere. */
#ifndef TESTS_ENGINE_STAGED_H
#define TESTS_ENGINE_STAGED_H

#include "engine/exec/executor.h"

enum { STAGED_MICROBATCHES = 8 };

struct staged_config {
    const struct model *model;
    const struct split *split; /* NULL: the whole model, by the ordinary plan, in nothing's slot */
    enum plan_cut cut;         /* CUT_NONE without a split */
    int n_microbatches;
    int64_t sizes[STAGED_MICROBATCHES];
};

/* In what order the sections of the micro-batches run. */
enum staged_order {
    STAGED_ONE_BY_ONE,  /* one slot */
    STAGED_ALL_FORWARD, /* all forward first, then all backward, then all weight gradients */
    STAGED_LATE,        /* backward a micro-batch behind forward, weight gradients another */
    STAGED_ORDERS
};

struct staged;

/* Variables as a job starts with them. */
struct staged *staged_open(const struct staged_config *config);
void staged_close(struct staged *staged);
/* One optimizer step, on the same samples every time; returns the sum of its losses over their
 * divisor. */
double staged_step(struct staged *staged, enum staged_order order);
/* The elements of a variable, in the stage that has it. */
const float *staged_variable(const struct staged *staged, int variable);
/* The plan of a stage for micro-batch i. */
const struct plan *staged_plan(const struct staged *staged, int stage, int microbatch);
/* The model cut in so many stages of about as many layers. */
struct split staged_split(const struct model *model, int n_stages);

#endif
