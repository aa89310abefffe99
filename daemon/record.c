/* record.c: see record.h. */
#include "daemon/record.h"

#include "proto/device_id.h"
#include "proto/json.h"

json_t *record_time(int64_t ns)
{
    return ns == 0 ? json_null() : json_real((double)ns / 1e9);
}

json_t *record_text(const char *text)
{
    return text == NULL ? json_null() : json_string(text);
}

json_t *record_devices(const struct devlist *devices)
{
    json_t *array = json_array();
    for (size_t i = 0; array != NULL && i < devices->n; i++) {
        char name[32];
        array = json_list_append(array, json_string(device_id_format(devices->id[i], name)));
    }
    return array;
}

static json_t *value_or_null(json_t *value)
{
    return value != NULL ? json_incref(value) : json_null();
}

/* The reason of a job that is not queued is its owner's: it may name files. */
static json_t *reason(const struct job_record *record, const char *why, bool full)
{
    if (record->state == STATE_QUEUED)
        return record_text(why);
    return full ? record_text(record->reason) : json_null();
}

static json_t *exit_of(const struct job_record *record)
{
    return value_or_null(state_ended(record->state) ? record->exit : NULL);
}

/* Merges `more` into `object`; both are consumed. */
static json_t *merge(json_t *object, json_t *more)
{
    if (object == NULL || more == NULL || json_object_update(object, more) != 0) {
        json_decref(object);
        object = NULL;
    }
    json_decref(more);
    return object;
}

json_t *record_changed(const struct job_record *record, const char *why, bool full)
{
    json_t *seen =
        json_pack("{s:s, s:o, s:o, s:o, s:o}", "state", state_name(record->state), "reason",
                  reason(record, why, full), "started", record_time(record->started_ns), "ended",
                  record_time(record->ended_ns), "devices", record_devices(&record->devices));
    if (!full)
        return seen;
    return merge(seen,
                 json_pack("{s:o, s:o, s:o, s:o, s:o}", "progress", value_or_null(record->progress),
                           "exit", exit_of(record), "weights", record_text(record->weights),
                           "confusion", value_or_null(record->confusion), "output",
                           record_text(record->output)));
}

json_t *record_json(const struct job_record *record, const char *why, bool full)
{
    json_t *object = json_pack(
        "{s:I, s:I, s:o, s:I, s:I, s:o, s:o}", "id", (json_int_t)record->id, "user",
        (json_int_t)record->uid, "submitted", record_time(record->submitted_ns), "n_devices",
        (json_int_t)record->want.n, "priority", (json_int_t)record->priority, "time_limit",
        record->time_limit_s > 0 ? json_integer(record->time_limit_s) : json_null(), "after",
        value_or_null(record->after));
    object = merge(object, record_changed(record, why, full));
    if (!full)
        return object;
    return merge(object,
                 json_pack("{s:o, s:o, s:o}", "name", record_text(record->name), "cwd",
                           record_text(record->cwd), "losses", value_or_null(record->losses)));
}

json_t *record_transition(const struct job_transition *transition)
{
    bool first = transition->from == STATE_COUNT;
    return json_pack("{s:o, s:o, s:s, s:o, s:o}", "time", record_time(transition->time_ns), "from",
                     record_text(first ? NULL : state_name(transition->from)), "to",
                     state_name(transition->to), "actor",
                     transition->by_user ? json_integer((json_int_t)transition->uid)
                                         : json_string("daemon"),
                     "reason", record_text(transition->reason));
}
