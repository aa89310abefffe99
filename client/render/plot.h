/* plot.h: a curve in a terminal. Pure. */
#ifndef CLIENT_RENDER_PLOT_H
#define CLIENT_RENDER_PLOT_H

#include "client/render/style.h"
#include "client/render/text.h"

struct plot_point {
    double x, y;
};

enum plot_scale {
    PLOT_LINEAR,
    PLOT_LOG, /* of y; points that are not above 0 are left out */
};

/* Adds a plot of `n` points, ordered by x, in `columns` x `rows` characters with its scale at the
 * left and a line of x below. In UTF-8 a character is a Braille cell of 2 x 4 dots; in ASCII one
 * '*'. Neighbouring points are joined; points that are not finite are left out, and fewer than two
 * others add nothing. */
void plot_draw(struct text *text, const struct style *style, const struct plot_point *points,
               size_t n, size_t columns, size_t rows, enum plot_scale scale);

#endif
