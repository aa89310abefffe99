#include "engine/train/scores.h"

#include <stdlib.h>

enum { TOP = 5 };

int scores_init(const struct model *model, struct scores *ret_scores, struct err *err)
{
    *ret_scores =
        (struct scores){.n_classes = model->target_dtype == DTYPE_I64 ? model->classes : 0};
    if (ret_scores->n_classes == 0)
        return 0;
    ret_scores->classes = calloc((size_t)ret_scores->n_classes, sizeof *ret_scores->classes);
    return ret_scores->classes != NULL ? 0 : err_set(err, ERR_NOMEM, "no memory for scores");
}

void scores_done(struct scores *scores)
{
    free(scores->classes);
    scores->classes = NULL;
}

/* Among equal outputs the first come first, as in the prediction. */
static bool in_top(const float *row, int64_t n_classes, int64_t target)
{
    int64_t ahead = 0;
    for (int64_t c = 0; c < n_classes; c++)
        ahead += row[c] > row[target] || (row[c] == row[target] && c < target);
    return ahead < TOP;
}

void scores_add(struct scores *scores, const struct model *model, int64_t n, const float *outputs,
                const int64_t *targets, const int64_t *predictions)
{
    for (int64_t i = 0; i < n * model->loss_terms; i++) {
        if (model->ignored != NULL && targets[i] == *model->ignored)
            continue;
        struct class_score *score = &scores->classes[targets[i]];
        score->targets++;
        score->correct += predictions[i] == targets[i];
        scores->targets++;
        scores->top5 += in_top(outputs + i * scores->n_classes, scores->n_classes, targets[i]);
    }
}

static json_t *ratio(int64_t part, int64_t whole)
{
    return whole > 0 ? json_real((double)part / (double)whole) : json_null();
}

json_t *scores_json(const struct scores *scores)
{
    json_t *classes = json_array();
    for (int64_t c = 0; c < scores->n_classes; c++) {
        const struct class_score *score = &scores->classes[c];
        json_t *row = json_pack("{s:I, s:I, s:o}", "class", (json_int_t)c, "targets",
                                (json_int_t)score->targets, "accuracy",
                                ratio(score->correct, score->targets));
        if (json_array_append_new(classes, row) < 0) {
            json_decref(classes);
            return NULL;
        }
    }
    return json_pack("{s:o, s:o}", "top5_accuracy", ratio(scores->top5, scores->targets), "classes",
                     classes);
}
