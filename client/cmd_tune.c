/* cmd_tune.c: trainctl tune: queues the job in mode "tune", follows it, and shows what it measured:
 * a table, three pictures, and a copy of the job with the quickest split size. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/follow.h"
#include "client/record.h"
#include "client/render/chart.h"
#include "client/render/table.h"
#include "client/submit.h"
#include "proto/limits.h"

enum { WAYS_MOST = 64 };

static const char seconds_label[] = "time a step (s), mean ± standard deviation";

struct way {
    const char *name; /* borrowed from the JSON */
    int64_t split_size;
    double mean, deviation, waiting;
};

struct tuning {
    struct way ways[WAYS_MOST]; /* single, model_parallel, then pipelined ones by size */
    size_t n;
    const struct way *best; /* NULL: none is pipelined */
    const json_t *split;    /* that was measured, borrowed; NULL: the stages name it */
};

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static int read_tuning(const json_t *json, struct tuning *ret_tuning, struct err *err)
{
    struct tuning *tuning = ret_tuning;
    const json_t *best = json_object_get(json, "best_split_size");
    size_t i;
    json_t *row;
    *tuning = (struct tuning){.n = 0};
    json_array_foreach(json_object_get(json, "ways"), i, row)
    {
        struct way way = {json_string_value(json_object_get(row, "way")),
                          json_integer_value(json_object_get(row, "split_size")),
                          number(row, "mean"), number(row, "deviation"), number(row, "waiting")};
        if (tuning->n == WAYS_MOST || way.name == NULL)
            break;
        tuning->ways[tuning->n] = way;
        if (json_is_integer(best) && strcmp(way.name, "pipelined") == 0 &&
            way.split_size == json_integer_value(best))
            tuning->best = &tuning->ways[tuning->n];
        tuning->n++;
    }
    tuning->split = json_object_get(json, "split");
    return tuning->n >= 2 ? 0 : err_set(err, ERR_PARSE, "nothing has been measured");
}

static void add_table(struct text *text, const struct style *style, const struct tuning *tuning)
{
    static const struct table_column columns[] = {{.title = "WAY"},
                                                  {.title = "SPLIT SIZE", .right = true},
                                                  {.title = "SECONDS A STEP", .right = true},
                                                  {.title = "DEVIATION", .right = true},
                                                  {.title = "WAITING", .right = true},
                                                  {.title = "SPEED", .right = true}};
    struct table table;
    table_init(&table, style, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < tuning->n; i++) {
        const struct way *way = &tuning->ways[i];
        enum color color = way == tuning->best ? COLOR_GREEN : COLOR_NONE;
        table_cell(&table, color, "%s", way->name);
        if (way->split_size > 0)
            table_cell(&table, color, "%" PRId64, way->split_size);
        else
            table_cell(&table, color, "-");
        table_cell(&table, color, "%.4g", way->mean);
        table_cell(&table, color, "%.2g", way->deviation);
        table_cell(&table, color, "%.0f %%", 100 * way->waiting);
        table_cell(&table, color, "%.2fx", tuning->ways[0].mean / way->mean);
    }
    table_draw(&table, text);
    table_done(&table);
}

static int make_path(char *buf, size_t size, const char *directory, const char *name,
                     struct err *err)
{
    int n = snprintf(buf, size, "%s/%s", directory, name);
    return n > 0 && (size_t)n < size ? 0
                                     : err_set(err, ERR_IO, "%s: the path is too long", directory);
}

/* Opens a file there, has it filled, and closes it. */
static int write_file(const char *directory, const char *name,
                      int (*fill)(const void *from, FILE *out, struct err *err), const void *from,
                      struct err *err)
{
    char path[LIMIT_PATH_BYTES];
    int rc = make_path(path, sizeof path, directory, name, err);
    FILE *out = rc == 0 ? fopen(path, "we") : NULL;
    if (rc != 0)
        return rc;
    if (out == NULL)
        return err_errno(err, errno, "cannot create %s", path);
    rc = fill(from, out, err);
    if (fclose(out) != 0 && rc == 0)
        rc = err_errno(err, errno, "cannot write %s", path);
    return rc;
}

static int fill_svg(const void *from, FILE *out, struct err *err)
{
    struct text text = {0};
    int rc = chart_svg(from, 1, &text, err);
    if (rc == 0)
        fputs(text_str(&text), out); /* the close says what failed */
    text_done(&text);
    return rc;
}

