/* overview.c: see overview.h. Each part is drawn as long as it likes and cut to the lines that are
 * left: a title, the devices, the jobs, and a line of keys at the bottom. */
#include "client/render/overview.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "client/render/bar.h"
#include "client/render/plot.h"
#include "client/render/progress.h"
#include "client/render/sparkline.h"
#include "client/render/summary.h"
#include "client/render/table.h"
#include "client/render/units.h"

enum { WIDE = 100 /* columns, from which on a job has a bar and a longer trail */ };

/* Adds `part` cut to the width and to `lines` lines; returns how many it took. */
static size_t add_part(struct text *text, const struct style *style, const struct text *part,
                       size_t lines)
{
    struct text cut = {0};
    size_t n = text_clip_lines(&cut, style, text_str(part));
    const char *end = text_str(&cut);
    size_t taken = 0;
    for (; taken < n && taken < lines; taken++)
        end = strchr(end, '\n') + 1;
    text_addn(text, text_str(&cut), (size_t)(end - text_str(&cut)));
    text->failed |= cut.failed || part->failed;
    text_done(&cut);
    return taken;
}

static const struct overview_job *chosen(const struct overview *overview)
{
    for (size_t i = 0; i < overview->n_jobs; i++)
        if (overview->jobs[i].chosen)
            return &overview->jobs[i];
    return NULL;
}

static const char *word(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "-";
}

static void add_title(struct text *text, const struct style *style, const struct overview *overview)
{
    char buf[UNITS_SIZE];
    size_t n_free = 0, running = 0, waiting = 0, i;
    json_t *device;
    json_array_foreach((json_t *)overview->devices, i, device) n_free +=
        strcmp(word(device, "state"), "free") == 0;
    for (i = 0; i < overview->n_jobs; i++) {
        const struct record *record = overview->jobs[i].record;
        running += !record_ended(record) && json_array_size(record->devices) > 0;
        waiting += !record_ended(record) && json_array_size(record->devices) == 0;
    }
    text_paint(text, style, COLOR_BOLD, "traind");
    text_fmt(text, "  %s  devices free: %zu of %zu  jobs running: %zu, waiting: %zu",
             units_time(overview->now, buf), n_free, json_array_size(overview->devices), running,
             waiting);
    if (overview->whose != NULL) {
        text_add(text, "  only of ");
        text_safe(text, style, overview->whose);
    }
    text_add(text, "\n\n");
}

static const struct overview_job *holder(const struct overview *overview, const json_t *device)
{
    const json_t *id = json_object_get(device, "job");
    for (size_t i = 0; json_is_integer(id) && i < overview->n_jobs; i++)
        if (overview->jobs[i].record->id == json_integer_value(id))
            return &overview->jobs[i];
    return NULL;
}

static void add_device(struct table *table, const struct overview *overview, const json_t *device)
{
    char buf[UNITS_SIZE];
    const json_t *id = json_object_get(device, "job");
    const struct overview_job *job = holder(overview, device);
    const json_t *use = json_object_get(device, "utilisation");
    table_cell(table, COLOR_BOLD, "%s", word(device, "name"));
    table_cell(table, progress_device_color(word(device, "state")), "%s", word(device, "state"));
    if (json_is_integer(id))
        table_cell(table, COLOR_NONE, "%" JSON_INTEGER_FORMAT, json_integer_value(id));
    else
        table_cell(table, COLOR_DIM, "-");
    table_cell(table, COLOR_NONE, "%s", job != NULL ? job->user : "");
    table_cell(table, COLOR_NONE, "%s",
               units_bytes(json_integer_value(json_object_get(device, "memory_bytes")), buf));
    if (json_is_number(use))
        table_cell(table, COLOR_NONE, "%.0f %%", 100 * json_number_value(use));
    else
        table_cell(table, COLOR_DIM, "-");
    table_cell(table, COLOR_NONE, "%s", word(device, "model"));
}

