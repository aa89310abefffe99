/* trainer.c: the order of things.
 *
 *     prepare → output directory → devices → resume or initialise → steps → weights
 *
 * What happens between two steps (validation, checkpoint, stop) depends only on the number of steps
 * made and on what is recorded already. So a run that was killed there does the same after its
 * resume, and the files come out as if nothing had happened.
 */
#include "engine/train/trainer.h"

#include <math.h>
#include <stdio.h>

#include "engine/base/clock.h"
#include "engine/base/file.h"
#include "engine/train/accumulate.h"
#include "engine/train/checkpoint.h"
#include "engine/train/evaluate.h"
#include "engine/train/inference.h"
#include "engine/train/init.h"
#include "engine/train/metrics.h"
#include "engine/train/output.h"
#include "engine/train/prepare.h"
#include "engine/train/record.h"
#include "engine/train/schedule.h"
#include "engine/train/trace.h"
#include "engine/train/tune.h"

struct trainer {
    const struct trainer_config *config;
    const struct job *job;
    struct prepared prepared;
    struct output output;
    struct strategy *strategy;
    struct metrics metrics;
    struct record record;
    struct loader *loader;

    int64_t step;         /* optimizer steps made */
    int64_t saved_step;   /* of the newest checkpoint */
    int64_t resumed_step; /* where this run began */
    double saved_time;    /* when it was made, or the run began */
    double started_time;  /* when the steps that the rates count began */
    double step_seconds;  /* in those steps */
    int64_t step_samples; /* the same for samples */
    int64_t rated_steps;  /* how many they are */
    struct evaluation evaluation;
    int64_t evaluated_step; /* that `evaluation` is of; 0: none yet */
};

static int64_t epoch_of(const struct trainer *trainer, int64_t step)
{
    return (step - 1) / trainer->prepared.epoch_steps + 1;
}

static void send(const struct trainer *trainer, const struct report *report)
{
    trainer->config->sink.report(trainer->config->sink.context, report);
}

/* A report with the numbers that it may not have. */
static struct report report_of(const struct trainer *trainer, enum report_type type)
{
    struct report report = report_blank(type);
    report.step = trainer->step;
    report.steps = trainer->prepared.steps;
    report.epoch = trainer->step > 0 ? epoch_of(trainer, trainer->step) : 0;
    report.epochs = trainer->prepared.epochs;
    report.resumed_step = trainer->resumed_step;
    return report;
}

/* Whether something that is done every so often is due after this many steps; `since` is when it
 * was done last. Whatever is ever done is due at the end. */
static bool is_due(const struct trainer *trainer, const struct job_every *every, double since)
{
    int64_t epoch_steps = trainer->prepared.epoch_steps;
    if (every->unit == EVERY_NEVER)
        return false;
    if (trainer->step == trainer->prepared.steps)
        return true;
    if (every->unit == EVERY_SECONDS)
        return clock_seconds() - since >= (double)every->n;
    if (every->unit == EVERY_STEPS)
        return trainer->step % every->n == 0;
    return trainer->step % epoch_steps == 0 && trainer->step / epoch_steps % every->n == 0;
}

static struct identity_data identity_of(const struct dataset *dataset)
{
    return (struct identity_data){dataset_fingerprint(dataset), dataset_samples(dataset)};
}

static int sync_rows(struct trainer *trainer, struct err *err)
{
    int rc = metrics_sync(&trainer->metrics, err);
    return rc == 0 ? record_sync(&trainer->record, err) : rc;
}

static int save(struct trainer *trainer, struct err *err)
{
    struct report report = report_of(trainer, REPORT_CHECKPOINT);
    const struct checkpoint_position position = {
        .step = trainer->step,
        .data = identity_of(trainer->prepared.train),
    };
    int rc = sync_rows(trainer, err);
    if (rc == 0)
        rc = checkpoint_save(trainer->strategy, trainer->prepared.model, trainer->output.path,
                             &position, trainer->job->checkpoint.keep, report.path, err);
    if (rc != 0)
        return rc;
    trainer->saved_step = trainer->step;
    trainer->saved_time = clock_seconds();
    send(trainer, &report);
    return 0;
}

