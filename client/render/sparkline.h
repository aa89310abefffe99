/* sparkline.h: the run of a few numbers in a line's height. Pure. */
#ifndef CLIENT_RENDER_SPARKLINE_H
#define CLIENT_RENDER_SPARKLINE_H

#include "client/render/style.h"
#include "client/render/text.h"

/* Adds a character a number, from the lowest to the highest of them: eighths of a cell in UTF-8, in
 * ASCII "_.-'". Numbers that are not finite are blanks. */
void sparkline_draw(struct text *text, const struct style *style, const double *numbers, size_t n);

#endif