static int fill_png(const void *from, FILE *out, struct err *err)
{
    return chart_png(from, 1, out, err);
}

static int fill_json(const void *from, FILE *out, struct err *err)
{
    if (json_dumpf(from, out, JSON_INDENT(2)) != 0 || fputc('\n', out) == EOF)
        return err_set(err, ERR_IO, "cannot write the job");
    return 0;
}

static int write_chart(const char *directory, const char *name, const struct chart *chart,
                       struct err *err)
{
    char file[64];
    snprintf(file, sizeof file, "%s.svg", name);
    int rc = write_file(directory, file, fill_svg, chart, err);
    snprintf(file, sizeof file, "%s.png", name);
    return rc != 0 ? rc : write_file(directory, file, fill_png, chart, err);
}

/* Means and deviations side by side: one device, in stages, and with `n` 3 pipelined too. */
static int write_bars(const char *directory, const char *name, const struct tuning *tuning,
                      size_t n, struct err *err)
{
    const struct way *ways[] = {&tuning->ways[0], &tuning->ways[1], tuning->best};
    struct chart_point points[3];
    char pipelined[48];
    struct chart_series bars[3] = {{"one device", &points[0], 1},
                                   {"model parallel", &points[1], 1},
                                   {pipelined, &points[2], 1}};
    const struct chart chart = {.title =
                                    n > 2 ? "Pipelined model parallelism" : "Model parallelism",
                                .kind = CHART_BARS,
                                .y = {seconds_label, false},
                                .series = bars,
                                .n_series = n};
    snprintf(pipelined, sizeof pipelined, "pipelined, split size %" PRId64,
             n > 2 ? tuning->best->split_size : 0);
    for (size_t i = 0; i < n; i++)
        points[i] = (struct chart_point){(double)i, ways[i]->mean, ways[i]->deviation};
    return write_chart(directory, name, &chart, err);
}

static int write_curve(const char *directory, const struct tuning *tuning, struct err *err)
{
    struct chart_point points[WAYS_MOST];
    struct chart_series series = {"pipelined", points, 0};
    const struct chart chart = {.title = "Time and split size",
                                .kind = CHART_DOTTED,
                                .x = {"samples in a micro-batch", false},
                                .y = {seconds_label, false},
                                .series = &series,
                                .n_series = 1};
    for (size_t i = 2; i < tuning->n; i++)
        points[series.n++] = (struct chart_point){(double)tuning->ways[i].split_size,
                                                  tuning->ways[i].mean, tuning->ways[i].deviation};
    return write_chart(directory, "split-size", &chart, err);
}

/* The document with the quickest split size, and with the split that was measured. */
static int write_job(json_t *job, const char *directory, const struct tuning *tuning,
                     struct err *err)
{
    json_t *parallel = json_object_get(job, "parallel");
    const char *schedule = json_string_value(json_object_get(parallel, "schedule"));
    json_object_del(json_object_get(job, "train"), "mode");
    json_object_del(parallel, "microbatches");
    if (schedule != NULL && strcmp(schedule, "none") == 0)
        json_object_del(parallel, "schedule"); /* the default was measured */
    int rc = json_object_set_new(parallel, "split_size", json_integer(tuning->best->split_size));
    if (rc == 0 && tuning->split != NULL)
        rc = json_object_set(parallel, "split", (json_t *)tuning->split);
    return rc == 0 ? write_file(directory, "tuned.json", fill_json, job, err)
                   : err_set(err, ERR_NOMEM, "out of memory");
}

static int write_all(json_t *job, const char *directory, const struct tuning *tuning,
                     struct err *err)
{
    if (mkdir(directory, 0777) != 0 && errno != EEXIST)
        return err_errno(err, errno, "cannot make %s", directory);
    int rc = write_bars(directory, "model-parallel", tuning, 2, err);
    if (rc != 0 || tuning->best == NULL)
        return rc;
    rc = write_bars(directory, "pipelined", tuning, 3, err);
    if (rc == 0)
        rc = write_curve(directory, tuning, err);
    return rc == 0 ? write_job(job, directory, tuning, err) : rc;
}

static int print(const struct ctl *ctl, const json_t *json, const struct tuning *tuning,
                 struct err *err)
{
    struct text text = {0};
    if (args_has(&ctl->args, OPT_JSON))
        return ctl_print_json(json, err);
    add_table(&text, &ctl->style, tuning);
    return ctl_print(&text, err);
}

