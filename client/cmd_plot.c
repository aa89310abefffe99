/* cmd_plot.c: trainctl plot: how jobs went, as a picture or in the terminal. A job is an id, whose
 * output directory the daemon knows, or a directory, or a file of metrics. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/ctl.h"
#include "client/metrics.h"
#include "client/record.h"
#include "client/render/plot.h"
#include "client/render/summary.h"
#include "proto/json.h"

struct plotted {
    struct text name; /* of the job */
    struct metrics metrics;
};

/* A quantity is a chart; each job has up to two curves there. */
static const struct quantity {
    const char *name, *title, *label;
    int n_curves;
    struct {
        enum metrics_curve curve;
        const char *name;
    } curves[2];
} quantities[] = {
    {"loss",
     "Loss",
     "loss",
     2,
     {{METRICS_LOSS, "training"}, {METRICS_VALIDATION_LOSS, "validation"}}},
    {"accuracy", "Validation accuracy", "fraction of targets", 1, {{METRICS_ACCURACY, "accuracy"}}},
    {"lr", "Learning rate", "learning rate", 1, {{METRICS_LR, "lr"}}},
    {"throughput", "Throughput", "samples a second (1/s)", 1, {{METRICS_THROUGHPUT, "throughput"}}},
};

enum {
    QUANTITIES = sizeof quantities / sizeof *quantities,
    ALL_QUANTITIES = (1 << QUANTITIES) - 1
};

struct plot {
    struct plotted *jobs;
    size_t n;
    unsigned wanted; /* a bit a quantity */
    struct chart charts[QUANTITIES];
    size_t n_charts;
    struct chart_series *series; /* those of all charts, in a row */
    struct text *names;          /* theirs */
};

static int nomem(struct err *err)
{
    return err_set(err, ERR_NOMEM, "out of memory");
}

static int add_quantity(const char *word, size_t n, unsigned *wanted, struct err *err)
{
    const char *names[QUANTITIES];
    char copy[32];
    for (size_t i = 0; i < QUANTITIES; i++) {
        names[i] = quantities[i].name;
        if (strlen(names[i]) == n && memcmp(names[i], word, n) == 0) {
            *wanted |= 1u << i;
            return 0;
        }
    }
    snprintf(copy, sizeof copy, "%.*s", (int)(n < sizeof copy ? n : sizeof copy - 1), word);
    const char *near = json_nearest(copy, names, QUANTITIES);
    return err_set(err, ERR_USAGE, "--of %s: %s%s%s", copy,
                   near != NULL ? "did you mean " : "allowed are loss, accuracy, lr, throughput",
                   near != NULL ? near : "", near != NULL ? "?" : "");
}

static int read_wanted(const struct args *args, unsigned *ret_wanted, struct err *err)
{
    unsigned wanted = 0;
    if (!args_has(args, OPT_OF)) {
        *ret_wanted = ALL_QUANTITIES;
        return 0;
    }
    for (const char *word = args->values[OPT_OF]; word != NULL;) {
        size_t n = strcspn(word, ",");
        int rc = add_quantity(word, n, &wanted, err);
        if (rc != 0)
            return rc;
        word = word[n] == ',' ? word + n + 1 : NULL;
    }
    *ret_wanted = wanted;
    return 0;
}

static bool is_id(const char *word)
{
    return strspn(word, "0123456789") == strlen(word);
}

/* Only training writes metrics, from its first step on. */
static bool has_curve(const struct record *record)
{
    return json_array_size(record->losses) > 0 &&
           strcmp(summary_result_name(record), "weights") == 0;
}

/* The metrics of a job of the daemon's. */
static int read_id(struct ctl *ctl, const char *word, struct plotted *job, struct err *err)
{
    int64_t id;
    json_t *json;
    struct record record;
    int rc = args_id(word, &id, err);
    if (rc == 0)
        rc = ctl_call(ctl, METHOD_JOB_SHOW, json_pack("{s:I}", "id", (json_int_t)id), &json, err);
    if (rc != 0)
        return rc;
    record_read(json, &record);
    text_fmt(&job->name, "%s %s", word, record.name != NULL ? record.name : "");
    if (record.output == NULL || record.output[0] == '\0')
        rc = err_set(err, ERR_NOT_FOUND, "job %s has not begun: there is nothing to plot", word);
    else if (record_ended(&record) && !has_curve(&record))
        rc = err_set(err, ERR_NOT_FOUND,
                     "job %s trained no step: there is nothing to plot; see `trainctl show %s`",
                     word, word);
    else
        rc = metrics_read(record.output, &job->metrics, err);
    json_decref(json);
    return rc;
}

