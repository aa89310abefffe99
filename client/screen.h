/* screen.h: the whole terminal, through ncurses: lines of text with our own colour sequences are
 * put on it, keys are read from it, and it is left as it was found. One screen a process. */
#ifndef CLIENT_SCREEN_H
#define CLIENT_SCREEN_H

#include <stdbool.h>

#include "client/render/style.h"
#include "client/render/text.h"
#include "proto/err.h"

enum screen_key { /* beside characters */
                  SCREEN_NONE = -1,
                  SCREEN_UP = 0x110000,
                  SCREEN_DOWN,
                  SCREEN_PAGE_UP,
                  SCREEN_PAGE_DOWN,
                  SCREEN_ENTER,
};

/* Takes the terminal of standard input and output. `style` loses UTF-8 where the C library's
 * locale has none. Errors: ERR_USAGE (no terminal, or one that ncurses does not know). */
int screen_open(struct style *style, struct err *err);
/* Gives it back. Nothing where none is open. */
void screen_close(void);
/* Fits it to the terminal's new size, which `style` has; it loses UTF-8 as at the opening. */
void screen_resize(struct style *style);
/* The next key that was pressed, a character or an enum screen_key; SCREEN_NONE: none is waiting.
 * Never blocks. */
int screen_key(void);
/* Shows these lines, from the top. Errors: ERR_NOMEM (lines->failed). */
int screen_draw(const struct text *lines, struct err *err);

#endif
