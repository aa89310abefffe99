#include "proto/methods.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "proto/json.h"

#define PARAMS(...)                                                                                \
    (const struct param_def[])                                                                     \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define COUNT(...) (sizeof(PARAMS(__VA_ARGS__)) / sizeof(struct param_def))
#define METHOD(name, summary, ...)                                                                 \
    {                                                                                              \
        name, PARAMS(__VA_ARGS__), COUNT(__VA_ARGS__), summary                                     \
    }
#define METHOD_BARE(name, summary)                                                                 \
    {                                                                                              \
        name, NULL, 0, summary                                                                     \
    }

static const struct method_def methods[METHOD_COUNT] = {
    [METHOD_SERVER_INFO] = METHOD_BARE("server.info", "the daemon, who it takes you for, limits"),
    [METHOD_SERVER_DESCRIBE] =
        METHOD_BARE("server.describe", "every method, its parameters and the error names"),
    [METHOD_JOB_SUBMIT] = METHOD("job.submit", "queue a job document; dry_run only checks it",
                                 {"job", PARAM_OBJECT, true}, {"cwd", PARAM_STRING, true},
                                 {"key", PARAM_STRING, false}, {"dry_run", PARAM_BOOL, false}),
    [METHOD_JOB_LIST] = METHOD("job.list", "jobs, oldest first", {"states", PARAM_STRINGS, false},
                               {"user", PARAM_INT, false}, {"limit", PARAM_INT, false},
                               {"cursor", PARAM_INT, false}),
    [METHOD_JOB_SHOW] = METHOD("job.show", "the whole record of a job", {"id", PARAM_INT, true}),
    [METHOD_JOB_WAIT] = METHOD("job.wait", "reply when all of the jobs (or any) have ended",
                               {"ids", PARAM_INTS, true}, {"any", PARAM_BOOL, false},
                               {"timeout", PARAM_NUMBER, false}),
    [METHOD_JOB_WATCH] =
        METHOD("job.watch", "the jobs now, then an event at every change",
               {"ids", PARAM_INTS, false}, {"user", PARAM_INT, false}, {"since", PARAM_INT, false}),
    [METHOD_JOB_LOGS] = METHOD("job.logs", "a job's output from a byte on", {"id", PARAM_INT, true},
                               {"offset", PARAM_INT, false}, {"follow", PARAM_BOOL, false}),
    [METHOD_JOB_CANCEL] = METHOD("job.cancel", "end queued and running jobs, all or none",
                                 {"ids", PARAM_INTS, true}, {"reason", PARAM_STRING, false}),
    [METHOD_JOB_HOLD] = METHOD("job.hold", "keep queued jobs from starting, all or none",
                               {"ids", PARAM_INTS, true}, {"reason", PARAM_STRING, false}),
    [METHOD_JOB_RELEASE] = METHOD("job.release", "let held jobs start again, all or none",
                                  {"ids", PARAM_INTS, true}, {"reason", PARAM_STRING, false}),
    [METHOD_JOB_UPDATE] =
        METHOD("job.update", "change the priority or the time limit of jobs, all or none",
               {"ids", PARAM_INTS, true}, {"priority", PARAM_INT, false},
               {"time_limit", PARAM_STRING, false}, {"reason", PARAM_STRING, false}),
    [METHOD_DEVICE_LIST] = METHOD_BARE("device.list", "the devices and who has them"),
    [METHOD_DEVICE_DRAIN] =
        METHOD("device.drain", "let nothing start on devices; for administrators",
               {"devices", PARAM_STRINGS, false}, {"reason", PARAM_STRING, false}),
    [METHOD_DEVICE_RESUME] =
        METHOD("device.resume", "let jobs start there again", {"devices", PARAM_STRINGS, false},
               {"reason", PARAM_STRING, false}),
};

static bool is_string(const json_t *value)
{
    return json_is_string(value);
}

static bool is_integer(const json_t *value)
{
    return json_is_integer(value);
}

static bool is_number(const json_t *value)
{
    return json_is_number(value);
}

static bool is_boolean(const json_t *value)
{
    return json_is_boolean(value);
}

static bool is_object(const json_t *value)
{
    return json_is_object(value);
}

static const struct {
    const char *name;                /* for programs, in server.describe */
    const char *allowed;             /* for people */
    bool (*is)(const json_t *value); /* a list: each of its entries */
    bool list;
} types[] = {
    [PARAM_STRING] = {"string", "a string", is_string, false},
    [PARAM_INT] = {"integer", "an integer", is_integer, false},
    [PARAM_NUMBER] = {"number", "a number", is_number, false},
    [PARAM_BOOL] = {"boolean", "true or false", is_boolean, false},
    [PARAM_OBJECT] = {"object", "an object", is_object, false},
    [PARAM_STRINGS] = {"strings", "a list of strings", is_string, true},
    [PARAM_INTS] = {"integers", "a list of integers", is_integer, true},
};

