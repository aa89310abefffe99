/* report.c: a worker's reports, one table for writing and reading them.
 *
 * The reader takes a user's words: every field has a type and a range, text is bounded, what the
 * table does not name is dropped.
 */
#include "proto/report.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json.h"

enum value_kind { VALUE_COUNT, VALUE_NUMBER, VALUE_FRACTION, VALUE_PATH, VALUE_CONFUSION };

struct value_def {
    const char *name;
    enum value_kind kind;
    size_t offset;
};

#define VALUE(name, kind, member)                                                                  \
    {                                                                                              \
        name, kind, offsetof(struct report, member)                                                \
    }
#define COUNTED(name) VALUE(#name, VALUE_COUNT, name)
#define NUMBER(name) VALUE(#name, VALUE_NUMBER, name)

static const struct {
    const char *name;
    struct value_def values[6];
} types[REPORT_TYPE_COUNT] = {
    [REPORT_STARTED] = {"started",
                        {COUNTED(steps), COUNTED(epochs), COUNTED(resumed_step),
                         VALUE("output", VALUE_PATH, path)}},
    [REPORT_PROGRESS] = {"progress",
                         {COUNTED(step), COUNTED(epoch), NUMBER(loss), NUMBER(samples_per_second),
                          NUMBER(seconds_left)}},
    [REPORT_VALIDATION] = {"validation",
                           {COUNTED(step), COUNTED(epoch), NUMBER(validation_loss),
                            VALUE("accuracy", VALUE_FRACTION, accuracy)}},
    [REPORT_CHECKPOINT] = {"checkpoint", {COUNTED(step), VALUE("path", VALUE_PATH, path)}},
    [REPORT_DONE] = {"done",
                     {COUNTED(step), VALUE("weights", VALUE_PATH, path), NUMBER(validation_loss),
                      VALUE("accuracy", VALUE_FRACTION, accuracy),
                      VALUE("confusion", VALUE_CONFUSION, confusion)}},
    [REPORT_FAILED] = {"failed", {{0}}}, /* its struct err is no plain value */
};

enum { CLASSES_MIN = 2, CLASSES_MAX = 16 }; /* of a confusion table: what a terminal can show */

static json_t *count_write(const void *field)
{
    return json_integer(*(const int64_t *)field);
}

static bool count_read(json_t *value, void *field)
{
    json_int_t count = json_integer_value(value);
    if (!json_is_integer(value) || count < 0)
        return false;
    *(int64_t *)field = count;
    return true;
}

static json_t *number_write(const void *field)
{
    return json_real(*(const double *)field);
}

static bool number_read(json_t *value, void *field)
{
    if (!json_is_number(value))
        return false;
    *(double *)field = json_number_value(value);
    return true;
}

static bool fraction_read(json_t *value, void *field)
{
    double fraction = json_number_value(value);
    return fraction >= 0 && fraction <= 1 && number_read(value, field);
}

static json_t *path_write(const void *field)
{
    return json_string(field);
}

static bool path_read(json_t *value, void *field)
{
    if (!json_is_string(value) || json_string_length(value) >= LIMIT_PATH_BYTES)
        return false;
    strcpy(field, json_string_value(value));
    return true;
}

static json_t *confusion_write(const void *field)
{
    return json_incref(*(json_t *const *)field);
}

/* A square of counts. */
static bool confusion_read(json_t *value, void *field)
{
    size_t n = json_array_size(value);
    if (n < CLASSES_MIN || n > CLASSES_MAX)
        return false;
    for (size_t i = 0; i < n; i++) {
        const json_t *row = json_array_get(value, i);
        if (json_array_size(row) != n)
            return false;
        for (size_t j = 0; j < n; j++) {
            int64_t count;
            if (!count_read(json_array_get(row, j), &count))
                return false;
        }
    }
    *(json_t **)field = json_incref(value);
    return true;
}

static bool always(const void *field)
{
    (void)field;
    return true;
}

static bool number_given(const void *field)
{
    return isfinite(*(const double *)field);
}

static bool path_given(const void *field)
{
    return *(const char *)field != '\0';
}

static bool confusion_given(const void *field)
{
    return *(json_t *const *)field != NULL;
}

