/* text.h: a growing string, and the two things that every printed word needs: its width in columns,
 * and harmlessness when somebody else wrote it.
 *
 * Zero-initialise a `struct text`; text_done frees it. An allocation that fails sets `failed` and
 * makes every later call do nothing, so a renderer checks once, at its end (text_check). Pure.
 */
#ifndef CLIENT_RENDER_TEXT_H
#define CLIENT_RENDER_TEXT_H

#include "client/render/style.h"
#include "proto/err.h"

struct text {
    char *s; /* NUL-terminated once anything was added; NULL before */
    size_t used, size;
    bool failed;
};

void text_done(struct text *text);
/* Empties it and keeps the memory. */
void text_clear(struct text *text);
/* The string, never NULL. */
const char *text_str(const struct text *text);
/* 0, or ERR_NOMEM when anything was lost. */
int text_check(const struct text *text, struct err *err);

void text_add(struct text *text, const char *s);
void text_addn(struct text *text, const char *s, size_t n);
void text_fmt(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_repeat(struct text *text, const char *s, size_t times);

/* Adds somebody else's words: control characters (C0, C1, DEL), direction overrides and bytes that
 * are not UTF-8 become visible escapes (\n, \x1b, \u202e); without UTF-8 other non-ASCII becomes
 * '?'. NULL adds nothing. */
void text_safe(struct text *text, const struct style *style, const char *s);
/* Adds JSON text; control characters that JSON allows in strings (DEL, C1) become \u escapes. */
void text_json(struct text *text, const char *json);
/* Adds our own words between the escape sequences of a colour, if the style has colours. */
void text_paint(struct text *text, const struct style *style, enum color color, const char *s);

/* Columns that `n` bytes take; our own colour sequences take none. */
size_t text_columns(const char *s, size_t n);
/* Adds one line cut to `columns`, ending in an ellipsis where it was cut. */
void text_clip(struct text *text, const struct style *style, const char *line, size_t columns);
/* Adds every line of `lines` so cut to the style's columns. Returns how many lines were added. */
size_t text_clip_lines(struct text *text, const struct style *style, const char *lines);

#endif
