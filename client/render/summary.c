/* summary.c: see summary.h. */
#include "client/render/summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/render/plot.h"
#include "client/render/progress.h"
#include "client/render/table.h"
#include "client/render/units.h"

enum { PLOT_COLUMNS = 64, PLOT_ROWS = 8, CLASSES_MAX = 16, LOG_FROM = 30 };

/* A job that does not train leaves other files, and its batches' losses are no curve. */
static bool trains(const struct record *record)
{
    static const char ending[] = ".safetensors";
    size_t size = record->weights != NULL ? strlen(record->weights) : 0;
    return size < sizeof ending ||
           strcmp(record->weights + size - (sizeof ending - 1), ending) == 0;
}

/* Points of the record's losses ([[step, loss], …]) that are what they should be. */
static size_t read_losses(const json_t *losses, struct plot_point *points)
{
    size_t i, n = 0;
    json_t *pair;
    json_array_foreach((json_t *)losses, i, pair)
    {
        const json_t *step = json_array_get(pair, 0), *loss = json_array_get(pair, 1);
        if (json_is_number(step) && json_is_number(loss))
            points[n++] = (struct plot_point){json_number_value(step), json_number_value(loss)};
    }
    return n;
}

/* A loss that fell to a small part of what it was is a flat line on a linear scale. */
static enum plot_scale scale_for(const struct plot_point *points, size_t n)
{
    double low = INFINITY, high = 0;
    for (size_t i = 0; i < n; i++) {
        low = fmin(low, points[i].y);
        high = fmax(high, points[i].y);
    }
    return low > 0 && high > LOG_FROM * low ? PLOT_LOG : PLOT_LINEAR;
}

void summary_losses(struct text *text, const struct style *style, const struct record *record)
{
    if (json_array_size(record->losses) < 2 || !trains(record))
        return;
    struct plot_point *points = calloc(json_array_size(record->losses), sizeof *points);
    if (points == NULL) {
        text->failed = true;
        return;
    }
    size_t n = read_losses(record->losses, points);
    size_t columns = style->columns < PLOT_COLUMNS ? style->columns : PLOT_COLUMNS;
    enum plot_scale scale = scale_for(points, n);
    if (n >= 2) {
        char first[UNITS_SIZE], last[UNITS_SIZE];
        text_fmt(text, "\nloss: %s at step %.0f, %s at step %.0f%s\n",
                 units_number(points[0].y, first), points[0].x, units_number(points[n - 1].y, last),
                 points[n - 1].x, scale == PLOT_LOG ? " (log scale)" : "");
        plot_draw(text, style, points, n, columns, PLOT_ROWS, scale);
    }
    free(points);
}

static void add_confusion_row(struct table *table, const json_t *row, size_t target, size_t classes)
{
    table_cell(table, COLOR_DIM, "%zu", target);
    for (size_t c = 0; c < classes; c++) {
        json_int_t count = json_integer_value(json_array_get(row, c));
        enum color color = c == target ? COLOR_GREEN : count > 0 ? COLOR_RED : COLOR_DIM;
        if (count == 0)
            table_cell(table, COLOR_DIM, ".");
        else
            table_cell(table, color, "%" JSON_INTEGER_FORMAT, count);
    }
}

void summary_confusion(struct text *text, const struct style *style, const struct record *record)
{
    struct table_column columns[CLASSES_MAX + 1];
    char titles[CLASSES_MAX][4];
    struct table table;
    size_t classes = json_array_size(record->confusion);
    if (classes < 2 || classes > CLASSES_MAX)
        return;
    columns[0] = (struct table_column){.title = "", .right = true};
    for (size_t c = 0; c < classes; c++) {
        snprintf(titles[c], sizeof titles[c], "%zu", c);
        columns[c + 1] = (struct table_column){.title = titles[c], .right = true};
    }
    table_init(&table, style, columns, classes + 1);
    table.gap = classes > 12 ? 1 : 2;
    for (size_t t = 0; t < classes; t++)
        add_confusion_row(&table, json_array_get(record->confusion, t), t, classes);
    text_add(text, "\nconfusion (a row a class, a column a prediction)\n");
    table_draw(&table, text);
    table_done(&table);
}

const char *summary_result_name(const struct record *record)
{
    return trains(record) ? "weights" : "results";
}

