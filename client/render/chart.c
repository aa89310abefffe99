/* chart.c: see chart.h. A chart is laid out in a box of the sheet: the ranges of its axes come from
 * the data, the places of the ticks from the ranges, the margins from the ticks' labels. */
#include "client/render/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/render/canvas.h"

enum { TICKS_MOST = 24, TICK_SIZE = 32 };

static const double letter = 11, title_letter = 14; /* sizes of letters */
static const double letter_width = 0.6;             /* of a size, about */
static const unsigned black = 0x222222, gray = 0xdddddd;

/* Okabe and Ito's colours, which everybody can tell apart; dashes tell them apart in grey. */
static const struct canvas_pen pens[] = {
    {0x0072b2, 1.6, {0, 0}}, {0xd55e00, 1.6, {6, 2}}, {0x009e73, 1.6, {2, 2}},
    {0xcc79a7, 1.6, {8, 3}}, {0x56b4e9, 1.6, {4, 4}}, {0xe69f00, 1.6, {1, 3}},
};

static const struct canvas_pen *pen_of(size_t series)
{
    return &pens[series % (sizeof pens / sizeof *pens)];
}

struct range {
    double low, high; /* of the data as it is scaled; low > high: none */
};

struct tick {
    double at; /* as it is scaled */
    char label[TICK_SIZE];
};

struct axis {
    bool log;
    struct range range;
    struct tick ticks[TICKS_MOST];
    size_t n_ticks;
};

struct box {
    double x, y, width, height;
};

struct drawing {
    const struct chart *chart;
    struct canvas *canvas;
    struct axis x, y;
    struct box box;  /* all of the chart */
    struct box plot; /* what the axes enclose */
    bool failed;     /* no memory for words */
};

static double scaled(const struct axis *axis, double value)
{
    if (!axis->log)
        return value;
    return value > 0 ? log10(value) : NAN;
}

static void widen(struct axis *axis, double value)
{
    double at = scaled(axis, value);
    if (!isfinite(at))
        return;
    axis->range.low = fmin(axis->range.low, at);
    axis->range.high = fmax(axis->range.high, at);
}

static void measure(struct drawing *drawing)
{
    const struct chart *chart = drawing->chart;
    drawing->x = (struct axis){.log = chart->x.log, .range = {INFINITY, -INFINITY}};
    drawing->y = (struct axis){.log = chart->y.log, .range = {INFINITY, -INFINITY}};
    for (size_t s = 0; s < chart->n_series; s++)
        for (size_t i = 0; i < chart->series[s].n; i++) {
            const struct chart_point *point = &chart->series[s].points[i];
            if (!isfinite(scaled(&drawing->x, point->x)) ||
                !isfinite(scaled(&drawing->y, point->y)))
                continue;
            widen(&drawing->x, point->x);
            widen(&drawing->y, point->y - point->deviation);
            widen(&drawing->y, point->y + point->deviation);
        }
    if (chart->kind == CHART_BARS)
        widen(&drawing->y, 0);
}

static bool is_empty(const struct axis *axis)
{
    return axis->range.low > axis->range.high;
}

