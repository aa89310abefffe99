/* style.h: how output may look: what the render functions know of the terminal. */
#ifndef CLIENT_RENDER_STYLE_H
#define CLIENT_RENDER_STYLE_H

#include <stdbool.h>
#include <stddef.h>

enum color { COLOR_NONE, COLOR_BOLD, COLOR_DIM, COLOR_RED, COLOR_GREEN, COLOR_YELLOW, COLOR_CYAN };

struct style {
    size_t columns; /* lines are cut to this many */
    size_t rows;    /* what a redrawn block may cover */
    bool utf8;      /* else ASCII only */
    bool color;
    bool terminal; /* the cursor can be moved: redraw in place */
};

#endif