static int save_if_due(struct trainer *trainer, struct err *err)
{
    if (trainer->step <= trainer->saved_step ||
        !is_due(trainer, &trainer->job->checkpoint.every, trainer->saved_time))
        return 0;
    return save(trainer, err);
}

static int cancel(struct trainer *trainer, struct err *err)
{
    if (trainer->step > trainer->saved_step) {
        int rc = save(trainer, err);
        if (rc != 0)
            return rc;
    }
    return trainer->step == 0
               ? err_set(err, ERR_CANCELLED, "stopped on request before the first step")
               : err_set(err, ERR_CANCELLED,
                         "stopped on request after step %lld, with a checkpoint",
                         (long long)trainer->step);
}

static bool stopping(const struct trainer *trainer)
{
    return *trainer->config->stop != 0;
}

/* Evaluates where it was not done at this step; a stop leaves it undone. */
static int evaluate_now(struct trainer *trainer, struct err *err)
{
    bool stopped;
    if (trainer->evaluated_step == trainer->step)
        return 0;
    int rc = evaluate(&trainer->prepared, trainer->strategy, trainer->step, NULL,
                      trainer->config->stop, &trainer->evaluation, &stopped, err);
    if (rc == 0 && !stopped)
        trainer->evaluated_step = trainer->step;
    return rc;
}

/* The weights of the smallest validation loss so far. */
static int keep_best(struct trainer *trainer, struct err *err)
{
    char path[LIMIT_PATH_BYTES];
    if (!trainer->job->train.has_early_stop || trainer->metrics.since_best > 0)
        return 0;
    int rc = file_path(path, err, "%s/best.safetensors", trainer->output.path);
    return rc != 0
               ? rc
               : checkpoint_write_weights(trainer->strategy, trainer->prepared.model, path, err);
}

static int validate_if_due(struct trainer *trainer, struct err *err)
{
    if (trainer->prepared.validation == NULL || trainer->step == 0 ||
        trainer->metrics.validated_step >= trainer->step ||
        !is_due(trainer, &trainer->job->train.validate_every, 0))
        return 0;
    int rc = evaluate_now(trainer, err);
    if (rc != 0 || trainer->evaluated_step != trainer->step)
        return rc;
    struct report report = report_of(trainer, REPORT_VALIDATION);
    report.validation_loss = trainer->evaluation.loss;
    report.accuracy = trainer->evaluation.accuracy;
    send(trainer, &report);
    const struct metrics_validation row = {
        .step = report.step,
        .epoch = report.epoch,
        .loss = report.validation_loss,
        .accuracy = report.accuracy,
    };
    rc = metrics_write_validation(&trainer->metrics, &row, err);
    return rc == 0 ? keep_best(trainer, err) : rc;
}

/* Training ends here when validations have not got better for long. Like all that happens between
 * two steps it follows from what is recorded, so a resume decides the same. */
static void stop_early(struct trainer *trainer)
{
    const struct job_train *train = &trainer->job->train;
    if (train->has_early_stop && trainer->metrics.validated_step == trainer->step &&
        trainer->metrics.since_best >= train->patience)
        trainer->prepared.steps = trainer->step;
}

static bool is_logged(const struct trainer *trainer, int64_t step)
{
    return step % trainer->job->train.log_every == 0 || step == trainer->prepared.steps;
}

static int log_step(struct trainer *trainer, const struct step *step,
                    const struct accumulated *made, double seconds, struct err *err)
{
    if (!is_logged(trainer, trainer->step))
        return 0;

    struct report report = report_of(trainer, REPORT_PROGRESS);
    report.loss = made->loss;
    report.samples_per_second = (double)trainer->step_samples / trainer->step_seconds;
    report.seconds_left = (clock_seconds() - trainer->started_time) / (double)trainer->rated_steps *
                          (double)(trainer->prepared.steps - trainer->step);
    send(trainer, &report);

    struct metrics_step row = {
        .step = report.step,
        .epoch = report.epoch,
        .loss = made->loss,
        .lr = step->lr,
        .samples = made->samples,
        .seconds = seconds,
    };
    for (int i = 0; i < made->n_replicas; i++) {
        const struct replica_result *replica = &made->replicas[i];
        if (replica->samples > 0)
            row.replica_losses[row.n_replicas++] = replica->loss_sum / replica->loss_divisor;
    }
    return metrics_write_step(&trainer->metrics, &row, err);
}