/* 1, 2 or 5 times a power of ten, not below `least`. */
static double nice_step(double least)
{
    double power = pow(10, floor(log10(least)));
    double times = least / power;
    return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

static void add_tick(struct axis *axis, double at, double value)
{
    if (axis->n_ticks == TICKS_MOST)
        return;
    struct tick *tick = &axis->ticks[axis->n_ticks++];
    tick->at = at;
    snprintf(tick->label, sizeof tick->label, "%g", value);
}

/* One value has room around it too. */
static void make_room(struct range *range)
{
    double span = range->high - range->low;
    double room = fmax(fabs(range->high), 1e-300) * 1e-9;
    if (span > room)
        return;
    double more = range->high != 0 ? fabs(range->high) / 10 : 1;
    range->low -= more;
    range->high += more;
}

/* Dots do not lie on the axes. */
static void pad(struct range *range)
{
    double room = (range->high - range->low) * 0.03;
    range->low -= room;
    range->high += room;
}

/* Ticks at multiples of a step; the range is widened to the outer ones where `whole`. */
static void linear_ticks(struct axis *axis, int wanted, bool whole)
{
    make_room(&axis->range);
    double step = nice_step((axis->range.high - axis->range.low) / wanted);
    double first = floor(axis->range.low / step + 1e-9),
           last = ceil(axis->range.high / step - 1e-9);
    if (whole)
        axis->range = (struct range){first * step, last * step};
    for (double k = first; k <= last; k++)
        if (k * step >= axis->range.low - step * 1e-6 && k * step <= axis->range.high + step * 1e-6)
            add_tick(axis, k * step, k == 0 ? 0 : k * step);
}

/* Ticks at powers of ten; between them at 2 and 5 where there are few. */
static void log_ticks(struct axis *axis)
{
    make_room(&axis->range);
    double low = floor(axis->range.low), high = ceil(axis->range.high);
    double every = fmax(1, ceil((high - low) / 8));
    static const int between[] = {1, 2, 5};
    size_t parts = high - low <= 3 ? 3 : 1;
    for (double power = low; power <= high; power += every)
        for (size_t i = 0; i < parts; i++) {
            double at = power + log10(between[i]);
            if (at >= axis->range.low - 1e-9 && at <= axis->range.high + 1e-9)
                add_tick(axis, at, pow(10, at));
        }
}

static void make_ticks(struct axis *axis, int wanted, bool whole)
{
    if (axis->log)
        log_ticks(axis);
    else
        linear_ticks(axis, wanted, whole);
}

static double place(const struct axis *axis, double at, double begin, double size)
{
    return begin + (at - axis->range.low) / (axis->range.high - axis->range.low) * size;
}

static double place_x(const struct drawing *drawing, double at)
{
    return place(&drawing->x, at, drawing->plot.x, drawing->plot.width);
}

static double place_y(const struct drawing *drawing, double at)
{
    return place(&drawing->y, at, drawing->plot.y + drawing->plot.height, -drawing->plot.height);
}

static void line(struct drawing *drawing, double x0, double y0, double x1, double y1,
                 unsigned color, double width)
{
    const struct canvas_point ends[] = {{x0, y0}, {x1, y1}};
    const struct canvas_pen pen = {color, width, {0, 0}};
    drawing->canvas->def->line(drawing->canvas, ends, 2, &pen);
}

/* Words may be anybody's. */
static void write_words(struct drawing *drawing, struct canvas_label label)
{
    static const struct style utf8 = {.utf8 = true};
    struct text safe = {0};
    text_safe(&safe, &utf8, label.words);
    label.words = text_str(&safe);
    drawing->canvas->def->write(drawing->canvas, &label);
    drawing->failed |= safe.failed;
    text_done(&safe);
}

static double words_width(const char *words)
{
    return (double)text_columns(words, strlen(words)) * letter * letter_width;
}

static void draw_ticks(struct drawing *drawing)
{
    const struct box *plot = &drawing->plot;
    double bottom = plot->y + plot->height;
    for (size_t i = 0; i < drawing->y.n_ticks; i++) {
        double y = place_y(drawing, drawing->y.ticks[i].at);
        line(drawing, plot->x, y, plot->x + plot->width, y, gray, 0.8);
        write_words(drawing, (struct canvas_label){.at = {plot->x - 6, y + letter / 3},
                                                   .words = drawing->y.ticks[i].label,
                                                   .size = letter,
                                                   .anchor = CANVAS_END});
    }
    for (size_t i = 0; i < drawing->x.n_ticks; i++) {
        double x = place_x(drawing, drawing->x.ticks[i].at);
        line(drawing, x, bottom, x, bottom + 4, black, 1);
        write_words(drawing, (struct canvas_label){.at = {x, bottom + 6 + letter},
                                                   .words = drawing->x.ticks[i].label,
                                                   .size = letter,
                                                   .anchor = CANVAS_MIDDLE});
    }
    line(drawing, plot->x, plot->y, plot->x, bottom, black, 1);
    line(drawing, plot->x, bottom, plot->x + plot->width, bottom, black, 1);
}

static void draw_words(struct drawing *drawing)
{
    const struct chart *chart = drawing->chart;
    const struct box *box = &drawing->box, *plot = &drawing->plot;
    double middle = plot->x + plot->width / 2;
    write_words(drawing, (struct canvas_label){.at = {middle, box->y + 8 + title_letter},
                                               .words = chart->title,
                                               .size = title_letter,
                                               .anchor = CANVAS_MIDDLE,
                                               .bold = true});
    write_words(drawing,
                (struct canvas_label){.at = {box->x + 8 + letter, plot->y + plot->height / 2},
                                      .words = chart->y.label,
                                      .size = letter,
                                      .anchor = CANVAS_MIDDLE,
                                      .upright = true});
    if (chart->kind != CHART_BARS)
        write_words(drawing, (struct canvas_label){.at = {middle, box->y + box->height - 8},
                                                   .words = chart->x.label,
                                                   .size = letter,
                                                   .anchor = CANVAS_MIDDLE});
}

static void draw_deviation(struct drawing *drawing, double x, const struct chart_point *point)
{
    double low = scaled(&drawing->y, point->y - point->deviation);
    double high = scaled(&drawing->y, point->y + point->deviation);
    if (point->deviation == 0 || !isfinite(high))
        return;
    double bottom = place_y(drawing, isfinite(low) ? low : drawing->y.range.low);
    double top = place_y(drawing, high);
    line(drawing, x, bottom, x, top, black, 1);
    line(drawing, x - 4, bottom, x + 4, bottom, black, 1);
    line(drawing, x - 4, top, x + 4, top, black, 1);
}

/* A piece of a curve in the making. */
struct curve {
    struct canvas_point *points;
    size_t n;
};

static void end_curve(struct drawing *drawing, struct curve *curve, const struct canvas_pen *pen)
{
    if (curve->n > 1)
        drawing->canvas->def->line(drawing->canvas, curve->points, curve->n, pen);
    else if (curve->n == 1 && drawing->chart->kind != CHART_DOTTED)
        drawing->canvas->def->disc(drawing->canvas, curve->points[0], 3, pen->color);
    curve->n = 0;
}

/* Of points in the same half point of x only four stay: the first, the lowest, the highest and the
 * last, which cover as much as all of them. */
static void add_point(struct curve *curve, struct canvas_point point)
{
    size_t first = curve->n;
    double column = floor(point.x * 2);
    while (first > 0 && curve->n - first < 4 && floor(curve->points[first - 1].x * 2) == column)
        first--;
    if (curve->n - first < 4) {
        curve->points[curve->n++] = point;
        return;
    }
    struct canvas_point *at = &curve->points[first], low = at[1], high = at[1];
    for (size_t i = 2; i < 4; i++) {
        low = at[i].y < low.y ? at[i] : low;
        high = at[i].y > high.y ? at[i] : high;
    }
    at[1] = low;
    at[2] = high;
    at[3] = point;
}

static void draw_curve(struct drawing *drawing, size_t index, struct canvas_point *room)
{
    const struct chart_series *series = &drawing->chart->series[index];
    const struct canvas_pen *pen = pen_of(index);
    struct curve curve = {room, 0};
    for (size_t i = 0; i < series->n; i++) {
        const struct chart_point *point = &series->points[i];
        double x = scaled(&drawing->x, point->x), y = scaled(&drawing->y, point->y);
        if (!isfinite(x) || !isfinite(y)) {
            end_curve(drawing, &curve, pen);
            continue;
        }
        struct canvas_point at = {place_x(drawing, x), place_y(drawing, y)};
        draw_deviation(drawing, at.x, point);
        add_point(&curve, at);
        if (drawing->chart->kind == CHART_DOTTED)
            drawing->canvas->def->disc(drawing->canvas, at, 3, pen->color);
    }
    end_curve(drawing, &curve, pen);
}

static int refuse_memory(struct err *err)
{
    return err_set(err, ERR_NOMEM, "out of memory for the picture");
}

static int draw_curves(struct drawing *drawing, struct err *err)
{
    size_t most = 1;
    for (size_t s = 0; s < drawing->chart->n_series; s++)
        most = drawing->chart->series[s].n > most ? drawing->chart->series[s].n : most;
    struct canvas_point *room = calloc(most, sizeof *room);
    if (room == NULL)
        return refuse_memory(err);
    for (size_t s = 0; s < drawing->chart->n_series; s++)
        draw_curve(drawing, s, room);
    free(room);
    return 0;
}

static int draw_bars(struct drawing *drawing, struct err *err)
{
    const struct box *plot = &drawing->plot;
    double each = plot->width / (double)drawing->chart->n_series, zero = place_y(drawing, 0);
    (void)err;
    for (size_t s = 0; s < drawing->chart->n_series; s++) {
        const struct chart_series *series = &drawing->chart->series[s];
        double middle = plot->x + ((double)s + 0.5) * each;
        write_words(drawing,
                    (struct canvas_label){.at = {middle, plot->y + plot->height + 6 + letter},
                                          .words = series->name,
                                          .size = letter,
                                          .anchor = CANVAS_MIDDLE});
        if (series->n == 0 || !isfinite(series->points[0].y))
            continue;
        double top = place_y(drawing, series->points[0].y);
        drawing->canvas->def->box(drawing->canvas,
                                  (struct canvas_point){middle - each * 0.3, fmin(top, zero)},
                                  each * 0.6, fabs(zero - top), pen_of(s)->color);
        draw_deviation(drawing, middle, &series->points[0]);
    }
    return 0;
}

/* A legend's entries are set side by side, in lines as wide as the plot. Returns their height;
 * draws only where `draw`. */
static double legend(struct drawing *drawing, bool draw)
{
    static const double line_height = 16, sample = 22, gap = 6;
    const struct chart *chart = drawing->chart;
    double x = 0, y = line_height;
    if (chart->kind == CHART_BARS || chart->n_series < 2)
        return 0;
    for (size_t s = 0; s < chart->n_series; s++) {
        double width = sample + gap + words_width(chart->series[s].name) + 2 * gap;
        if (x > 0 && x + width > drawing->plot.width) {
            x = 0;
            y += line_height;
        }
        double left = drawing->plot.x + x, base = drawing->box.y + 12 + title_letter + y;
        if (draw) {
            const struct canvas_point ends[] = {{left, base - letter / 3},
                                                {left + sample, base - letter / 3}};
            drawing->canvas->def->line(drawing->canvas, ends, 2, pen_of(s));
            write_words(drawing, (struct canvas_label){.at = {left + sample + gap, base},
                                                       .words = chart->series[s].name,
                                                       .size = letter});
        }
        x += width;
    }
    return y;
}

static void lay_out(struct drawing *drawing)
{
    const struct box *box = &drawing->box;
    double widest = 0;
    for (size_t i = 0; i < drawing->y.n_ticks; i++)
        widest = fmax(widest, words_width(drawing->y.ticks[i].label));
    double left = 8 + 2 * letter + widest + 6, bottom = 2 * letter + 24, right = 24;
    drawing->plot = (struct box){box->x + left, 0, box->width - left - right, 0};
    double top = 20 + title_letter + legend(drawing, false);
    drawing->plot.y = box->y + top;
    drawing->plot.height = box->height - top - bottom;
}

static int draw_data(struct drawing *drawing, struct err *err)
{
    draw_ticks(drawing);
    legend(drawing, true);
    return drawing->chart->kind == CHART_BARS ? draw_bars(drawing, err) : draw_curves(drawing, err);
}

static void say_empty(struct drawing *drawing)
{
    const struct box *plot = &drawing->plot;
    write_words(drawing,
                (struct canvas_label){.at = {plot->x + plot->width / 2, plot->y + plot->height / 2},
                                      .words = "nothing to draw",
                                      .size = letter,
                                      .anchor = CANVAS_MIDDLE});
}

static void scale_axes(struct drawing *drawing)
{
    enum chart_kind kind = drawing->chart->kind;
    if (kind == CHART_DOTTED)
        pad(&drawing->x.range);
    make_ticks(&drawing->y, 5, true);
    if (kind != CHART_BARS)
        make_ticks(&drawing->x, 8, false);
}

static int draw_chart(const struct chart *chart, struct canvas *canvas, const struct box *box,
                      struct err *err)
{
    struct drawing drawing = {.chart = chart, .canvas = canvas, .box = *box};
    int rc = 0;
    measure(&drawing);
    bool empty = is_empty(&drawing.x) || is_empty(&drawing.y);
    if (!empty)
        scale_axes(&drawing);
    lay_out(&drawing);
    draw_words(&drawing);
    if (empty)
        say_empty(&drawing);
    else
        rc = draw_data(&drawing, err);
    return rc == 0 && drawing.failed ? refuse_memory(err) : rc;
}

static size_t columns_of(size_t n)
{
    return n > 1 ? 2 : 1;
}

static double sheet_width(size_t n)
{
    return (double)(columns_of(n) * CHART_WIDTH);
}

static double sheet_height(size_t n)
{
    return (double)((n + columns_of(n) - 1) / columns_of(n) * CHART_HEIGHT);
}

static int draw_sheet(const struct chart *charts, size_t n, struct canvas *canvas, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < n; i++) {
        struct box box = {(double)(i % columns_of(n) * CHART_WIDTH),
                          (double)(i / columns_of(n) * CHART_HEIGHT), CHART_WIDTH, CHART_HEIGHT};
        rc = draw_chart(&charts[i], canvas, &box, err);
    }
    return rc;
}

int chart_svg(const struct chart *charts, size_t n, struct text *text, struct err *err)
{
    struct canvas_svg svg;
    canvas_svg_begin(&svg, text, sheet_width(n), sheet_height(n));
    int rc = draw_sheet(charts, n, &svg.canvas, err);
    canvas_svg_end(&svg);
    return rc != 0 ? rc : text_check(text, err);
}

int chart_png(const struct chart *charts, size_t n, FILE *out, struct err *err)
{
    struct canvas *canvas;
    int rc = canvas_png_new(sheet_width(n), sheet_height(n), &canvas, err);
    if (rc != 0)
        return rc;
    rc = draw_sheet(charts, n, canvas, err);
    if (rc == 0)
        rc = canvas_png_save(canvas, out, err);
    canvas_png_free(canvas);
    return rc;
}
