/* cmd_check.c: trainctl check and trainctl plan: what can be known of a job without a daemon. The
 * parser checks the document here; shapes, files and memory are traind-worker's, run as the caller.
 */
#include <inttypes.h>
#include <stdint.h>

#include "client/plan.h"
#include "client/plan_profile.h"
#include "client/render/table.h"
#include "client/render/units.h"
#include "client/worker.h"

static int64_t integer(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static int64_t most_memory(const json_t *devices)
{
    int64_t most = 0;
    size_t i;
    json_t *device;
    json_array_foreach((json_t *)devices, i, device) if (integer(device, "peak_bytes") > most)
        most = integer(device, "peak_bytes");
    return most;
}

static int print_verdict(const struct ctl *ctl, const json_t *plan, struct err *err)
{
    char parameters[UNITS_SIZE], steps[UNITS_SIZE], memory[UNITS_SIZE];
    struct text text = {0};
    int64_t n_steps = integer(plan, "steps"); /* 0: the job does not train */
    const json_t *devices = json_object_get(plan, "devices");
    size_t n = json_array_size(devices);
    text_safe(&text, &ctl->style, ctl->document.name);
    if (plan == NULL)
        text_add(&text, ": ok (the document; traind-worker was not found, so that shapes and files "
                        "were not looked at)\n");
    else
        text_fmt(&text, ": ok (%s parameters, %s%s%zu device%s, %s%s)\n",
                 units_count(integer(plan, "parameters"), parameters),
                 n_steps > 0 ? units_count(n_steps, steps) : "", n_steps > 0 ? " steps, " : "", n,
                 n == 1 ? "" : "s", units_bytes(most_memory(devices), memory),
                 n == 1 ? "" : " each");
    return ctl_print(&text, err);
}

int cmd_check(struct ctl *ctl, struct err *err)
{
    json_t *plan = NULL;
    const char *file = ctl->args.words[0];
    int rc = worker_exists() ? plan_make(ctl, file, &plan, err)
                             : document_read(file, &ctl->document, err);
    if (rc < 0)
        return rc;
    if (args_has(&ctl->args, OPT_JSON)) {
        json_t *verdict = json_pack("{s:b, s:O?}", "valid", true, "plan", plan);
        rc = verdict != NULL ? ctl_print_json(verdict, err)
                             : err_set(err, ERR_NOMEM, "out of memory");
        json_decref(verdict);
    } else
        rc = print_verdict(ctl, plan, err);
    json_decref(plan);
    return rc;
}

static void add_devices(struct text *text, const struct style *style, const json_t *plan)
{
    static const struct table_column columns[] = {{.title = "DEVICE"},
                                                  {.title = "SAMPLES", .right = true},
                                                  {.title = "STATE", .right = true},
                                                  {.title = "ARENA", .right = true},
                                                  {.title = "INPUTS", .right = true},
                                                  {.title = "PEAK", .right = true},
                                                  {.title = "IN FLIGHT", .right = true}};
    static const char *const keys[] = {"state_bytes", "arena_bytes", "input_bytes", "peak_bytes",
                                       "held_bytes"};
    /* Only stages have micro-batches in flight. */
    size_t i, n_keys = json_object_get(plan, "pipeline") != NULL ? 5 : 4;
    struct table table;
    json_t *device;
    table_init(&table, style, columns, 2 + n_keys);
    json_array_foreach(json_object_get(plan, "devices"), i, device)
    {
        char buf[UNITS_SIZE];
        const char *name = json_string_value(json_object_get(device, "device"));
        table_cell(&table, COLOR_BOLD, "%s", name != NULL ? name : "-");
        table_cell(&table, COLOR_NONE, "%" PRId64, integer(device, "samples"));
        for (size_t k = 0; k < n_keys; k++)
            table_cell(&table, COLOR_NONE, "%s", units_bytes(integer(device, keys[k]), buf));
    }
    text_add(text, "\n");
    table_draw(&table, text);
    table_done(&table);
}

static void add_names(struct text *text, const json_t *names)
{
    size_t i;
    json_t *name;
    json_array_foreach((json_t *)names, i, name)
        text_fmt(text, "%s%s", i > 0 ? " " : "", json_string_value(name));
}

static void add_stages(struct text *text, const struct style *style, const json_t *pipeline)
{
    static const struct table_column columns[] = {
        {.title = "STAGE", .right = true},
        {.title = "BEGINS WITH", .shrink = true},
        {.title = "DEVICES"},
        {.title = "SLOTS", .right = true},
        {.title = "BUSY", .right = true},
    };
    struct table table;
    size_t i;
    json_t *stage;
    table_init(&table, style, columns, sizeof columns / sizeof *columns);
    json_array_foreach(json_object_get(pipeline, "stages"), i, stage)
    {
        struct text devices = {0};
        const char *begin = json_string_value(json_object_get(stage, "begin"));
        add_names(&devices, json_object_get(stage, "devices"));
        table_cell(&table, COLOR_NONE, "%zu", i);
        table_cell(&table, COLOR_BOLD, "%s", begin != NULL ? begin : "-");
        table_cell(&table, COLOR_NONE, "%s", text_str(&devices));
        table_cell(&table, COLOR_NONE, "%" PRId64, integer(stage, "slots"));
        table_cell(&table, COLOR_NONE, "%.3g ms",
                   1e3 * json_number_value(json_object_get(stage, "busy_seconds")));
        text_done(&devices);
    }
    text_add(text, "\n");
    table_draw(&table, text);
    table_done(&table);
}

/* Of mode `stages`. */
static void add_pipeline(struct text *text, const struct style *style, const json_t *pipeline)
{
    const char *schedule = json_string_value(json_object_get(pipeline, "schedule"));
    const char *grid = json_string_value(json_object_get(pipeline, "grid"));
    int64_t microbatches = integer(pipeline, "microbatches");
    if (pipeline == NULL)
        return;
    add_stages(text, style, pipeline);
    text_fmt(text, "\nschedule    %s, %" PRId64 " micro-batch%s\n",
             schedule != NULL ? schedule : "-", microbatches, microbatches == 1 ? "" : "es");
    text_fmt(text, "estimate    %.3g ms a step, of which devices rest %.1f %%\n\n",
             1e3 * json_number_value(json_object_get(pipeline, "step_seconds")),
             100 * json_number_value(json_object_get(pipeline, "bubble")));
    text_clip_lines(text, style, grid != NULL ? grid : "");
}

static void add_layers(struct text *text, const struct style *style, const json_t *plan)
{
    static const struct table_column columns[] = {{.title = "LAYER", .shrink = true},
                                                  {.title = "TYPE"},
                                                  {.title = "OUTPUT", .shrink = true},
                                                  {.title = "PARAMETERS", .right = true}};
    struct table table;
    size_t i;
    json_t *layer;
    table_init(&table, style, columns, sizeof columns / sizeof *columns);
    json_array_foreach(json_object_get(plan, "layers"), i, layer)
    {
        char buf[UNITS_SIZE];
        struct text shape = {0};
        const char *name = json_string_value(json_object_get(layer, "name"));
        const char *type = json_string_value(json_object_get(layer, "type"));
        plan_add_shape(&shape, json_object_get(layer, "output_shape"));
        table_cell(&table, COLOR_BOLD, "%s", name != NULL ? name : "-");
        table_cell(&table, COLOR_NONE, "%s", type != NULL ? type : "-");
        table_cell(&table, COLOR_NONE, "%s", text_str(&shape));
        table_cell(&table, COLOR_NONE, "%s", units_count(integer(layer, "parameters"), buf));
        text_done(&shape);
    }
    text_add(text, "\n");
    table_draw(&table, text);
    table_done(&table);
}

static int print_plan(const struct ctl *ctl, const json_t *plan, struct err *err)
{
    char buf[UNITS_SIZE];
    struct text text = {0};
    double flops = json_number_value(json_object_get(plan, "flops_per_step"));
    text_fmt(&text, "parameters  %s\n", units_count(integer(plan, "parameters"), buf));
    if (integer(plan, "steps") > 0) { /* else the job does not train */
        text_fmt(&text, "steps       %s", units_count(integer(plan, "steps"), buf));
        text_fmt(&text, ", %s an epoch\n", units_count(integer(plan, "steps_per_epoch"), buf));
        text_fmt(&text, "a step      %sFLOP\n", units_si(flops, buf));
    }
    add_devices(&text, &ctl->style, plan);
    add_layers(&text, &ctl->style, plan);
    add_pipeline(&text, &ctl->style, json_object_get(plan, "pipeline"));
    plan_add_profile(&text, &ctl->style, json_object_get(plan, "profile"));
    return ctl_print(&text, err);
}

int cmd_plan(struct ctl *ctl, struct err *err)
{
    json_t *plan;
    if (args_has(&ctl->args, OPT_TRACE) && !args_has(&ctl->args, OPT_PROFILE))
        return err_set(err, ERR_USAGE, "--trace needs --profile");
    int rc = plan_make(ctl, ctl->args.words[0], &plan, err);
    if (rc < 0)
        return rc;
    rc = args_has(&ctl->args, OPT_JSON) ? ctl_print_json(plan, err) : print_plan(ctl, plan, err);
    json_decref(plan);
    return rc;
}
