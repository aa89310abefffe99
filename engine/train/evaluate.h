/* evaluate.h: one pass over the validation data. */
#ifndef ENGINE_TRAIN_EVALUATE_H
#define ENGINE_TRAIN_EVALUATE_H

#include <jansson.h>

#include "engine/train/prepare.h"

enum { EVALUATION_CLASSES = 16 }; /* the most that a confusion table is made for */

struct evaluation {
    double loss;
    double accuracy;                                           /* NAN: not a classifier */
    int64_t confusion[EVALUATION_CLASSES][EVALUATION_CLASSES]; /* [target][prediction] */
    int64_t classes; /* rows and columns of `confusion`; 0: none was made */
};

/* Who wants each batch's results beside the sums; NULL: nobody. */
struct evaluation_taker {
    int (*take)(void *context, const struct loader_batch *batch,
                const struct strategy_result *result, struct err *err);
    void *context;
};

/* Evaluates after `step` optimizer steps. *ret_stopped: `stop` was raised and the pass was left.
 * Data without targets
 * has no loss (NAN) and no accuracy: there is what the taker takes. Errors: ERR_LOSS_NAN, the
 * strategy's. */
int evaluate(const struct prepared *prepared, struct strategy *strategy, int64_t step,
             const struct evaluation_taker *taker, const volatile sig_atomic_t *stop,
             struct evaluation *ret_evaluation, bool *ret_stopped, struct err *err);

/* The confusion as report.h wants it: a new reference; NULL where there is none, or no memory. */
json_t *evaluation_confusion(const struct evaluation *evaluation);

#endif