static void add_devices(struct text *text, const struct style *style,
                        const struct overview *overview)
{
    static const struct table_column columns[] = {
        {.title = "DEVICE"},
        {.title = "STATE"},
        {.title = "JOB", .right = true},
        {.title = "USER", .shrink = true},
        {.title = "MEMORY", .right = true},
        {.title = "USE", .right = true},
        {.title = "MODEL", .shrink = true},
    };
    struct table table;
    size_t i;
    json_t *device;
    table_init(&table, style, columns, sizeof columns / sizeof *columns);
    json_array_foreach((json_t *)overview->devices, i, device) add_device(&table, overview, device);
    table_draw(&table, text);
    table_done(&table);
    text_add(text, "\n");
}

/* A bar where there is room for one, else the percentage. */
static void add_progress(struct table *table, const struct style *style,
                         const struct record *record)
{
    struct text text = {0};
    double fraction = record_fraction(record);
    if (fraction > 0 && style->columns >= WIDE) {
        bar_draw(&text, style, fraction, 12);
        text_add(&text, " ");
    }
    if (fraction > 0)
        text_fmt(&text, "%.0f%%", floor(fraction * 100));
    table_cell(table, COLOR_NONE, "%s", text_str(&text));
    table->failed |= text.failed;
    text_done(&text);
}

static void add_count(struct table *table, int64_t at, int64_t of)
{
    if (at < 0)
        table_cell(table, COLOR_NONE, "%s", "");
    else if (of > 0)
        table_cell(table, COLOR_NONE, "%" PRId64 "/%" PRId64, at, of);
    else
        table_cell(table, COLOR_NONE, "%" PRId64, at);
}

static void add_loss(struct table *table, const struct style *style, const struct overview_job *job)
{
    char buf[UNITS_SIZE];
    struct text text = {0};
    size_t most = style->columns >= WIDE ? OVERVIEW_TRAIL : OVERVIEW_TRAIL / 2;
    size_t first = job->n_trail > most ? job->n_trail - most : 0;
    sparkline_draw(&text, style, job->trail + first, job->n_trail - first);
    table_cell(table, COLOR_NONE, "%s",
               isnan(job->record->loss) ? "" : units_number(job->record->loss, buf));
    table_cell(table, COLOR_CYAN, "%s", text_str(&text));
    table->failed |= text.failed;
    text_done(&text);
}

static void add_job(struct table *table, const struct style *style, const struct overview_job *job)
{
    char buf[UNITS_SIZE];
    const struct record *record = job->record;
    bool live = !record_ended(record);
    const char *mark = style->utf8 ? "▸" : ">";
    table_cell(table, COLOR_BOLD, "%s", job->chosen ? mark : "");
    table_cell(table, COLOR_NONE, "%" PRId64, record->id);
    table_cell(table, job->chosen ? COLOR_BOLD : COLOR_NONE, "%s",
               record->name != NULL ? record->name : "-");
    table_cell(table, COLOR_NONE, "%s", job->user);
    table_cell(table, progress_color(record->state), "%s", record->state_text);
    add_progress(table, style, record);
    add_count(table, record->epoch, record->epochs);
    add_loss(table, style, job);
    table_cell(table, COLOR_NONE, "%s",
               live && record->rate > 0 ? units_si(record->rate, buf) : "");
    table_cell(table, COLOR_NONE, "%s",
               live && record->seconds_left >= 0 ? units_duration(record->seconds_left, buf) : "");
    table_cell(table, COLOR_NONE, "%s", record->reason != NULL ? record->reason : "");
}

/* The first of the jobs that `room` lines show, so that the chosen one is among them. */
static size_t first_shown(const struct overview *overview, size_t room)
{
    const struct overview_job *job = chosen(overview);
    size_t at = job != NULL ? (size_t)(job - overview->jobs) : 0;
    size_t first = at < room / 2 ? 0 : at - room / 2;
    size_t last = overview->n_jobs > room ? overview->n_jobs - room : 0;
    return first < last ? first : last;
}