/* A run's first step also warms its kernels up: once there are others the rates are theirs. */
static void rate_step(struct trainer *trainer, double before, double seconds, int64_t samples)
{
    if (trainer->step == trainer->resumed_step + 2) {
        trainer->started_time = before;
        trainer->step_seconds = 0;
        trainer->step_samples = trainer->rated_steps = 0;
    }
    trainer->step_seconds += seconds;
    trainer->step_samples += samples;
    trainer->rated_steps++;
}

static int train_step(struct trainer *trainer, struct err *err)
{
    struct accumulated made;
    double before = clock_seconds();
    const struct step step = {
        .seed = (uint64_t)trainer->job->train.seed,
        .number = trainer->step + 1,
        .lr = schedule_lr(&trainer->job->schedule, trainer->job->optimizer.lr, trainer->step + 1),
        .record = is_logged(trainer, trainer->step + 1),
    };
    int rc = accumulate_step(trainer->config, &trainer->prepared, trainer->strategy,
                             trainer->loader, step, &made, err);
    if (rc != 0)
        return rc;
    double seconds = clock_seconds() - before;
    trainer->step++;
    rate_step(trainer, before, seconds, made.samples);
    rc = record_write(&trainer->record, trainer->step, epoch_of(trainer, trainer->step),
                      made.records, made.n_records, err);
    if (rc != 0)
        return rc;
    if (!isfinite(made.loss))
        return err_set(err, ERR_LOSS_NAN, "the loss is %s at step %lld (epoch %lld)",
                       isnan(made.loss) ? "nan" : "infinite", (long long)trainer->step,
                       (long long)epoch_of(trainer, trainer->step));
    return log_step(trainer, &step, &made, seconds, err);
}

/* Each round first settles what is due after `step` steps, then makes one more. */
static int run_steps(struct trainer *trainer, struct err *err)
{
    int rc = 0;
    while (rc == 0) {
        if (!stopping(trainer))
            rc = validate_if_due(trainer, err);
        if (rc == 0 && stopping(trainer))
            return cancel(trainer, err);
        stop_early(trainer);
        if (rc == 0)
            rc = save_if_due(trainer, err);
        if (rc != 0 || trainer->step == trainer->prepared.steps)
            break;
        rc = train_step(trainer, err);
    }
    return rc;
}

/* The weights, and the scores that a resume after the last step has not in memory. */
static int finish(struct trainer *trainer, struct err *err)
{
    struct report report = report_of(trainer, REPORT_DONE);
    bool validated = trainer->metrics.validated_step == trainer->step;
    int rc = validated ? evaluate_now(trainer, err) : 0;
    if (rc == 0 && stopping(trainer))
        return cancel(trainer, err);
    if (rc == 0)
        rc = file_path(report.path, err, "%s/weights.safetensors", trainer->output.path);
    if (rc == 0)
        rc = sync_rows(trainer, err);
    if (rc == 0)
        rc = checkpoint_write_weights(trainer->strategy, trainer->prepared.model, report.path, err);
    if (rc != 0)
        return rc;
    if (validated) {
        report.validation_loss = trainer->evaluation.loss;
        report.accuracy = trainer->evaluation.accuracy;
        report.confusion = evaluation_confusion(&trainer->evaluation);
    }
    send(trainer, &report);
    json_decref(report.confusion);
    return 0;
}

static int initialise(struct trainer *trainer, struct err *err)
{
    const struct job_init *init = &trainer->job->model.init;
    const struct model *model = trainer->prepared.model;
    int rc = init_all(trainer->strategy, model, err);
    if (rc != 0 || init->weights == NULL)
        return rc;
    rc = output_keep(&trainer->output, init->weights, err);
    if (rc == 0)
        rc = checkpoint_load_weights(trainer->strategy, model, init->weights, init->strict, err);
    if (rc != 0)
        snprintf(err->path, sizeof err->path, "/model/init/weights");
    return rc;
}