/* What keeps `value` from being of this type: itself or the first wrong entry; NULL: nothing. */
static const json_t *find_wrong(enum param_type type, const json_t *value)
{
    if (!types[type].list)
        return types[type].is(value) ? NULL : value;
    if (!json_is_array(value))
        return value;
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!types[type].is(json_array_get(value, i)))
            return json_array_get(value, i);
    return NULL;
}

const struct method_def *method_def(enum method method)
{
    return &methods[method];
}

enum method method_find(const char *name)
{
    int method = 0;
    while (method < METHOD_COUNT && strcmp(methods[method].name, name) != 0)
        method++;
    return (enum method)method;
}

static const struct param_def *find_param(const struct method_def *def, const char *name)
{
    for (size_t i = 0; i < def->n_params; i++)
        if (strcmp(def->params[i].name, name) == 0)
            return &def->params[i];
    return NULL;
}

static int refuse_param(const struct method_def *def, const char *name, struct err *err)
{
    enum { PARAMS_MAX = 8 };
    const char *known[PARAMS_MAX];
    char list[256] = "";
    size_t used = 0;
    assert(def->n_params <= PARAMS_MAX);
    for (size_t i = 0; i < def->n_params; i++) {
        known[i] = def->params[i].name;
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", known[i]);
    }
    if (def->n_params == 0)
        return err_set(err, ERR_PARAMS, "%s takes no parameters, found \"%.64s\"", def->name, name);
    const char *nearest = json_nearest(name, known, def->n_params);
    if (nearest != NULL)
        return err_set(err, ERR_PARAMS, "unknown parameter \"%.64s\" of %s; did you mean \"%s\"?",
                       name, def->name, nearest);
    return err_set(err, ERR_PARAMS, "unknown parameter \"%.64s\" of %s; allowed are %s", name,
                   def->name, list);
}

int method_unknown(const char *name, struct err *err)
{
    const char *known[METHOD_COUNT];
    for (int i = 0; i < METHOD_COUNT; i++)
        known[i] = methods[i].name;
    const char *nearest = json_nearest(name, known, METHOD_COUNT);
    if (nearest != NULL)
        return err_set(err, ERR_METHOD, "there is no method \"%.64s\"; did you mean \"%s\"?", name,
                       nearest);
    return err_set(err, ERR_METHOD, "there is no method \"%.64s\"; server.describe lists them",
                   name);
}

int method_refuse(struct err *err, const json_t *params, const char *name, const char *format, ...)
{
    char allowed[128], found[96];
    va_list args;
    va_start(args, format);
    vsnprintf(allowed, sizeof allowed, format, args);
    va_end(args);
    return err_set(err, ERR_PARAMS, "%s must be %s, found %s", name, allowed,
                   json_describe(json_object_get(params, name), found));
}

int method_check(enum method method, const json_t *params, struct err *err)
{
    const struct method_def *def = &methods[method];
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)params, name, value)
    {
        const struct param_def *param = find_param(def, name);
        char found[96];
        if (param == NULL)
            return refuse_param(def, name, err);
        const json_t *wrong = find_wrong(param->type, value);
        if (wrong != NULL)
            return err_set(err, ERR_PARAMS, "%s of %s must be %s, found %s%s", name, def->name,
                           types[param->type].allowed, json_describe(wrong, found),
                           wrong != value ? " in it" : "");
    }
    for (size_t i = 0; i < def->n_params; i++)
        if (def->params[i].required && json_object_get(params, def->params[i].name) == NULL)
            return err_set(err, ERR_PARAMS, "%s needs %s, %s", def->name, def->params[i].name,
                           types[def->params[i].type].allowed);
    return 0;
}

static json_t *describe_params(const struct method_def *def)
{
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < def->n_params; i++) {
        const struct param_def *param = &def->params[i];
        json_t *row = json_pack("{s:s, s:s, s:b}", "name", param->name, "type",
                                types[param->type].name, "required", param->required);
        list = json_list_append(list, row);
    }
    return list;
}

static json_t *describe_methods(void)
{
    json_t *list = json_array();
    for (int i = 0; list != NULL && i < METHOD_COUNT; i++) {
        json_t *params = describe_params(&methods[i]);
        json_t *row = params == NULL ? NULL
                                     : json_pack("{s:s, s:s, s:o}", "name", methods[i].name,
                                                 "summary", methods[i].summary, "params", params);
        list = json_list_append(list, row);
    }
    return list;
}

static json_t *describe_errors(void)
{
    json_t *list = json_array();
    for (int i = 0; list != NULL && i < ERR_COUNT; i++) {
        int code = -1 - i;
        json_t *row = json_pack("{s:s, s:i}", "name", err_name(code), "code", err_rpc_code(code));
        list = json_list_append(list, row);
    }
    return list;
}

json_t *method_describe(void)
{
    json_t *described = describe_methods();
    json_t *errors = describe_errors();
    if (described == NULL || errors == NULL) {
        json_decref(described);
        json_decref(errors);
        return NULL;
    }
    return json_pack("{s:o, s:o}", "methods", described, "errors", errors);
}
