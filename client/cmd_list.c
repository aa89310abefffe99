/* cmd_list.c: trainctl list. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/ctl.h"
#include "client/record.h"
#include "client/render/progress.h"
#include "client/render/table.h"
#include "client/render/units.h"
#include "proto/state.h"

/* "queued,running" as an array. */
static int read_states(const char *list, json_t *params, struct err *err)
{
    json_t *states = json_array();
    while (*list != '\0') {
        char name[32], allowed[STATE_LIST_SIZE];
        size_t n = strcspn(list, ",");
        snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), list);
        if (state_from_name(name) == STATE_COUNT) {
            json_decref(states);
            return err_set(err, ERR_USAGE, "--state: there is no state '%s'; allowed are %s", name,
                           state_list(allowed));
        }
        json_array_append_new(states, json_string(name));
        list += n + (list[n] == ',');
    }
    if (json_object_set_new(params, "states", states) < 0)
        return err_set(err, ERR_NOMEM, "out of memory");
    return 0;
}

/* All pages as one result. */
static int fetch(struct ctl *ctl, json_t *filter, json_t *all, struct err *err)
{
    for (;;) {
        json_t *page;
        int rc = ctl_call(ctl, METHOD_JOB_LIST, json_deep_copy(filter), &page, err);
        if (rc < 0)
            return rc;
        json_t *next = json_object_get(page, "next");
        bool more = json_is_integer(next) && json_array_size(json_object_get(page, "jobs")) > 0;
        if (json_array_extend(all, json_object_get(page, "jobs")) < 0 ||
            (more && json_object_set(filter, "cursor", next) < 0))
            rc = err_set(err, ERR_NOMEM, "out of memory");
        json_decref(page);
        if (rc < 0 || !more)
            return rc;
    }
}

static void add_devices(struct table *table, const struct style *style, const struct record *record)
{
    struct text devices = {0};
    progress_devices(&devices, style, record);
    if (devices.used == 0)
        text_fmt(&devices, "(%" PRId64 ")", record->n_devices);
    table_cell(table, COLOR_NONE, "%s", text_str(&devices));
    text_done(&devices);
}

/* Why it waits, how far it is, or how it ended. */
static void add_status(struct table *table, const struct record *record)
{
    char buf[UNITS_SIZE];
    if (record->state == STATE_COMPLETED && !isnan(record->accuracy))
        table_cell(table, COLOR_NONE, "accuracy %.4f", record->accuracy);
    else if (record_ended(record) && record->exit_message != NULL)
        table_cell(table, COLOR_NONE, "%s", record->exit_message);
    else if (record->reason != NULL && record->reason[0] != '\0')
        table_cell(table, COLOR_NONE, "%s", record->reason);
    else if (!record_ended(record) && record->step > 0)
        table_cell(table, COLOR_NONE, "%.0f%%, %s left", floor(record_fraction(record) * 100),
                   units_duration(record->seconds_left, buf));
    else
        table_cell(table, COLOR_NONE, "%s", "");
}

static void add_row(struct table *table, const struct style *style, const struct record *record,
                    double now)
{
    char buf[UNITS_SIZE], user[CTL_USER_SIZE];
    table_cell(table, COLOR_NONE, "%" PRId64, record->id);
    table_cell(table, COLOR_NONE, "%s", record->name != NULL ? record->name : "-");
    table_cell(table, COLOR_NONE, "%s", ctl_user(record->user, user));
    table_cell(table, progress_color(record->state), "%s", record->state_text);
    add_devices(table, style, record);
    table_cell(table, COLOR_NONE, "%s", units_duration(record_elapsed(record, now), buf));
    add_status(table, record);
}

static int print_jobs(const struct ctl *ctl, const json_t *jobs, struct err *err)
{
    static const struct table_column columns[] = {
        {.title = "ID", .right = true},       {.title = "NAME", .shrink = true},
        {.title = "USER", .shrink = true},    {.title = "STATE"},
        {.title = "DEVICES", .shrink = true}, {.title = "TIME", .right = true},
        {.title = "STATUS", .shrink = true}};
    struct table table;
    struct text text = {0};
    size_t i;
    json_t *job;
    table_init(&table, &ctl->style, columns, sizeof columns / sizeof *columns);
    json_array_foreach((json_t *)jobs, i, job)
    {
        struct record record;
        record_read(job, &record);
        add_row(&table, &ctl->style, &record, (double)time(NULL));
    }
    if (json_array_size(jobs) > 0)
        table_draw(&table, &text);
    table_done(&table);
    return ctl_print(&text, err);
}

int cmd_list(struct ctl *ctl, struct err *err)
{
    json_t *filter = json_object();
    json_t *result = json_pack("{s:[], s:n}", "jobs", "next");
    json_t *jobs = json_object_get(result, "jobs");
    int rc = filter != NULL && jobs != NULL ? 0 : err_set(err, ERR_NOMEM, "out of memory");
    if (rc == 0 && args_has(&ctl->args, OPT_STATE))
        rc = read_states(ctl->args.values[OPT_STATE], filter, err);
    if (rc == 0 && args_has(&ctl->args, OPT_MINE) &&
        json_object_set_new(filter, "user", json_integer((json_int_t)getuid())) < 0)
        rc = err_set(err, ERR_NOMEM, "out of memory");
    if (rc == 0)
        rc = fetch(ctl, filter, jobs, err);
    if (rc == 0)
        rc = args_has(&ctl->args, OPT_JSON) ? ctl_print_json(result, err)
                                            : print_jobs(ctl, jobs, err);
    json_decref(filter);
    json_decref(result);
    return rc;
}