static int print_place(const struct ctl *ctl, const char *directory, const struct tuning *tuning,
                       struct err *err)
{
    struct text text = {0};
    if (args_has(&ctl->args, OPT_JSON))
        return 0;
    text_add(&text, tuning->best != NULL ? "\nthe job as quick as it gets, and pictures: "
                                         : "\nno split size can be; a picture: ");
    text_safe(&text, &ctl->style, directory);
    text_add(&text, tuning->best != NULL ? "/tuned.json\n" : "/model-parallel.png\n");
    return ctl_print(&text, err);
}

/* What a job has measured: `path` is its tune.json. Pictures go beside it unless the caller says
 * where to. */
static int show(struct ctl *ctl, json_t *job, char *path, struct err *err)
{
    const char *directory = path;
    struct tuning tuning;
    json_error_t error;
    json_t *json = json_load_file(path, 0, &error);
    if (json == NULL)
        return err_set(err, ERR_IO, "%s: %s", path, error.text);
    int rc = read_tuning(json, &tuning, err);
    if (rc == 0)
        rc = print(ctl, json, &tuning, err);
    *strrchr(path, '/') = '\0';
    if (args_has(&ctl->args, OPT_OUTPUT))
        directory = ctl->args.values[OPT_OUTPUT];
    if (rc == 0)
        rc = write_all(job, directory, &tuning, err);
    if (rc == 0)
        rc = print_place(ctl, directory, &tuning, err);
    json_decref(json);
    return rc;
}

/* The path of a job's tune.json, absolute. */
static int find_results(const struct record *record, char path[static LIMIT_PATH_BYTES],
                        struct err *err)
{
    static const char name[] = "/tune.json";
    const char *results = record->weights != NULL ? record->weights : "";
    size_t size = strlen(results);
    if (size < sizeof name || strcmp(results + size - (sizeof name - 1), name) != 0)
        return err_set(err, ERR_USAGE, "job %" PRId64 " is %s and has measured nothing", record->id,
                       record->state_text);
    if (results[0] == '/' || record->cwd == NULL)
        return make_path(path, LIMIT_PATH_BYTES, "", results + (results[0] == '/'), err);
    return make_path(path, LIMIT_PATH_BYTES, record->cwd, results, err);
}

static int show_job(struct ctl *ctl, json_int_t id, struct err *err)
{
    char path[LIMIT_PATH_BYTES];
    json_t *result;
    struct record record;
    int rc = ctl_call(ctl, METHOD_JOB_SHOW, json_pack("{s:I}", "id", id), &result, err);
    if (rc < 0)
        return rc;
    record_read(result, &record);
    json_t *given = ctl->document.text != NULL
                        ? json_loadb(ctl->document.text, ctl->document.size, 0, NULL)
                        : json_incref(json_object_get(result, "document"));
    rc = find_results(&record, path, err);
    if (rc == 0)
        rc = show(ctl, given, path, err);
    json_decref(given);
    json_decref(result);
    return rc;
}

/* Queues it. It writes where the daemon says: its own output is for when it trains. */
static int submit(struct ctl *ctl, json_int_t *ret_id, struct err *err)
{
    json_t *result, *root;
    int rc = document_read(ctl->args.words[0], &ctl->document, err);
    if (rc < 0)
        return rc;
    root = ctl->document.root;
    json_object_del(root, "output");
    if (json_object_set_new(json_object_get(root, "train"), "mode", json_string("tune")) != 0)
        return err_set(err, ERR_NOMEM, "out of memory");
    rc = submit_document(ctl, &result, err);
    if (rc < 0)
        return rc;
    *ret_id = json_integer_value(json_object_get(result, "id"));
    json_decref(result);
    return 0;
}

/* A number is a job that has been tuned; anything else is a document. */
static bool is_id(const char *word)
{
    return word[0] != '\0' && word[strspn(word, "0123456789")] == '\0' && strlen(word) < 18;
}

int cmd_tune(struct ctl *ctl, struct err *err)
{
    const char *word = ctl->args.words[0];
    json_int_t id = 0;
    if (is_id(word))
        return show_job(ctl, strtoll(word, NULL, 10), err);
    int rc = submit(ctl, &id, err);
    if (rc == 0)
        rc = follow_jobs(ctl, json_pack("{s:[I]}", "ids", id), err);
    return rc == 0 && ctl->status == 0 ? show_job(ctl, id, err) : rc;
}
