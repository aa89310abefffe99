/* progress.c: see progress.h. */
#include "client/render/progress.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "client/render/bar.h"
#include "client/render/units.h"

enum color progress_color(enum job_state state)
{
    static const enum color colors[STATE_COUNT + 1] = {
        [STATE_HELD] = COLOR_YELLOW,     [STATE_QUEUED] = COLOR_YELLOW,
        [STATE_STARTING] = COLOR_CYAN,   [STATE_RUNNING] = COLOR_CYAN,
        [STATE_STOPPING] = COLOR_CYAN,   [STATE_PREEMPTED] = COLOR_YELLOW,
        [STATE_COMPLETED] = COLOR_GREEN, [STATE_FAILED] = COLOR_RED,
        [STATE_CANCELLED] = COLOR_RED,   [STATE_TIMED_OUT] = COLOR_RED,
        [STATE_LOST] = COLOR_RED,
    };
    return colors[state];
}

enum color progress_device_color(const char *state)
{
    return strcmp(state, "free") == 0       ? COLOR_GREEN
           : strcmp(state, "assigned") == 0 ? COLOR_CYAN
                                            : COLOR_YELLOW;
}

void progress_state(struct text *text, const struct style *style, const struct record *record)
{
    struct text state = {0};
    text_safe(&state, style, record->state_text);
    text_paint(text, style, progress_color(record->state), text_str(&state));
    text->failed |= state.failed;
    text_done(&state);
}

void progress_devices(struct text *text, const struct style *style, const struct record *record)
{
    size_t i;
    json_t *device;
    json_array_foreach((json_t *)record->devices, i, device)
    {
        text_add(text, i == 0 ? "" : " ");
        text_safe(text, style, json_string_value(device));
    }
}

/* "running on cpu:0 cpu:1", "queued: waiting for 2 of 2 devices". */
static void add_state(struct text *text, const struct style *style, const struct record *record)
{
    progress_state(text, style, record);
    if (!record_ended(record) && json_array_size(record->devices) > 0) {
        text_add(text, " on ");
        progress_devices(text, style, record);
    }
    if (record->reason != NULL && record->reason[0] != '\0') {
        text_add(text, ": ");
        text_safe(text, style, record->reason);
    }
}

static void add_count(struct text *text, const char *what, int64_t at, int64_t of)
{
    if (at < 0)
        return;
    text_fmt(text, "%s %" PRId64, what, at);
    if (of > 0)
        text_fmt(text, "/%" PRId64, of);
}

/* Each number that is known behind `between`. */
static void add_numbers(struct text *text, const struct record *record, const char *between)
{
    char buf[UNITS_SIZE];
    if (!isnan(record->loss))
        text_fmt(text, "%sloss %s", between, units_number(record->loss, buf));
    if (record->rate > 0)
        text_fmt(text, "%s%s samples/s", between, units_si(record->rate, buf));
    if (record->seconds_left >= 0)
        text_fmt(text, "%s%s left", between, units_duration(record->seconds_left, buf));
}

static void add_accuracy(struct text *text, const struct record *record)
{
    char buf[UNITS_SIZE];
    if (!isnan(record->accuracy))
        text_fmt(text, "accuracy %.4f", record->accuracy);
    if (!isnan(record->validation_loss))
        text_fmt(text, "%sloss %s", isnan(record->accuracy) ? "" : ", ",
                 units_number(record->validation_loss, buf));
}

static void add_bar(struct text *text, const struct style *style, const struct record *record)
{
    double fraction = record_fraction(record);
    struct text bar = {0};
    bar_draw(&bar, style, fraction, style->columns >= 72 ? 28 : 10);
    text_add(text, "  ");
    text_paint(text, style, COLOR_CYAN, text_str(&bar));
    text_fmt(text, " %3.0f%%", floor(fraction * 100));
    text->failed |= bar.failed;
    text_done(&bar);
    if (record->epoch >= 0) {
        text_add(text, "  ");
        add_count(text, "epoch", record->epoch, record->epochs);
    }
    text_add(text, "  ");
    add_count(text, "step", record->step, record->steps);
    text_add(text, "\n");
}

void progress_block(struct text *text, const struct style *style, const struct record *record,
                    double now)
{
    char buf[UNITS_SIZE];
    text_fmt(text, "job %" PRId64 "  ", record->id);
    if (record->name != NULL) {
        struct text name = {0};
        text_safe(&name, style, record->name);
        text_paint(text, style, COLOR_BOLD, text_str(&name));
        text_add(text, "  ");
        text->failed |= name.failed;
        text_done(&name);
    }
    add_state(text, style, record);
    if (!isnan(record->started))
        text_fmt(text, "  %s", units_duration(floor(record_elapsed(record, now)), buf));
    text_add(text, "\n");
    if (record->state == STATE_QUEUED || record->step <= 0)
        return;
    add_bar(text, style, record);
    add_numbers(text, record, "  ");
    if (!isnan(record->accuracy))
        text_fmt(text, "  accuracy %.4f", record->accuracy);
    else if (!isnan(record->validation_loss))
        text_fmt(text, "  validation loss %s", units_number(record->validation_loss, buf));
    text_add(text, "\n");
}

void progress_state_line(struct text *text, const struct style *style, const struct record *record)
{
    text_fmt(text, "job %" PRId64 ": ", record->id);
    add_state(text, style, record);
    text_add(text, "\n");
}

void progress_step_line(struct text *text, const struct record *record)
{
    text_fmt(text, "job %" PRId64 ": ", record->id);
    add_count(text, "step", record->step, record->steps);
    text_fmt(text, " (%.0f%%)", floor(record_fraction(record) * 100));
    if (record->epoch >= 0) {
        text_add(text, ", ");
        add_count(text, "epoch", record->epoch, record->epochs);
    }
    add_numbers(text, record, ", ");
    text_add(text, "\n");
}

void progress_resumed_line(struct text *text, const struct record *record)
{
    text_fmt(text, "job %" PRId64 ": resumed after step %" PRId64 "\n", record->id,
             record->resumed_step);
}

void progress_validation_line(struct text *text, const struct record *record)
{
    text_fmt(text, "job %" PRId64 ": validation", record->id);
    if (record->epoch >= 0) {
        text_add(text, " after ");
        add_count(text, "epoch", record->epoch, record->epochs);
    }
    text_add(text, ": ");
    add_accuracy(text, record);
    text_add(text, "\n");
}
