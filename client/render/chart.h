/* chart.h: data as a picture: curves over an axis, or bars, each with its deviation; as SVG or PNG,
 * one chart or several on a sheet. Pure but for the file that a PNG is written to. */
#ifndef CLIENT_RENDER_CHART_H
#define CLIENT_RENDER_CHART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client/render/text.h"
#include "proto/err.h"

struct chart_point {
    double x, y;
    double deviation; /* drawn as y - deviation to y + deviation; 0: not drawn */
};

struct chart_series {
    const char *name;                 /* in the legend, or below its bar; anybody's words */
    const struct chart_point *points; /* ordered by x; what is not finite interrupts a curve */
    size_t n;                         /* 1 in a chart of bars */
};

struct chart_axis {
    const char *label; /* with its unit: "seconds a step (s)" */
    bool log;          /* what is not above 0 is left out */
};

enum chart_kind {
    CHART_CURVES,
    CHART_DOTTED, /* curves with a dot at each point */
    CHART_BARS    /* a series a bar, from 0 on */
};

struct chart {
    const char *title;
    enum chart_kind kind;
    struct chart_axis x, y; /* of bars only y */
    const struct chart_series *series;
    size_t n_series;
};

enum { CHART_WIDTH = 640, CHART_HEIGHT = 400 }; /* points, of each on the sheet */

/* Charts side by side, two a row where there are more than one; n is at least 1. */
int chart_svg(const struct chart *charts, size_t n, struct text *text, struct err *err);
int chart_png(const struct chart *charts, size_t n, FILE *out, struct err *err);

#endif
