/* inference.c: see inference.h. Files appear by rename at the end: whole or not at all. */
#include "engine/train/inference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/file.h"
#include "engine/data/order.h"
#include "engine/train/checkpoint.h"
#include "engine/train/evaluate.h"
#include "engine/train/init.h"
#include "engine/train/npy.h"
#include "engine/train/output.h"
#include "engine/train/scores.h"
#include "engine/train/trace.h"
#include "proto/json.h"

struct inference {
    const struct trainer_config *config;
    struct prepared prepared;
    struct output output;
    struct strategy *strategy;
    struct npy outputs, losses; /* of predict; under reduction none */
    float *sample_losses;       /* of a batch; NULL: not wanted */
    struct scores scores;
    struct evaluation evaluation;
    int64_t samples, batches, n_batches; /* so far; in all */
    double started;
};

static void send(const struct inference *inference, const struct report *report)
{
    inference->config->sink.report(inference->config->sink.context, report);
}

static bool predicts(const struct inference *inference)
{
    return inference->config->job->train.mode == MODE_PREDICT;
}

/* Else there is nothing to measure. */
static bool has_targets(const struct inference *inference)
{
    return dataset_has_targets(inference->prepared.validation);
}

/* A step of a report is a batch. */
static struct report report_of(const struct inference *inference, enum report_type type)
{
    struct report report = report_blank(type);
    report.step = inference->batches;
    report.steps = inference->n_batches;
    report.epoch = inference->batches > 0;
    report.epochs = 1;
    return report;
}

/* The mean over a sample's targets that count, 0 where none does: of one target, and of all
 * elements of a value, what PyTorch's reduction none gives. */
static int write_losses(struct inference *inference, const struct batch *batch,
                        const double *losses, struct err *err)
{
    const struct model *model = inference->prepared.model;
    const int64_t *targets = batch->targets;
    for (int64_t i = 0; i < batch->n; i++) {
        int64_t counted = model->loss_terms;
        for (int64_t k = 0; model->ignored != NULL && k < model->loss_terms; k++)
            counted -= targets[i * model->loss_terms + k] == *model->ignored;
        inference->sample_losses[i] = counted > 0 ? (float)(losses[i] / (double)counted) : 0;
    }
    return npy_write(&inference->losses, inference->sample_losses, (size_t)batch->n, err);
}

static int take(void *context, const struct loader_batch *batch,
                const struct strategy_result *result, struct err *err)
{
    struct inference *inference = context;
    const struct model *model = inference->prepared.model;
    int64_t n = batch->batch.n;
    inference->samples += n;
    inference->batches++;
    if (result->predictions != NULL && has_targets(inference) && inference->scores.n_classes > 0)
        scores_add(&inference->scores, model, n, result->outputs, batch->batch.targets,
                   result->predictions);
    if (inference->config->job->train.trace_shapes)
        trace_batch(inference->config, &inference->prepared, &batch->batch, result);
    struct report report = report_of(inference, REPORT_PROGRESS);
    double seconds = clock_seconds() - inference->started;
    report.loss = has_targets(inference) ? result->loss : NAN;
    report.samples_per_second = (double)inference->samples / seconds;
    report.seconds_left =
        seconds / (double)inference->batches * (double)(inference->n_batches - inference->batches);
    send(inference, &report);
    int rc =
        inference->losses.fd >= 0 ? write_losses(inference, &batch->batch, result->losses, err) : 0;
    if (rc != 0 || !predicts(inference))
        return rc;
    return npy_write(&inference->outputs, result->outputs,
                     (size_t)(n * shape_count(&model->output)), err);
}

static int load_weights(struct inference *inference, struct err *err)
{
    const struct job_init *init = &inference->config->job->model.init;
    const struct model *model = inference->prepared.model;
    int rc = init_all(inference->strategy, model, err);
    if (rc == 0)
        rc = checkpoint_load_weights(inference->strategy, model, init->weights, init->strict, err);
    if (rc != 0)
        snprintf(err->path, sizeof err->path, "/model/init/weights");
    return rc;
}

/* outputs.npy or losses.npy: a row of that shape a sample, by another name until it is whole. */
static int create(const struct inference *inference, const char *name, struct shape row,
                  struct npy *ret_npy, struct err *err)
{
    char path[LIMIT_PATH_BYTES];
    int rc = file_path(path, err, "%s/%s.new", inference->output.path, name);
    return rc != 0 ? rc
                   : npy_create(path, dataset_samples(inference->prepared.validation), &row,
                                ret_npy, err);
}

static int create_losses(struct inference *inference, struct err *err)
{
    const struct shape sample = {.rank = 0};
    size_t most = (size_t)inference->prepared.eval_batches[0];
    if (inference->config->job->loss.reduction != REDUCTION_NONE || !has_targets(inference))
        return 0;
    inference->sample_losses = malloc(most * sizeof *inference->sample_losses);
    if (inference->sample_losses == NULL)
        return err_set(err, ERR_NOMEM, "no memory for the losses of a batch");
    return create(inference, "losses.npy", sample, &inference->losses, err);
}