static const struct {
    const char *allowed;
    bool (*given)(const void *field);
    json_t *(*write)(const void *field);
    bool (*read)(json_t *value, void *field);
} kinds[] = {
    [VALUE_COUNT] = {"an integer from 0", always, count_write, count_read},
    [VALUE_NUMBER] = {"a number", number_given, number_write, number_read},
    [VALUE_FRACTION] = {"a number from 0 to 1", number_given, number_write, fraction_read},
    [VALUE_PATH] = {"a path of less than 4096 bytes", path_given, path_write, path_read},
    [VALUE_CONFUSION] = {"a square of 2 to 16 rows of counts", confusion_given, confusion_write,
                         confusion_read},
};

static json_t *failed_to_json(const struct err *failure)
{
    json_t *root = json_pack("{s:s, s:s, s:s}", "type", types[REPORT_FAILED].name, "code",
                             err_name(failure->code), "message", failure->message);
    return failure->path[0] != '\0' ? json_put(root, "path", json_string(failure->path)) : root;
}

static json_t *to_json(const struct report *report)
{
    if (report->type == REPORT_FAILED)
        return failed_to_json(&report->err);
    json_t *root = json_pack("{s:s}", "type", types[report->type].name);
    const struct value_def *value = types[report->type].values;
    for (; value->name != NULL; value++) {
        const void *field = (const char *)report + value->offset;
        if (kinds[value->kind].given(field))
            root = json_put(root, value->name, kinds[value->kind].write(field));
    }
    return root;
}

char *report_format(const struct report *report)
{
    json_t *root = to_json(report);
    char *line = root != NULL ? json_line(root) : NULL;
    json_decref(root);
    return line;
}

static int find_type(const char *name)
{
    int type = 0;
    while (type < REPORT_TYPE_COUNT && strcmp(types[type].name, name) != 0)
        type++;
    return type;
}

static int read_failed(const json_t *root, struct report *report, struct err *err)
{
    const char *code = json_string_value(json_object_get(root, "code"));
    const char *message = json_string_value(json_object_get(root, "message"));
    const char *path = json_string_value(json_object_get(root, "path"));
    if (code == NULL || message == NULL)
        return err_set(err, ERR_PARSE, "a failed report needs code and message, two strings");
    err_at(&report->err, err_from_name(code), path != NULL ? path : "", "%s", message);
    return 0;
}

static int read_values(const json_t *root, struct report *report, struct err *err)
{
    const struct value_def *def = types[report->type].values;
    for (; def->name != NULL; def++) {
        json_t *value = json_object_get(root, def->name);
        char found[96];
        if (value == NULL || json_is_null(value))
            continue;
        if (!kinds[def->kind].read(value, (char *)report + def->offset))
            return err_set(err, ERR_PARSE, "%s of a %s report must be %s, found %s", def->name,
                           types[report->type].name, kinds[def->kind].allowed,
                           json_describe(value, found));
    }
    return 0;
}

static int from_json(const json_t *root, struct report *report, struct err *err)
{
    const char *name = json_string_value(json_object_get(root, "type"));
    if (name == NULL)
        return err_set(err, ERR_PARSE, "a report must be an object with a type");
    int type = find_type(name);
    if (type == REPORT_TYPE_COUNT)
        return err_set(err, ERR_PARSE, "unknown report type \"%.64s\"", name);
    report->type = (enum report_type)type;
    return type == REPORT_FAILED ? read_failed(root, report, err) : read_values(root, report, err);
}

int report_parse(const char *line, size_t size, struct report *ret_report, struct err *err)
{
    if (size > LIMIT_REPORT_BYTES)
        return err_set(err, ERR_PARSE, "a report is longer than %d bytes", LIMIT_REPORT_BYTES);
    json_t *root;
    int rc = json_load(line, size, ERR_PARSE, &root, err);
    if (rc != 0)
        return rc;
    struct report report = report_blank(REPORT_STARTED);
    rc = from_json(root, &report, err);
    json_decref(root);
    if (rc == 0)
        *ret_report = report;
    else
        report_done(&report);
    return rc;
}

struct report report_blank(enum report_type type)
{
    return (struct report){
        .type = type,
        .loss = NAN,
        .validation_loss = NAN,
        .accuracy = NAN,
        .samples_per_second = NAN,
        .seconds_left = NAN,
    };
}

void report_done(struct report *report)
{
    json_decref(report->confusion);
    report->confusion = NULL;
}
