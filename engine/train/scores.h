/* scores.h: what a classifier's outputs are worth: by class, and among its five best guesses. */
#ifndef ENGINE_TRAIN_SCORES_H
#define ENGINE_TRAIN_SCORES_H

#include <jansson.h>

#include "engine/graph/model.h"

struct class_score {
    int64_t targets, correct;
};

struct scores {
    int64_t n_classes; /* 0: not a classifier */
    struct class_score *classes;
    int64_t targets, top5; /* targets that count; those among the five largest outputs */
};

/* Freed with scores_done, also after a failure. Errors: ERR_NOMEM. */
int scores_init(const struct model *model, struct scores *ret_scores, struct err *err);
void scores_done(struct scores *scores);
/* Adds n samples: outputs [n, …, classes] and targets and predictions [n, …]. */
void scores_add(struct scores *scores, const struct model *model, int64_t n, const float *outputs,
                const int64_t *targets, const int64_t *predictions);
/* {"top5_accuracy", "classes": [{"class", "targets", "accuracy"}…]}, accuracy null where a class
 * has no target; a new reference, NULL without memory. */
json_t *scores_json(const struct scores *scores);

#endif
