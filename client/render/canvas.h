/* canvas.h: what a chart is drawn on, as SVG text or as PNG pixels.
 *
 * A canvas is measured in points, x to the right and y down. Words are set by where they begin,
 * end or have their middle, so that nobody needs to know how wide they are.
 */
#ifndef CLIENT_RENDER_CANVAS_H
#define CLIENT_RENDER_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "client/render/text.h"
#include "proto/err.h"

enum canvas_anchor { CANVAS_START, CANVAS_MIDDLE, CANVAS_END };

struct canvas_point {
    double x, y;
};

struct canvas_pen {
    unsigned color; /* 0xRRGGBB */
    double width;
    double dash[2]; /* drawn, left out; both 0: a whole line */
};

struct canvas_label {
    struct canvas_point at; /* on its base line */
    const char *words;      /* UTF-8 without control characters */
    double size;            /* of the letters */
    enum canvas_anchor anchor;
    bool bold, upright; /* upright: turned to be read from below */
};

struct canvas;
struct canvas_def {
    void (*line)(struct canvas *canvas, const struct canvas_point *points, size_t n,
                 const struct canvas_pen *pen);
    void (*box)(struct canvas *canvas, struct canvas_point at, double width, double height,
                unsigned color);
    void (*disc)(struct canvas *canvas, struct canvas_point at, double radius, unsigned color);
    void (*write)(struct canvas *canvas, const struct canvas_label *label);
};

struct canvas { /* the first member of each kind's own */
    const struct canvas_def *def;
};

/* SVG is added to a text, which keeps what fails (text_check). */
struct canvas_svg {
    struct canvas canvas;
    struct text *text;
};
void canvas_svg_begin(struct canvas_svg *svg, struct text *text, double width, double height);
void canvas_svg_end(struct canvas_svg *svg);

/* PNG, of canvas_png_scale pixels a point, through cairo. */
extern const int canvas_png_scale;
/* canvas_png_free is the caller's. Errors: ERR_NOMEM. */
int canvas_png_new(double width, double height, struct canvas **ret_canvas, struct err *err);
/* Errors: ERR_IO, ERR_NOMEM, also of what was drawn before. */
int canvas_png_save(struct canvas *canvas, FILE *out, struct err *err);
void canvas_png_free(struct canvas *canvas); /* NULL is fine */

#endif
