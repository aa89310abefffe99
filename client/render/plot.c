/* plot.c: see plot.h. A canvas of dots is drawn first, then read out a character at a time. */
#include "client/render/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_SIZE = 24 };

struct range {
    double low, high;
};

struct canvas {
    unsigned char *dots; /* height rows of width */
    size_t width, height;
};

/* The point where it is drawn; false if it cannot be. */
static bool project(const struct plot_point *point, enum plot_scale scale, struct plot_point *ret)
{
    *ret = (struct plot_point){point->x, scale == PLOT_LOG ? log10(point->y) : point->y};
    return isfinite(ret->x) && isfinite(ret->y);
}

/* The ranges of the points that can be drawn; returns how many there are. */
static size_t measure(const struct plot_point *points, size_t n, enum plot_scale scale,
                      struct range *x, struct range *y)
{
    size_t count = 0;
    *x = *y = (struct range){INFINITY, -INFINITY};
    for (size_t i = 0; i < n; i++) {
        struct plot_point at;
        if (!project(&points[i], scale, &at))
            continue;
        *x = (struct range){fmin(x->low, at.x), fmax(x->high, at.x)};
        *y = (struct range){fmin(y->low, at.y), fmax(y->high, at.y)};
        count++;
    }
    return count;
}

/* Where `v` lies among `cells` cells; the middle when the range is empty. */
static long place(double v, const struct range *range, size_t cells)
{
    double span = range->high - range->low;
    double at = span > 0 && isfinite(span) ? (v - range->low) / span : 0.5;
    return lround(at * (double)(cells - 1));
}

static void draw_line(struct canvas *canvas, long x0, long y0, long x1, long y1)
{
    long steps = labs(x1 - x0) > labs(y1 - y0) ? labs(x1 - x0) : labs(y1 - y0);
    for (long i = 0; i <= steps; i++) {
        double t = steps == 0 ? 0 : (double)i / (double)steps;
        size_t x = (size_t)lround((double)x0 + t * (double)(x1 - x0));
        size_t y = (size_t)lround((double)y0 + t * (double)(y1 - y0));
        canvas->dots[y * canvas->width + x] = 1;
    }
}

static void draw_curve(struct canvas *canvas, const struct plot_point *points, size_t n,
                       enum plot_scale scale, const struct range *x, const struct range *y)
{
    bool begun = false;
    long last_x = 0, last_y = 0;
    for (size_t i = 0; i < n; i++) {
        struct plot_point at;
        if (!project(&points[i], scale, &at))
            continue;
        long at_x = place(at.x, x, canvas->width);
        long at_y = (long)canvas->height - 1 - place(at.y, y, canvas->height);
        draw_line(canvas, begun ? last_x : at_x, begun ? last_y : at_y, at_x, at_y);
        last_x = at_x;
        last_y = at_y;
        begun = true;
    }
}

/* Unicode's Braille patterns: U+2800 plus one bit a dot. */
static void add_braille(struct text *text, const struct canvas *canvas, size_t column, size_t row)
{
    static const unsigned char bit[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    unsigned pattern = 0;
    for (size_t y = 0; y < 4; y++)
        for (size_t x = 0; x < 2; x++)
            if (canvas->dots[(row * 4 + y) * canvas->width + column * 2 + x])
                pattern |= bit[y][x];
    char cell[] = {(char)0xE2, (char)(0xA0 | pattern >> 6), (char)(0x80 | (pattern & 0x3F)), '\0'};
    text_add(text, pattern == 0 ? " " : cell);
}

static void add_star(struct text *text, const struct canvas *canvas, size_t column, size_t row)
{
    text_add(text, canvas->dots[row * canvas->width + column] ? "*" : " ");
}

static void add_row(struct text *text, const struct style *style, const struct canvas *canvas,
                    size_t columns, size_t row)
{
    struct text line = {0};
    for (size_t column = 0; column < columns; column++)
        (style->utf8 ? add_braille : add_star)(&line, canvas, column, row);
    while (line.used > 0 && line.s[line.used - 1] == ' ')
        line.s[--line.used] = '\0';
    text_paint(text, style, COLOR_CYAN, text_str(&line));
    text_add(text, "\n");
    text->failed |= line.failed;
    text_done(&line);
}

void plot_draw(struct text *text, const struct style *style, const struct plot_point *points,
               size_t n, size_t columns, size_t rows, enum plot_scale scale)
{
    struct range x, y;
    if (measure(points, n, scale, &x, &y) < 2 || rows < 2)
        return;
    char top[LABEL_SIZE], bottom[LABEL_SIZE], first[LABEL_SIZE], last[LABEL_SIZE];
    int label = snprintf(top, sizeof top, "%.3g", scale == PLOT_LOG ? pow(10, y.high) : y.high);
    int other = snprintf(bottom, sizeof bottom, "%.3g", scale == PLOT_LOG ? pow(10, y.low) : y.low);
    label = label > other ? label : other;
    snprintf(first, sizeof first, "%.10g", x.low);
    int last_length = snprintf(last, sizeof last, "%.10g", x.high);
    size_t margin = (size_t)label + 3; /* "label | " */
    size_t inner = columns > margin + 8 ? columns - margin : 8;

    struct canvas canvas = {.width = inner * (style->utf8 ? 2 : 1),
                            .height = rows * (style->utf8 ? 4 : 1)};
    canvas.dots = calloc(canvas.width, canvas.height);
    if (canvas.dots == NULL) {
        text->failed = true;
        return;
    }
    draw_curve(&canvas, points, n, scale, &x, &y);
    for (size_t row = 0; row < rows; row++) {
        text_fmt(text, "%*s %s ", label,
                 row == 0          ? top
                 : row + 1 == rows ? bottom
                                   : "",
                 style->utf8 ? "│" : "|");
        add_row(text, style, &canvas, inner, row);
    }
    free(canvas.dots);
    int gap = (int)inner - (int)strlen(first) - last_length;
    text_fmt(text, "%*s%s%*s%s\n", (int)margin, "", first, gap > 1 ? gap : 1, "", last);
}