static int begin(struct inference *inference, struct err *err)
{
    struct report report = report_of(inference, REPORT_STARTED);
    int rc = output_write_job(&inference->output, inference->config->job, err);
    if (rc == 0)
        rc = scores_init(inference->prepared.model, &inference->scores, err);
    if (rc == 0 && predicts(inference))
        rc = create(inference, "outputs.npy", inference->prepared.model->output,
                    &inference->outputs, err);
    if (rc == 0)
        rc = create_losses(inference, err);
    if (rc != 0)
        return rc;
    snprintf(report.path, sizeof report.path, "%s", inference->output.path);
    send(inference, &report);
    trace_devices(inference->config);
    inference->started = clock_seconds();
    return 0;
}

static int open_all(struct inference *inference, struct err *err)
{
    const struct trainer_config *config = inference->config;
    struct prepared *prepared = &inference->prepared;
    int rc = prepare(config, prepared, err);
    if (rc == 0)
        rc = output_open(config->output, config->job->name, &inference->output, err);
    if (rc != 0)
        return rc;
    inference->n_batches =
        order_batches(dataset_samples(prepared->validation), config->job->train.batch_size, false);
    rc = strategy_open(&prepared->strategy, &inference->strategy, err);
    if (rc == 0)
        rc = load_weights(inference, err);
    if (rc == 0)
        rc = begin(inference, err);
    if (rc != 0)
        output_abandon(&inference->output);
    return rc;
}

static json_t *result_json(const struct inference *inference)
{
    const struct evaluation *evaluation = &inference->evaluation;
    json_t *root = json_pack("{s:I, s:f}", "samples", (json_int_t)inference->samples, "loss",
                             evaluation->loss);
    if (root == NULL || isnan(evaluation->accuracy))
        return root;
    json_t *scores = scores_json(&inference->scores);
    if (json_object_set_new(root, "accuracy", json_real(evaluation->accuracy)) == 0 &&
        scores != NULL && json_object_update(root, scores) == 0) {
        json_decref(scores);
        return root;
    }
    json_decref(scores);
    json_decref(root);
    return NULL;
}

static int write_result(const struct inference *inference, struct err *err)
{
    json_t *root = result_json(inference);
    char *text = root != NULL ? json_pretty(root) : NULL;
    int rc = text == NULL
                 ? err_set(err, ERR_NOMEM, "no memory for the results")
                 : file_replace(inference->output.path, "evaluation.json", text, strlen(text), err);
    free(text);
    json_decref(root);
    return rc;
}

static int place(const struct inference *inference, struct npy *npy, const char *name,
                 char *ret_path, struct err *err)
{
    int rc = npy_sync(npy, err);
    if (rc == 0)
        rc = file_path(ret_path, err, "%s/%s", inference->output.path, name);
    if (rc == 0)
        rc = file_rename(npy->path, ret_path, inference->output.path, err);
    return rc;
}

static int finish(struct inference *inference, struct err *err)
{
    struct report report = report_of(inference, REPORT_DONE);
    int rc = 0;
    if (inference->losses.fd >= 0)
        rc = place(inference, &inference->losses, "losses.npy", report.path, err);
    if (rc == 0)
        rc = predicts(inference)
                 ? place(inference, &inference->outputs, "outputs.npy", report.path, err)
                 : file_path(report.path, err, "%s/evaluation.json", inference->output.path);
    if (rc == 0 && has_targets(inference))
        rc = write_result(inference, err);
    if (rc != 0)
        return rc;
    report.validation_loss = inference->evaluation.loss;
    report.accuracy = inference->evaluation.accuracy;
    report.confusion = evaluation_confusion(&inference->evaluation);
    send(inference, &report);
    json_decref(report.confusion);
    return 0;
}

static void close_npy(struct npy *npy, bool failed)
{
    if (failed && npy->fd >= 0)
        remove(npy->path);
    npy_close(npy);
}

int inference_run(const struct trainer_config *config, struct err *err)
{
    struct inference inference = {
        .config = config, .output = {.lock = -1}, .outputs = {.fd = -1}, .losses = {.fd = -1}};
    const struct evaluation_taker taker = {take, &inference};
    bool stopped = false;
    int rc = open_all(&inference, err);
    if (rc == 0)
        rc = evaluate(&inference.prepared, inference.strategy, 0, &taker, config->stop,
                      &inference.evaluation, &stopped, err);
    if (rc == 0 && stopped)
        rc = err_set(err, ERR_CANCELLED, "stopped on request after %lld of %lld batches",
                     (long long)inference.batches, (long long)inference.n_batches);
    if (rc == 0)
        rc = finish(&inference, err);
    close_npy(&inference.outputs, rc != 0);
    close_npy(&inference.losses, rc != 0);
    free(inference.sample_losses);
    scores_done(&inference.scores);
    output_close(&inference.output);
    strategy_close(inference.strategy);
    prepared_done(&inference.prepared);
    return rc;
}
