/* cmd_weights.c: trainctl weights: files of weights, which traind-worker reads, compares and
 * converts as the caller. */
#include <inttypes.h>

#include "client/ctl.h"
#include "client/plan.h"
#include "client/render/table.h"
#include "client/render/units.h"
#include "client/worker.h"

static const char *string(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "-";
}

static int64_t integer(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* Calls the worker and prints what it says: as it is under --json, else by `print`. */
static int call(struct ctl *ctl, const char *const *words, size_t n_words,
                int (*print)(struct ctl *ctl, const json_t *result, struct err *err),
                struct err *err)
{
    json_t *result;
    int rc = worker_call(words, n_words, "", 0, &result, err);
    if (rc < 0)
        return rc;
    if (json_is_false(json_object_get(result, "equal")))
        ctl->status = STATUS_FAILED;
    rc = args_has(&ctl->args, OPT_JSON) ? ctl_print_json(result, err) : print(ctl, result, err);
    json_decref(result);
    return rc;
}

static void add_tensors(struct text *text, const struct ctl *ctl, const json_t *tensors)
{
    static const struct table_column columns[] = {{.title = "NAME", .shrink = true},
                                                  {.title = "DTYPE"},
                                                  {.title = "SHAPE", .shrink = true},
                                                  {.title = "BYTES", .right = true}};
    struct table table;
    size_t i;
    json_t *tensor;
    table_init(&table, &ctl->style, columns, sizeof columns / sizeof *columns);
    json_array_foreach((json_t *)tensors, i, tensor)
    {
        char buf[UNITS_SIZE];
        struct text shape = {0};
        plan_add_shape(&shape, json_object_get(tensor, "shape"));
        table_cell(&table, COLOR_BOLD, "%s", string(tensor, "name"));
        table_cell(&table, COLOR_NONE, "%s", string(tensor, "dtype"));
        table_cell(&table, COLOR_NONE, "%s", text_str(&shape));
        table_cell(&table, COLOR_NONE, "%s", units_bytes(integer(tensor, "bytes"), buf));
        text_done(&shape);
    }
    table_draw(&table, text);
    table_done(&table);
}

static int print_inspection(struct ctl *ctl, const json_t *result, struct err *err)
{
    char elements[UNITS_SIZE], bytes[UNITS_SIZE];
    struct text text = {0};
    const json_t *tensors = json_object_get(result, "tensors");
    const char *key;
    json_t *value;
    add_tensors(&text, ctl, tensors);
    size_t n = json_array_size(tensors);
    text_fmt(&text, "\n%zu tensor%s, %s elements, %s\n", n, n == 1 ? "" : "s",
             units_count(integer(result, "elements"), elements),
             units_bytes(integer(result, "bytes"), bytes));
    json_object_foreach(json_object_get(result, "metadata"), key, value)
    {
        text_safe(&text, &ctl->style, key);
        text_add(&text, ": ");
        text_safe(&text, &ctl->style, json_string_value(value));
        text_add(&text, "\n");
    }
    return ctl_print(&text, err);
}

static int inspect(struct ctl *ctl, const char *const *words, struct err *err)
{
    return call(ctl, (const char *const[]){"inspect", "--", words[0]}, 3, print_inspection, err);
}

static const char *number(const json_t *row, const char *key, char buf[static UNITS_SIZE])
{
    const json_t *value = json_object_get(row, key);
    return json_is_number(value) ? units_number(json_number_value(value), buf)
           : value != NULL       ? "nan"
                                 : "-";
}

static void add_differences(struct text *text, const struct ctl *ctl, const json_t *rows)
{
    static const struct table_column columns[] = {{.title = "NAME", .shrink = true},
                                                  {.title = "DIFFERS"},
                                                  {.title = "MAX|A-B|", .right = true},
                                                  {.title = "/MAX|B|", .right = true}};
    struct table table;
    size_t i;
    json_t *row;
    table_init(&table, &ctl->style, columns, sizeof columns / sizeof *columns);
    json_array_foreach((json_t *)rows, i, row)
    {
        char buf[UNITS_SIZE];
        table_cell(&table, COLOR_BOLD, "%s", string(row, "name"));
        table_cell(&table, COLOR_NONE, "%s", string(row, "what"));
        table_cell(&table, COLOR_NONE, "%s", number(row, "max_abs", buf));
        table_cell(&table, COLOR_NONE, "%s", number(row, "relative", buf));
    }
    table_draw(&table, text);
    table_done(&table);
}

static int print_diff(struct ctl *ctl, const json_t *result, struct err *err)
{
    struct text text = {0};
    const json_t *rows = json_object_get(result, "differences");
    if (json_array_size(rows) > 0) {
        add_differences(&text, ctl, rows);
        text_fmt(&text, "\nthey differ in %zu of %" PRId64 " tensors\n", json_array_size(rows),
                 integer(result, "tensors"));
    } else
        text_fmt(&text, "equal in all tensors: %" PRId64 "\n", integer(result, "tensors"));
    return ctl_print(&text, err);
}

static int diff(struct ctl *ctl, const char *const *words, struct err *err)
{
    return call(ctl, (const char *const[]){"diff", "--", words[0], words[1]}, 4, print_diff, err);
}

static int print_conversion(struct ctl *ctl, const json_t *result, struct err *err)
{
    struct text text = {0};
    text_safe(&text, &ctl->style, string(result, "written"));
    text_fmt(&text, ": %" PRId64 " keys, %s\n", integer(result, "keys"), string(result, "to"));
    return ctl_print(&text, err);
}

static int convert(struct ctl *ctl, const char *const *words, struct err *err)
{
    const char *to = ctl->args.values[OPT_TO];
    if (to == NULL)
        return err_set(err, ERR_USAGE, "weights convert needs --to parallel or --to single");
    return call(ctl, (const char *const[]){"convert", "--to", to, "--", words[0], words[1]}, 6,
                print_conversion, err);
}

int cmd_weights(struct ctl *ctl, struct err *err)
{
    static const struct subcommand table[] = {
        {"inspect", 1, inspect}, {"diff", 2, diff}, {"convert", 2, convert}, {0}};
    return ctl_subcommand(ctl, table, err);
}
