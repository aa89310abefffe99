/* cmd_devices.c: trainctl devices. */
#include "client/ctl.h"
#include "client/render/progress.h"
#include "client/render/table.h"
#include "client/render/units.h"

static const char *word(const json_t *device, const char *key)
{
    const char *value = json_string_value(json_object_get(device, key));
    return value != NULL ? value : "-";
}

static void add_row(struct table *table, const json_t *device, bool reasons)
{
    char buf[UNITS_SIZE];
    const json_t *job = json_object_get(device, "job");
    const char *reason = json_string_value(json_object_get(device, "reason"));
    table_cell(table, COLOR_BOLD, "%s", word(device, "name"));
    table_cell(table, progress_device_color(word(device, "state")), "%s", word(device, "state"));
    if (json_is_integer(job))
        table_cell(table, COLOR_NONE, "%" JSON_INTEGER_FORMAT, json_integer_value(job));
    else
        table_cell(table, COLOR_DIM, "-");
    table_cell(table, COLOR_NONE, "%zu", json_array_size(json_object_get(device, "cores")));
    table_cell(table, COLOR_NONE, "%s",
               units_bytes(json_integer_value(json_object_get(device, "memory_bytes")), buf));
    table_cell(table, COLOR_NONE, "%s", word(device, "model"));
    if (reasons)
        table_cell(table, COLOR_YELLOW, "%s", reason != NULL ? reason : "");
}

/* Whether somebody has said why a device is not in use. */
static bool any_reason(const json_t *devices)
{
    size_t i;
    json_t *device;
    json_array_foreach((json_t *)devices, i, device)
    {
        if (json_is_string(json_object_get(device, "reason")))
            return true;
    }
    return false;
}

static int print_devices(const struct ctl *ctl, const json_t *result, struct err *err)
{
    static const struct table_column columns[] = {{.title = "DEVICE"},
                                                  {.title = "STATE"},
                                                  {.title = "JOB", .right = true},
                                                  {.title = "CORES", .right = true},
                                                  {.title = "MEMORY", .right = true},
                                                  {.title = "MODEL", .shrink = true},
                                                  {.title = "WHY", .shrink = true}};
    struct table table;
    struct text text = {0};
    size_t i;
    json_t *device;
    const json_t *devices = json_object_get(result, "devices");
    bool reasons = any_reason(devices);
    table_init(&table, &ctl->style, columns, sizeof columns / sizeof *columns - !reasons);
    json_array_foreach((json_t *)devices, i, device) add_row(&table, device, reasons);
    table_draw(&table, &text);
    table_done(&table);
    return ctl_print(&text, err);
}

int ctl_print_devices(struct ctl *ctl, const json_t *result, struct err *err)
{
    return args_has(&ctl->args, OPT_JSON) ? ctl_print_json(result, err)
                                          : print_devices(ctl, result, err);
}

int cmd_devices(struct ctl *ctl, struct err *err)
{
    json_t *result;
    int rc = ctl_call(ctl, METHOD_DEVICE_LIST, json_object(), &result, err);
    if (rc < 0)
        return rc;
    rc = ctl_print_devices(ctl, result, err);
    json_decref(result);
    return rc;
}
