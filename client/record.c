/* record.c: see record.h. */
#include "client/record.h"

#include <math.h>
#include <stddef.h>

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static int64_t integer(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? json_integer_value(value) : -1;
}

static const char *string(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static const json_t *array(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_array(value) ? value : NULL;
}

static void read_progress(const json_t *progress, struct record *record)
{
    record->has_progress = json_is_object(progress);
    record->step = integer(progress, "step");
    record->steps = integer(progress, "steps");
    record->epoch = integer(progress, "epoch");
    record->epochs = integer(progress, "epochs");
    record->resumed_step = integer(progress, "resumed_step");
    record->checkpoint_step = integer(progress, "checkpoint_step");
    record->loss = number(progress, "loss");
    record->rate = number(progress, "samples_per_second");
    record->seconds_left = number(progress, "seconds_left");
    record->accuracy = number(progress, "accuracy");
    record->validation_loss = number(progress, "validation_loss");
}

static void read_exit(const json_t *exit, struct record *record)
{
    record->has_exit = json_is_object(exit);
    record->exit_status = integer(exit, "status");
    record->exit_signal = integer(exit, "signal");
    record->exit_code = string(exit, "code");
    record->exit_message = string(exit, "message");
    record->exit_path = string(exit, "path");
}

void record_read(const json_t *json, struct record *ret)
{
    struct record record = {
        .id = integer(json, "id"),
        .user = integer(json, "user"),
        .n_devices = integer(json, "n_devices"),
        .name = string(json, "name"),
        .reason = string(json, "reason"),
        .cwd = string(json, "cwd"),
        .output = string(json, "output"),
        .weights = string(json, "weights"),
        .state_text = string(json, "state"),
        .submitted = number(json, "submitted"),
        .started = number(json, "started"),
        .ended = number(json, "ended"),
        .devices = array(json, "devices"),
        .confusion = array(json, "confusion"),
        .losses = array(json, "losses"),
        .history = array(json, "history"),
        .document = json_object_get(json, "document"),
    };
    if (record.state_text == NULL)
        record.state_text = "unknown";
    record.state = state_from_name(record.state_text);
    read_progress(json_object_get(json, "progress"), &record);
    read_exit(json_object_get(json, "exit"), &record);
    *ret = record;
}

bool record_ended(const struct record *record)
{
    return record->state != STATE_COUNT && state_ended(record->state);
}

double record_fraction(const struct record *record)
{
    if (record->state == STATE_COMPLETED)
        return 1;
    if (record->step <= 0 || record->steps <= 0)
        return 0;
    double fraction = (double)record->step / (double)record->steps;
    return fraction < 1 ? fraction : 1;
}

double record_elapsed(const struct record *record, double now)
{
    double seconds = (isnan(record->ended) ? now : record->ended) - record->started;
    return seconds < 0 ? 0 : seconds;
}
