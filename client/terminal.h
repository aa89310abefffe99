/* terminal.h: what standard output is, and a block of lines on it that is redrawn in place. */
#ifndef CLIENT_TERMINAL_H
#define CLIENT_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

#include "client/render/style.h"
#include "client/render/text.h"
#include "proto/err.h"

/* The style of standard output: its size, its character set (LC_ALL, LC_CTYPE, LANG in this order),
 * colours on a terminal unless NO_COLOR is set or TERM is dumb. A file or pipe is as wide as it
 * needs to be. */
void terminal_style(struct style *ret_style);

/* Whether these three variables (NULL: not set) choose UTF-8. Pure. */
bool terminal_is_utf8(const char *lc_all, const char *lc_ctype, const char *lang);

/* Writes to standard output and flushes. Errors: ERR_IO, ERR_NOMEM (text->failed). */
int terminal_write(const struct text *text, struct err *err);

struct block {
    size_t lines; /* drawn, above the cursor */
};

/* Replaces the block on the terminal: first `above` is printed for good, then `lines` (each cut to
 * the width) become the block. Errors as terminal_write's. */
int block_draw(struct block *block, const struct style *style, const struct text *above,
               const struct text *lines, struct err *err);

#endif