static void add_jobs(struct text *text, const struct style *style, const struct overview *overview,
                     size_t room)
{
    static const struct table_column columns[] = {
        {.title = ""},
        {.title = "ID", .right = true},
        {.title = "NAME", .shrink = true},
        {.title = "USER", .shrink = true},
        {.title = "STATE"},
        {.title = "DONE"},
        {.title = "EPOCH", .right = true},
        {.title = "LOSS", .right = true},
        {.title = ""},
        {.title = "1/s", .right = true},
        {.title = "LEFT", .right = true},
        {.title = "WHY", .shrink = true},
    };
    struct table table;
    size_t first = first_shown(overview, room);
    if (overview->n_jobs == 0) {
        text_add(text, "no job is queued or running\n");
        return;
    }
    table_init(&table, style, columns, sizeof columns / sizeof *columns);
    table.gap = style->columns >= WIDE ? 2 : 1;
    for (size_t i = first; i < overview->n_jobs && i < first + room; i++)
        add_job(&table, style, &overview->jobs[i]);
    table_draw(&table, text);
    table_done(&table);
}

/* How many devices a pipeline has: a stage each. 0: the document leaves it open. */
static size_t pipeline_size(const json_t *parallel, size_t n_devices)
{
    const json_t *split = json_object_get(parallel, "split");
    json_int_t replicas = json_integer_value(json_object_get(parallel, "replicas"));
    size_t n = replicas > 0 ? n_devices / (size_t)replicas : n_devices;
    return json_array_size(split) + 1 == n ? n : 0;
}

/* What a device does in the job, as far as the document says. */
static void add_role(struct text *text, const json_t *document, size_t device, size_t n_devices)
{
    const json_t *parallel = json_object_get(document, "parallel");
    const char *mode = word(parallel, "mode");
    size_t n_stages = pipeline_size(parallel, n_devices);
    if (strcmp(mode, "replicate") == 0)
        text_fmt(text, "  replica %zu", device);
    else if (strcmp(mode, "stages") == 0 && n_stages == n_devices)
        text_fmt(text, "  stage %zu", device);
    else if (strcmp(mode, "stages") == 0 && n_stages > 0)
        text_fmt(text, "  pipeline %zu, stage %zu", device / n_stages, device % n_stages);
}

static void add_roles(struct text *text, const struct style *style, const struct record *record)
{
    size_t i, n = json_array_size(record->devices);
    json_t *device;
    text_add(text, n > 0 ? "\n" : "");
    json_array_foreach((json_t *)record->devices, i, device)
    {
        text_add(text, "  ");
        text_safe(text, style, json_string_value(device));
        add_role(text, record->document, i, n);
        text_add(text, "\n");
    }
}

static void add_one(struct text *text, const struct style *style, const struct overview_job *job,
                    double now)
{
    progress_block(text, style, job->record, now);
    add_roles(text, style, job->record);
    if (record_ended(job->record) && job->record->state != STATE_COMPLETED) {
        text_add(text, "\n  ");
        summary_exit(text, style, job->record);
        text_add(text, "\n");
    }
    summary_losses(text, style, job->record);
    summary_confusion(text, style, job->record);
}

static void add_bottom(struct text *text, const struct style *style,
                       const struct overview *overview)
{
    struct text line = {0}, whole = {0};
    if (overview->message != NULL) {
        text_safe(&line, style, overview->message);
        text_paint(&whole, style, COLOR_YELLOW, text_str(&line));
    } else {
        text_paint(&whole, style, COLOR_DIM,
                   overview->one ? "Enter back  c cancel  h hold  r release  q leave"
                                 : "Up/Down choose  Enter look into  c cancel  h hold  r release"
                                   "  u of one user  q leave");
    }
    text_clip(text, style, text_str(&whole), style->columns);
    text->failed |= line.failed || whole.failed;
    text_done(&line);
    text_done(&whole);
}

void overview_draw(struct text *text, const struct style *style, const struct overview *overview)
{
    struct text part = {0};
    size_t left = style->rows - 1; /* but the bottom */
    const struct overview_job *job = chosen(overview);
    add_title(&part, style, overview);
    left -= add_part(text, style, &part, left);
    text_clear(&part);
    if (!overview->one || job == NULL) {
        add_devices(&part, style, overview);
        left -= add_part(text, style, &part, left / 2);
        text_clear(&part);
        add_jobs(&part, style, overview, left > 1 ? left - 1 : 1);
    } else {
        add_one(&part, style, job, overview->now);
    }
    left -= add_part(text, style, &part, left);
    text_done(&part);
    text_repeat(text, "\n", left);
    add_bottom(text, style, overview);
    text_add(text, "\n");
}
