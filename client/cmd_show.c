/* cmd_show.c: trainctl show. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "client/ctl.h"
#include "client/record.h"
#include "client/render/progress.h"
#include "client/render/summary.h"
#include "client/render/units.h"

static void add_field(struct text *text, const struct style *style, const char *name,
                      const char *value)
{
    if (value == NULL || value[0] == '\0')
        return;
    text_fmt(text, "%-11s ", name);
    text_safe(text, style, value);
    text_add(text, "\n");
}

static void add_time(struct text *text, const struct style *style, const char *name, double seconds)
{
    char buf[UNITS_SIZE];
    if (!isnan(seconds))
        add_field(text, style, name, units_time(seconds, buf));
}

static void add_head(struct text *text, const struct style *style, const struct record *record)
{
    struct text devices = {0}, weights = {0};
    char user[CTL_USER_SIZE];
    text_fmt(text, "%-11s %" PRId64 "\n", "job", record->id);
    add_field(text, style, "name", record->name);
    text_fmt(text, "%-11s ", "state");
    progress_state(text, style, record);
    text_add(text, "\n");
    if (!record->has_exit) /* which says the same in full */
        add_field(text, style, "reason", record->reason);
    add_field(text, style, "user", ctl_user(record->user, user));
    progress_devices(&devices, style, record);
    if (devices.used == 0 && record->n_devices > 0)
        text_fmt(&devices, "%" PRId64 " asked for", record->n_devices);
    add_field(text, style, "devices", text_str(&devices));
    add_time(text, style, "submitted", record->submitted);
    add_time(text, style, "started", record->started);
    add_time(text, style, "ended", record->ended);
    add_field(text, style, "directory", record->cwd);
    add_field(text, style, "output", record->output);
    summary_weights(&weights, style, record);
    add_field(text, style, summary_result_name(record), text_str(&weights));
    text->failed |= devices.failed || weights.failed;
    text_done(&devices);
    text_done(&weights);
}

static void add_exit(struct text *text, const struct style *style, const struct record *record)
{
    struct text why = {0}, checkpoint = {0};
    if (record->has_exit && record->state != STATE_COMPLETED) {
        summary_exit(&why, style, record);
        text_fmt(text, "%-11s %s\n", "exit", text_str(&why));
    }
    summary_checkpoint(&checkpoint, style, record);
    if (checkpoint.used > 0)
        text_fmt(text, "%-11s %s\n", "checkpoint", text_str(&checkpoint));
    text->failed |= why.failed || checkpoint.failed;
    text_done(&why);
    text_done(&checkpoint);
}

static void add_progress(struct text *text, const struct record *record)
{
    char buf[UNITS_SIZE];
    if (!record->has_progress || record->step < 0)
        return;
    text_fmt(text, "%-11s step %" PRId64 " of %" PRId64, "progress", record->step, record->steps);
    if (record->epoch >= 0)
        text_fmt(text, ", epoch %" PRId64, record->epoch);
    if (!isnan(record->loss))
        text_fmt(text, ", loss %s", units_number(record->loss, buf));
    if (!record_ended(record) && record->seconds_left >= 0)
        text_fmt(text, ", %s left", units_duration(record->seconds_left, buf));
    text_add(text, "\n");
    if (!isnan(record->accuracy))
        text_fmt(text, "%-11s accuracy %.4f, loss %s\n", "validation", record->accuracy,
                 units_number(record->validation_loss, buf));
    else if (!isnan(record->validation_loss))
        text_fmt(text, "%-11s loss %s\n", "validation", units_number(record->validation_loss, buf));
}

static void add_actor(struct text *text, const struct style *style, const json_t *actor)
{
    if (json_is_integer(actor))
        text_fmt(text, "uid %" JSON_INTEGER_FORMAT, json_integer_value(actor));
    else
        text_safe(text, style, json_string_value(actor));
}

static void add_history(struct text *text, const struct style *style, const struct record *record)
{
    size_t i;
    json_t *move;
    if (json_array_size(record->history) > 0)
        text_add(text, "\n");
    json_array_foreach((json_t *)record->history, i, move)
    {
        char buf[UNITS_SIZE];
        const char *reason = json_string_value(json_object_get(move, "reason"));
        text_fmt(text, "%s  ", units_time(json_number_value(json_object_get(move, "time")), buf));
        text_safe(text, style, json_string_value(json_object_get(move, "to")));
        text_add(text, " by ");
        add_actor(text, style, json_object_get(move, "actor"));
        if (reason != NULL && reason[0] != '\0') {
            text_add(text, ": ");
            text_safe(text, style, reason);
        }
        text_add(text, "\n");
    }
}

static int print_record(const struct ctl *ctl, const json_t *json, struct err *err)
{
    const struct style *style = &ctl->style;
    struct record record;
    struct text text = {0};
    record_read(json, &record);
    add_head(&text, style, &record);
    add_progress(&text, &record);
    add_exit(&text, style, &record);
    add_history(&text, style, &record);
    summary_losses(&text, style, &record);
    summary_confusion(&text, style, &record);
    return ctl_print(&text, err);
}

int cmd_show(struct ctl *ctl, struct err *err)
{
    int64_t id;
    json_t *record;
    int rc = args_id(ctl->args.words[0], &id, err);
    if (rc == 0)
        rc = ctl_call(ctl, METHOD_JOB_SHOW, json_pack("{s:I}", "id", (json_int_t)id), &record, err);
    if (rc < 0)
        return rc;
    rc = args_has(&ctl->args, OPT_JSON) ? ctl_print_json(record, err)
                                        : print_record(ctl, record, err);
    json_decref(record);
    return rc;
}