static int resume(struct trainer *trainer, struct err *err)
{
    char warning[512], line[600];
    struct checkpoint_position position = {.step = 0};
    if (!trainer->job->checkpoint.resume)
        return 0;
    int rc = checkpoint_resume(trainer->strategy, trainer->prepared.model, trainer->output.path,
                               identity_of(trainer->prepared.train), &position, warning, err);
    if (rc != 0)
        return rc;
    if (position.step > trainer->prepared.steps)
        return err_set(err, ERR_CHECKPOINT,
                       "%s has a checkpoint of step %lld, the job ends at step %lld: raise epochs "
                       "or max_steps, or choose another output directory",
                       trainer->output.path, (long long)position.step,
                       (long long)trainer->prepared.steps);
    trainer->step = trainer->saved_step = trainer->resumed_step = position.step;
    if (warning[0] != '\0') {
        snprintf(line, sizeof line, "warning: %s", warning);
        trainer->config->sink.say(trainer->config->sink.context, line);
    }
    return 0;
}

/* From here on the directory is this run's. */
static int begin(struct trainer *trainer, struct err *err)
{
    const struct loader_config loader = prepared_train_loader(&trainer->prepared, trainer->step);
    int rc = loader_start(&loader, &trainer->loader, err);
    if (rc == 0 && trainer->step == 0)
        rc = output_clear(&trainer->output, err);
    if (rc == 0)
        rc = output_write_job(&trainer->output, trainer->job, err);
    if (rc == 0)
        rc = metrics_open(trainer->output.path, trainer->step, &trainer->metrics, err);
    if (rc == 0)
        rc = record_open(trainer->output.path, &trainer->prepared.strategy, trainer->step,
                         &trainer->record, err);
    if (rc != 0)
        return rc;
    struct report report = report_of(trainer, REPORT_STARTED);
    snprintf(report.path, sizeof report.path, "%s", trainer->output.path);
    send(trainer, &report);
    trace_devices(trainer->config);
    trace_balance(trainer->config);
    trace_resting(trainer->config, &trainer->prepared);
    trace_unmatched(trainer->config, &trainer->prepared);
    trainer->started_time = trainer->saved_time = clock_seconds();
    return 0;
}

static int open_all(struct trainer *trainer, struct err *err)
{
    int rc = prepare(trainer->config, &trainer->prepared, err);
    if (rc == 0)
        rc = output_open(trainer->config->output, trainer->job->name, &trainer->output, err);
    if (rc != 0)
        return rc;
    rc = strategy_open(&trainer->prepared.strategy, &trainer->strategy, err);
    if (rc == 0)
        rc = resume(trainer, err);
    if (rc == 0 && trainer->step == 0)
        rc = initialise(trainer, err);
    if (rc == 0)
        rc = begin(trainer, err);
    if (rc != 0)
        output_abandon(&trainer->output);
    return rc;
}

static void close_all(struct trainer *trainer)
{
    metrics_close(&trainer->metrics);
    record_close(&trainer->record);
    output_close(&trainer->output);
    strategy_close(trainer->strategy);
    loader_stop(trainer->loader);
    prepared_done(&trainer->prepared);
}

static int train(const struct trainer_config *config, struct err *err)
{
    struct trainer trainer = {
        .config = config,
        .job = config->job,
        .output = {.lock = -1},
        .metrics = {.rows = {.fd = -1}},
        .record = {.rows = {.fd = -1}},
    };
    int rc = open_all(&trainer, err);
    if (rc == 0)
        rc = run_steps(&trainer, err);
    if (rc == 0)
        rc = finish(&trainer, err);
    close_all(&trainer);
    return rc;
}

int trainer_run(const struct trainer_config *config, struct err *err)
{
    static int (*const modes[])(const struct trainer_config *config, struct err *err) = {
        [MODE_TRAIN] = train,
        [MODE_EVALUATE] = inference_run,
        [MODE_PREDICT] = inference_run,
        [MODE_TUNE] = tune_run,
    };
    return modes[config->job->train.mode](config, err);
}