static int read_job(struct ctl *ctl, const char *word, struct plotted *job, struct err *err)
{
    if (is_id(word))
        return read_id(ctl, word, job, err);
    text_add(&job->name, word);
    return metrics_read(word, &job->metrics, err);
}

/* "training", or with several jobs whose it is too. */
static void add_series(struct plot *plot, struct chart *chart, const struct quantity *quantity,
                       size_t job, int curve)
{
    const struct plotted *plotted = &plot->jobs[job];
    enum metrics_curve which = quantity->curves[curve].curve;
    size_t at = (size_t)(chart->series - plot->series) + chart->n_series;
    if (plotted->metrics.curves[which].n == 0)
        return;
    if (plot->n > 1)
        text_add(&plot->names[at], text_str(&plotted->name));
    if (plot->n == 1 || quantity->n_curves > 1)
        text_fmt(&plot->names[at], "%s%s", plot->n > 1 ? ", " : "", quantity->curves[curve].name);
    plot->series[at] =
        (struct chart_series){text_str(&plot->names[at]), plotted->metrics.curves[which].points,
                              plotted->metrics.curves[which].n};
    chart->n_series++;
}

/* Charts of what is wanted and there. */
static int make_charts(struct plot *plot, struct err *err)
{
    size_t most = plot->n * 2 * QUANTITIES, used = 0;
    plot->series = calloc(most, sizeof *plot->series);
    plot->names = calloc(most, sizeof *plot->names);
    if (plot->series == NULL || plot->names == NULL)
        return nomem(err);
    for (size_t q = 0; q < QUANTITIES; q++) {
        const struct quantity *quantity = &quantities[q];
        struct chart chart = {.title = quantity->title,
                              .x = {"step", false},
                              .y = {quantity->label, false},
                              .series = plot->series + used};
        if ((plot->wanted & 1u << q) == 0)
            continue;
        for (size_t job = 0; job < plot->n; job++)
            for (int curve = 0; curve < quantity->n_curves; curve++)
                add_series(plot, &chart, quantity, job, curve);
        used += chart.n_series;
        if (chart.n_series > 0)
            plot->charts[plot->n_charts++] = chart;
    }
    return plot->n_charts > 0 ? 0 : err_set(err, ERR_NOT_FOUND, "there is nothing to plot yet");
}

static bool ends_in(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);
    return n > m && strcmp(path + n - m, end) == 0;
}

static int draw_svg(const struct plot *plot, FILE *out, struct err *err)
{
    struct text text = {0};
    int rc = chart_svg(plot->charts, plot->n_charts, &text, err);
    errno = 0;
    if (rc == 0 && fputs(text_str(&text), out) < 0)
        rc = err_errno(err, errno, "cannot write the picture");
    text_done(&text);
    return rc;
}

static int draw_png(const struct plot *plot, FILE *out, struct err *err)
{
    return chart_png(plot->charts, plot->n_charts, out, err);
}

static const struct form {
    const char *end;
    int (*draw)(const struct plot *plot, FILE *out, struct err *err);
} forms[] = {{".svg", draw_svg}, {".png", draw_png}, {NULL, NULL}};

static const struct form *form_of(const char *path)
{
    const struct form *form = forms;
    while (form->end != NULL && !ends_in(path, form->end))
        form++;
    return form;
}

static int check_output(const struct args *args, struct err *err)
{
    const char *path = args->values[OPT_OUTPUT];
    if (!args_has(args, OPT_OUTPUT) || form_of(path)->end != NULL)
        return 0;
    return err_set(err, ERR_USAGE, "--output %s: the name must end in .svg or .png", path);
}