void summary_weights(struct text *text, const struct style *style, const struct record *record)
{
    if (record->weights == NULL)
        return;
    if (record->weights[0] != '/' && record->cwd != NULL) {
        text_safe(text, style, record->cwd);
        text_add(text, "/");
    }
    text_safe(text, style, record->weights);
}

void summary_exit(struct text *text, const struct style *style, const struct record *record)
{
    /* "cancelled: cancelled by uid 0" says it twice */
    bool said = record->exit_code != NULL && strcmp(record->exit_code, record->state_text) == 0;
    const char *words[] = {said ? NULL : record->exit_code, record->exit_path,
                           record->exit_message};
    const char *between = "";
    for (size_t i = 0; i < 3; i++) {
        if (words[i] == NULL || words[i][0] == '\0')
            continue;
        text_add(text, between);
        text_safe(text, style, words[i]);
        between = ": ";
    }
    if (between[0] == '\0' && record->exit_signal > 0)
        text_fmt(text, "killed by signal %" PRId64, record->exit_signal);
    else if (between[0] == '\0' && record->exit_status > 0)
        text_fmt(text, "exit status %" PRId64, record->exit_status);
    else if (between[0] == '\0')
        text_safe(text, style, record->reason);
}

void summary_checkpoint(struct text *text, const struct style *style, const struct record *record)
{
    if (record->state == STATE_COMPLETED || !record_ended(record) || record->checkpoint_step <= 0 ||
        record->output == NULL)
        return;
    text_fmt(text, "step %" PRId64 "; submit the job again with \"output\": \"",
             record->checkpoint_step);
    text_safe(text, style, record->output);
    text_add(text, "\" to go on from there");
}

static void add_validation(struct text *text, const struct record *record)
{
    char buf[UNITS_SIZE];
    if (!isnan(record->accuracy))
        text_fmt(text, "validation accuracy %.4f", record->accuracy);
    if (!isnan(record->validation_loss))
        text_fmt(text, "%s loss %s", isnan(record->accuracy) ? "validation" : ",",
                 units_number(record->validation_loss, buf));
    if (!isnan(record->accuracy) || !isnan(record->validation_loss))
        text_add(text, "\n");
}

static void add_end(struct text *text, const struct style *style, const struct record *record)
{
    char buf[UNITS_SIZE];
    text_fmt(text, "job %" PRId64 " ", record->id);
    progress_state(text, style, record);
    if (!isnan(record_elapsed(record, record->ended)))
        text_fmt(text, " after %s", units_duration(record_elapsed(record, record->ended), buf));
    if (json_array_size(record->devices) > 0) {
        text_add(text, " on ");
        progress_devices(text, style, record);
    }
    if (record->resumed_step > 0)
        text_fmt(text, ", resumed after step %" PRId64, record->resumed_step);
    text_add(text, "\n");
}

static void add_failure(struct text *text, const struct style *style, const struct record *record)
{
    struct text why = {0}, checkpoint = {0};
    summary_exit(&why, style, record);
    if (why.used > 0) {
        text_paint(text, style, COLOR_RED, text_str(&why));
        text_add(text, "\n");
    }
    text->failed |= why.failed;
    text_done(&why);
    text_fmt(text, "its output: trainctl logs %" PRId64 "\n", record->id);
    summary_checkpoint(&checkpoint, style, record);
    if (checkpoint.used > 0)
        text_fmt(text, "its checkpoint: %s\n", text_str(&checkpoint));
    text->failed |= checkpoint.failed;
    text_done(&checkpoint);
}

void summary_draw(struct text *text, const struct style *style, const struct record *record)
{
    add_end(text, style, record);
    if (record->state != STATE_COMPLETED) {
        add_failure(text, style, record);
        return;
    }
    if (record->steps > 0 && record->resumed_step == record->steps)
        text_add(text, "its output was trained to this end before: another \"output\" begins anew, "
                       "more epochs go on\n");
    add_validation(text, record);
    summary_losses(text, style, record);
    summary_confusion(text, style, record);
    if (record->weights != NULL) {
        text_fmt(text, "\n%s: ", summary_result_name(record));
        summary_weights(text, style, record);
        text_add(text, "\n");
    }
}
