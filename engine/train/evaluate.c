/* evaluate.c: sums over batches are divided once, so that a short last batch weighs what it should.
 */
#include "engine/train/evaluate.h"

#include <math.h>

struct pass { /* sums so far */
    double loss_sum, loss_divisor;
    int64_t targets, correct; /* of those that count */
    bool classifier;
};

static void count(const struct model *model, const struct loader_batch *batch,
                  const int64_t *predictions, struct pass *pass, struct evaluation *evaluation)
{
    const int64_t *targets = batch->batch.targets;
    pass->classifier = true;
    for (int64_t i = 0; i < batch->batch.n * model->loss_terms; i++) {
        if (model->ignored != NULL && targets[i] == *model->ignored)
            continue;
        pass->targets++;
        pass->correct += predictions[i] == targets[i];
        if (evaluation->classes > 0)
            evaluation->confusion[targets[i]][predictions[i]]++;
    }
}

static int evaluate_batch(const struct prepared *prepared, struct strategy *strategy, int64_t step,
                          const struct loader_batch *batch, const struct evaluation_taker *taker,
                          struct pass *pass, struct evaluation *evaluation, struct err *err)
{
    const struct model *model = prepared->model;
    struct strategy_result result;
    const struct step at = {
        .seed = (uint64_t)model->job->train.seed,
        .number = step,
        .first_sample = batch->first_sample,
        .loss_divisor = graph_loss_divisor(model, batch->batch.targets, batch->batch.n),
    };
    int rc = strategy_evaluate(strategy, &batch->batch, &at, &result, err);
    if (rc != 0)
        return rc;
    for (int i = 0; i < result.n_replicas; i++)
        pass->loss_sum += result.replicas[i].loss_sum;
    bool sum = model->job->loss.reduction == REDUCTION_SUM;
    pass->loss_divisor = sum ? 1 : pass->loss_divisor + at.loss_divisor;
    if (result.predictions != NULL && dataset_has_targets(prepared->validation))
        count(model, batch, result.predictions, pass, evaluation);
    return taker != NULL ? taker->take(taker->context, batch, &result, err) : 0;
}

int evaluate(const struct prepared *prepared, struct strategy *strategy, int64_t step,
             const struct evaluation_taker *taker, const volatile sig_atomic_t *stop,
             struct evaluation *ret_evaluation, bool *ret_stopped, struct err *err)
{
    const struct model *model = prepared->model;
    const struct loader_config config = prepared_eval_loader(prepared);
    struct pass pass = {.classifier = false};
    struct evaluation evaluation = {.accuracy = NAN};
    struct loader_batch batch;
    struct loader *loader = NULL;
    int rc = loader_start(&config, &loader, err);
    if (model->classes >= 2 && model->classes <= EVALUATION_CLASSES)
        evaluation.classes = model->classes;
    *ret_stopped = false;
    bool more = rc == 0;
    while (more && !*ret_stopped) {
        rc = loader_next(loader, &batch, &more, err);
        if (rc == 0 && more)
            rc = evaluate_batch(prepared, strategy, step, &batch, taker, &pass, &evaluation, err);
        more = more && rc == 0;
        *ret_stopped = *stop != 0;
    }
    loader_stop(loader);
    if (rc != 0 || *ret_stopped)
        return rc;
    if (!dataset_has_targets(prepared->validation)) {
        *ret_evaluation = (struct evaluation){.loss = NAN, .accuracy = NAN};
        return 0;
    }
    if (pass.loss_divisor == 0)
        return err_at(err, ERR_DATA_INVALID, "/data/validation",
                      "no target counts: all are ignored or weigh 0");
    evaluation.loss = pass.loss_sum / pass.loss_divisor;
    if (!isfinite(evaluation.loss))
        return err_set(err, ERR_LOSS_NAN, "the validation loss is %s after step %lld",
                       isnan(evaluation.loss) ? "nan" : "infinite", (long long)step);
    if (pass.classifier)
        evaluation.accuracy = (double)pass.correct / (double)pass.targets;
    else
        evaluation.classes = 0;
    *ret_evaluation = evaluation;
    return 0;
}

json_t *evaluation_confusion(const struct evaluation *evaluation)
{
    if (evaluation->classes == 0)
        return NULL;
    json_t *rows = json_array();
    bool whole = rows != NULL;
    for (int64_t i = 0; i < evaluation->classes && whole; i++) {
        json_t *row = json_array();
        for (int64_t j = 0; j < evaluation->classes; j++)
            if (json_array_append_new(row, json_integer(evaluation->confusion[i][j])) < 0)
                whole = false;
        if (json_array_append_new(rows, row) < 0)
            whole = false;
    }
    if (whole)
        return rows;
    json_decref(rows);
    return NULL;
}