static int write_file(const struct plot *plot, const char *path, struct err *err)
{
    FILE *out = fopen(path, "we");
    if (out == NULL)
        return err_errno(err, errno, "cannot create %s", path);
    int rc = form_of(path)->draw(plot, out, err);
    if (fclose(out) != 0 && rc == 0)
        rc = err_errno(err, errno, "cannot write %s", path);
    return rc;
}

static int print_series(struct text *text, const struct style *style,
                        const struct chart_series *series, struct err *err)
{
    struct plot_point *points = calloc(series->n, sizeof *points);
    if (points == NULL)
        return nomem(err);
    for (size_t i = 0; i < series->n; i++)
        points[i] = (struct plot_point){series->points[i].x, series->points[i].y};
    text_add(text, "  ");
    text_safe(text, style, series->name);
    text_fmt(text, ", last %.4g\n", series->points[series->n - 1].y);
    plot_draw(text, style, points, series->n, style->columns < 80 ? style->columns : 80, 10,
              PLOT_LINEAR);
    free(points);
    return 0;
}

static int print_charts(const struct ctl *ctl, const struct plot *plot, struct err *err)
{
    struct text text = {0};
    int rc = 0;
    for (size_t i = 0; i < plot->n_charts; i++) {
        text_fmt(&text, "%s", i > 0 ? "\n" : "");
        text_paint(&text, &ctl->style, COLOR_BOLD, plot->charts[i].title);
        text_add(&text, "\n");
        for (size_t s = 0; rc == 0 && s < plot->charts[i].n_series; s++)
            rc = print_series(&text, &ctl->style, &plot->charts[i].series[s], err);
    }
    if (rc == 0)
        return ctl_print(&text, err);
    text_done(&text);
    return rc;
}

static json_t *series_json(const struct chart *chart, const struct chart_series *series)
{
    json_t *points = json_array();
    for (size_t i = 0; points != NULL && i < series->n; i++)
        points =
            json_list_append(points, json_pack("[f, f]", series->points[i].x, series->points[i].y));
    return json_pack("{s:s, s:s, s:o}", "chart", chart->title, "name", series->name, "points",
                     points);
}

static int print_json(const struct plot *plot, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < plot->n_charts; i++)
        for (size_t s = 0; rc == 0 && s < plot->charts[i].n_series; s++) {
            json_t *line = series_json(&plot->charts[i], &plot->charts[i].series[s]);
            rc = line != NULL ? ctl_print_json(line, err) : nomem(err);
            json_decref(line);
        }
    return rc;
}

static int show(const struct ctl *ctl, struct plot *plot, struct err *err)
{
    int rc = make_charts(plot, err);
    if (rc != 0)
        return rc;
    if (args_has(&ctl->args, OPT_OUTPUT))
        return write_file(plot, ctl->args.values[OPT_OUTPUT], err);
    return args_has(&ctl->args, OPT_JSON) ? print_json(plot, err) : print_charts(ctl, plot, err);
}

static void plot_done(struct plot *plot)
{
    for (size_t i = 0; plot->jobs != NULL && i < plot->n; i++) {
        text_done(&plot->jobs[i].name);
        metrics_done(&plot->jobs[i].metrics);
    }
    for (size_t i = 0; plot->names != NULL && i < plot->n * 2 * QUANTITIES; i++)
        text_done(&plot->names[i]);
    free(plot->jobs);
    free(plot->names);
    free(plot->series);
}

int cmd_plot(struct ctl *ctl, struct err *err)
{
    struct plot plot = {.n = ctl->args.n_words};
    int rc = read_wanted(&ctl->args, &plot.wanted, err);
    if (rc == 0)
        rc = check_output(&ctl->args, err);
    if (rc != 0)
        return rc;
    plot.jobs = calloc(plot.n, sizeof *plot.jobs);
    if (plot.jobs == NULL)
        return nomem(err);
    for (size_t i = 0; rc == 0 && i < plot.n; i++)
        rc = read_job(ctl, ctl->args.words[i], &plot.jobs[i], err);
    if (rc == 0)
        rc = show(ctl, &plot, err);
    plot_done(&plot);
    return rc;
}
