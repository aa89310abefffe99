/* cmd_model.c: trainctl model show: what a preset stands for; trainctl model summary: what a job's
 * layers make and cost, as traind-worker plans it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/plan.h"
#include "client/render/table.h"
#include "client/render/units.h"
#include "proto/job.h"
#include "proto/json.h"

/* The end of a value: the next comma that is in no list or object. */
static const char *value_end(const char *at)
{
    int depth = 0;
    for (; *at != '\0' && (*at != ',' || depth > 0); at++)
        depth += (*at == '[' || *at == '{') - (*at == ']' || *at == '}');
    return at;
}

/* As JSON, or as a string that nobody had to quote. */
static json_t *read_value(const char *text, size_t size)
{
    json_t *value = json_loadb(text, size, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    return value != NULL ? value : json_stringn(text, size);
}

/* "num_classes=10,hidden=[256,128]" as an object; NULL: an empty one. */
static int read_settings(const char *text, json_t **ret_args, struct err *err)
{
    json_t *args = json_object();
    int rc = args != NULL ? 0 : err_set(err, ERR_NOMEM, "out of memory");
    while (rc == 0 && text != NULL && *text != '\0') {
        size_t size = strcspn(text, "=,");
        const char *end = value_end(text + size);
        if (size == 0 || text[size] != '=')
            rc = err_set(err, ERR_USAGE, "--set takes NAME=VALUE,..., found '%s'", text);
        else if (json_object_setn_new(
                     args, text, size,
                     read_value(text + size + 1, (size_t)(end - text - (ptrdiff_t)size - 1))) != 0)
            rc = err_set(err, ERR_USAGE, "--set: '%s' is not UTF-8", text);
        text = *end == ',' ? end + 1 : end;
    }
    if (rc == 0)
        *ret_args = args;
    else
        json_decref(args);
    return rc;
}

static int print_model(const struct ctl *ctl, const json_t *model, struct err *err)
{
    struct text text = {0};
    if (args_has(&ctl->args, OPT_JSON))
        return ctl_print_json(model, err);
    char *pretty = json_pretty(model);
    if (pretty == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    text_add(&text, pretty);
    free(pretty);
    return ctl_print(&text, err);
}

static int show(struct ctl *ctl, const char *const *words, struct err *err)
{
    json_t *args = NULL, *model = NULL;
    int rc = read_settings(ctl->args.values[OPT_SET], &args, err);
    if (rc < 0)
        return rc;
    rc = job_preset(words[0], args, &model, err);
    if (rc == 0)
        rc = print_model(ctl, model, err);
    json_decref(model);
    json_decref(args);
    return rc;
}

static const char *string(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "-";
}

static int64_t integer(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* "cpu:0,cpu:1" */
static void add_names(struct text *text, const json_t *names)
{
    size_t i;
    json_t *name;
    json_array_foreach((json_t *)names, i, name)
        text_fmt(text, "%s%s", i == 0 ? "" : ",", json_string_value(name));
}

static void add_row(struct table *table, const json_t *layer)
{
    char buf[UNITS_SIZE];
    struct text shape = {0}, devices = {0};
    plan_add_shape(&shape, json_object_get(layer, "output_shape"));
    add_names(&devices, json_object_get(layer, "devices"));
    table_cell(table, COLOR_BOLD, "%s", string(layer, "name"));
    table_cell(table, COLOR_NONE, "%s", string(layer, "type"));
    table_cell(table, COLOR_NONE, "%s", text_str(&shape));
    table_cell(table, COLOR_NONE, "%s", units_count(integer(layer, "parameters"), buf));
    table_cell(table, COLOR_NONE, "%s",
               units_si(json_number_value(json_object_get(layer, "flops")), buf));
    table_cell(table, COLOR_NONE, "%s", units_bytes(integer(layer, "activation_bytes"), buf));
    table_cell(table, COLOR_NONE, "%s", text_str(&devices));
    text_done(&shape);
    text_done(&devices);
}

/* "504 FLOP", "4.82 MFLOP" */
static void add_flops(struct text *text, double flops)
{
    char buf[UNITS_SIZE];
    units_si(flops, buf);
    text_fmt(text, "%s%sFLOP", buf, strchr(buf, ' ') == NULL ? " " : "");
}

static void add_totals(struct text *text, const json_t *plan)
{
    char buf[UNITS_SIZE];
    double flops = 0;
    int64_t bytes = 0;
    size_t i;
    json_t *layer;
    json_array_foreach(json_object_get(plan, "layers"), i, layer)
    {
        flops += json_number_value(json_object_get(layer, "flops"));
        bytes += integer(layer, "activation_bytes");
    }
    text_fmt(text, "\nparameters  %s\nforward     ", units_count(integer(plan, "parameters"), buf));
    add_flops(text, flops);
    text_fmt(text, " and %s of activations a sample\na step      ", units_bytes(bytes, buf));
    add_flops(text, json_number_value(json_object_get(plan, "flops_per_step")));
    text_add(text, "\n");
}

static int print_summary(const struct ctl *ctl, const json_t *plan, struct err *err)
{
    static const struct table_column columns[] = {
        {.title = "LAYER", .shrink = true},  {.title = "TYPE", .shrink = true},
        {.title = "OUTPUT", .shrink = true}, {.title = "PARAMETERS", .right = true},
        {.title = "FLOP", .right = true},    {.title = "BYTES", .right = true},
        {.title = "DEVICE", .shrink = true}};
    struct table table;
    struct text text = {0};
    size_t i;
    json_t *layer;
    table_init(&table, &ctl->style, columns, sizeof columns / sizeof *columns);
    json_array_foreach(json_object_get(plan, "layers"), i, layer) add_row(&table, layer);
    table_draw(&table, &text);
    table_done(&table);
    add_totals(&text, plan);
    return ctl_print(&text, err);
}

static int summary(struct ctl *ctl, const char *const *words, struct err *err)
{
    json_t *plan;
    int rc = plan_make(ctl, words[0], &plan, err);
    if (rc < 0)
        return rc;
    rc = args_has(&ctl->args, OPT_JSON) ? ctl_print_json(json_object_get(plan, "layers"), err)
                                        : print_summary(ctl, plan, err);
    json_decref(plan);
    return rc;
}

int cmd_model(struct ctl *ctl, struct err *err)
{
    static const struct subcommand table[] = {{"show", 1, show}, {"summary", 1, summary}, {0}};
    return ctl_subcommand(ctl, table, err);
}
