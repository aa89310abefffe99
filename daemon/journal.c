/* journal.c: see journal.h. A table row for each type of report. */
#include "daemon/journal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/report.h"

static const char *const news_names[JOURNAL_NEWS_COUNT] = {
    [JOURNAL_NOTHING] = "nothing",
    [JOURNAL_PROGRESS] = "progress",
    [JOURNAL_VALIDATION] = "validation",
    [JOURNAL_CHECKPOINT] = "checkpoint",
};

const char *journal_news_name(enum journal_news news)
{
    return news_names[news];
}

/* A number that was not given (NAN) leaves the key as it is. */
static int put_number(json_t *object, const char *key, double value)
{
    return isfinite(value) ? json_object_set_new(object, key, json_real(value)) : 0;
}

static int put_integer(json_t *object, const char *key, int64_t value)
{
    return json_object_set_new(object, key, json_integer(value));
}

/* Losses are spread evenly over all steps, so the curve keeps its shape however long the job. */
static int put_loss(struct job_record *record, int64_t step, double loss)
{
    int64_t steps = json_integer_value(json_object_get(record->progress, "steps"));
    int64_t stride = steps / JOURNAL_LOSSES + 1;
    size_t n = json_array_size(record->losses);
    const json_t *last = n > 0 ? json_array_get(record->losses, n - 1) : NULL;
    if (!isfinite(loss) || n >= (size_t)2 * JOURNAL_LOSSES)
        return 0;
    /* Both are counts, so their difference fits whatever a user has reported. */
    if (last != NULL && step - json_integer_value(json_array_get(last, 0)) < stride)
        return 0;
    return json_array_append_new(record->losses, json_pack("[I, f]", (json_int_t)step, loss));
}

static int replace(char **text, const char *with)
{
    char *copy = strdup(with);
    if (copy == NULL)
        return -1;
    free(*text);
    *text = copy;
    return 0;
}

/* Each returns 0, or nonzero without memory. */
static int enter_started(struct job_record *record, const struct report *report)
{
    return put_integer(record->progress, "step", report->resumed_step) |
           put_integer(record->progress, "steps", report->steps) |
           put_integer(record->progress, "epochs", report->epochs) |
           put_integer(record->progress, "resumed_step", report->resumed_step) |
           (report->path[0] == '/' ? replace(&record->output, report->path) : 0);
}

static int enter_progress(struct job_record *record, const struct report *report)
{
    return put_integer(record->progress, "step", report->step) |
           put_integer(record->progress, "epoch", report->epoch) |
           put_number(record->progress, "loss", report->loss) |
           put_number(record->progress, "samples_per_second", report->samples_per_second) |
           put_number(record->progress, "seconds_left", report->seconds_left) |
           put_loss(record, report->step, report->loss);
}

static int enter_validation(struct job_record *record, const struct report *report)
{
    return put_number(record->progress, "validation_loss", report->validation_loss) |
           put_number(record->progress, "accuracy", report->accuracy);
}

static int enter_checkpoint(struct job_record *record, const struct report *report)
{
    return put_integer(record->progress, "checkpoint_step", report->step);
}

static int enter_done(struct job_record *record, const struct report *report)
{
    record->outcome = OUTCOME_DONE;
    json_decref(record->confusion);
    record->confusion = json_incref(report->confusion);
    return put_integer(record->progress, "step", report->step) |
           put_number(record->progress, "seconds_left", 0) | enter_validation(record, report) |
           (report->path[0] != '\0' ? replace(&record->weights, report->path) : 0);
}

static int enter_failed(struct job_record *record, const struct report *report)
{
    json_t *said = json_pack("{s:s, s:s, s:s}", "code", err_name(report->err.code), "message",
                             report->err.message, "path", report->err.path);
    if (said == NULL)
        return -1;
    record->outcome = OUTCOME_FAILED;
    json_decref(record->exit);
    record->exit = said;
    return 0;
}

static const struct {
    int (*enter)(struct job_record *record, const struct report *report);
    enum journal_news news;
} entries[REPORT_TYPE_COUNT] = {
    [REPORT_STARTED] = {enter_started, JOURNAL_PROGRESS},
    [REPORT_PROGRESS] = {enter_progress, JOURNAL_PROGRESS},
    [REPORT_VALIDATION] = {enter_validation, JOURNAL_VALIDATION},
    [REPORT_CHECKPOINT] = {enter_checkpoint, JOURNAL_CHECKPOINT},
    [REPORT_DONE] = {enter_done, JOURNAL_PROGRESS},
    [REPORT_FAILED] = {enter_failed, JOURNAL_NOTHING},
};

int journal_enter(struct job_record *record, const char *line, size_t size, int64_t next,
                  enum journal_news *ret_news, struct err *err)
{
    struct report report;
    record->report_offset = next;
    int rc = report_parse(line, size, &report, err);
    if (rc != 0)
        return rc;
    if (record->progress == NULL)
        record->progress = json_object();
    if (record->losses == NULL)
        record->losses = json_array();
    if (record->progress == NULL || record->losses == NULL ||
        entries[report.type].enter(record, &report) != 0)
        rc = err_set(err, ERR_NOMEM, "out of memory");
    else
        *ret_news = entries[report.type].news;
    report_done(&report);
    return rc;
}
