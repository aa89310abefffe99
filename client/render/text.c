/* text.c: see text.h. */
#include "client/render/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_done(struct text *text)
{
    free(text->s);
    *text = (struct text){0};
}

void text_clear(struct text *text)
{
    text->used = 0;
    if (text->s != NULL)
        text->s[0] = '\0';
}

const char *text_str(const struct text *text)
{
    return text->s != NULL ? text->s : "";
}

int text_check(const struct text *text, struct err *err)
{
    return text->failed ? err_set(err, ERR_NOMEM, "out of memory") : 0;
}

static bool reserve(struct text *text, size_t n)
{
    if (text->failed)
        return false;
    if (text->used + n < text->size)
        return true;
    size_t size = (text->used + n + 1) * 2;
    char *grown = realloc(text->s, size);
    if (grown == NULL) {
        text->failed = true;
        return false;
    }
    text->s = grown;
    text->size = size;
    return true;
}

void text_addn(struct text *text, const char *s, size_t n)
{
    if (!reserve(text, n))
        return;
    memcpy(text->s + text->used, s, n);
    text->used += n;
    text->s[text->used] = '\0';
}

void text_add(struct text *text, const char *s)
{
    text_addn(text, s, strlen(s));
}

void text_fmt(struct text *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    if (n < 0)
        text->failed = true;
    else if (reserve(text, (size_t)n)) {
        vsnprintf(text->s + text->used, (size_t)n + 1, format, again);
        text->used += (size_t)n;
    }
    va_end(again);
    va_end(args);
}

void text_repeat(struct text *text, const char *s, size_t times)
{
    for (size_t i = 0; i < times; i++)
        text_add(text, s);
}

/* Decodes one code point of `n` > 0 bytes; returns its length, 0 if the bytes are not UTF-8. */
static size_t decode(const char *s, size_t n, uint32_t *ret)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char lead = (unsigned char)s[0];
    size_t length = lead < 0x80   ? 1
                    : lead < 0xC0 ? 0
                    : lead < 0xE0 ? 2
                    : lead < 0xF0 ? 3
                    : lead < 0xF8 ? 4
                                  : 0;
    if (length == 0 || length > n)
        return 0;
    uint32_t c = length == 1 ? lead : lead & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        unsigned char next = (unsigned char)s[i];
        if ((next & 0xC0) != 0x80)
            return 0;
        c = c << 6 | (next & 0x3F);
    }
    if (c < least[length] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
        return 0;
    *ret = c;
    return length;
}

struct range {
    uint32_t first, last;
};

static bool in_ranges(uint32_t c, const struct range *ranges, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    return false;
}

#define IN(c, ranges) in_ranges(c, ranges, sizeof(ranges) / sizeof *(ranges))

/* What a terminal acts upon, or what turns the reading direction of what follows. */
static bool is_control(uint32_t c)
{
    static const struct range control[] = {{0x00, 0x1F},     {0x7F, 0x9F},     {0x200E, 0x200F},
                                           {0x2028, 0x202E}, {0x2066, 0x2069}, {0xFEFF, 0xFEFF}};
    return IN(c, control);
}

/* Unicode's East Asian width and combining marks, the blocks that names are made of. */
static size_t columns_of(uint32_t c)
{
    static const struct range zero[] = {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD},
                                        {0x200B, 0x200F}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F},
                                        {0xFE20, 0xFE2F}};
    static const struct range wide[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},
                                        {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
                                        {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
                                        {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
    return c < 0x300 ? 1 : IN(c, zero) ? 0 : IN(c, wide) ? 2 : 1;
}

static void add_escape(struct text *text, uint32_t c)
{
    if (c == '\n')
        text_add(text, "\\n");
    else if (c == '\t')
        text_add(text, "\\t");
    else if (c < 0x100)
        text_fmt(text, "\\x%02x", (unsigned)c);
    else
        text_fmt(text, "\\u%04x", (unsigned)c);
}

void text_safe(struct text *text, const struct style *style, const char *s)
{
    for (size_t left = s != NULL ? strlen(s) : 0; left > 0;) {
        uint32_t c;
        size_t length = decode(s, left, &c);
        if (length == 0) {
            add_escape(text, (unsigned char)s[0]);
            length = 1;
        } else if (is_control(c))
            add_escape(text, c);
        else if (c >= 0x80 && !style->utf8)
            text_add(text, "?");
        else
            text_addn(text, s, length);
        s += length;
        left -= length;
    }
}

void text_json(struct text *text, const char *json)
{
    for (size_t left = strlen(json); left > 0;) {
        uint32_t c;
        size_t length = decode(json, left, &c);
        if (length == 0)
            length = 1;
        else if (c >= 0x7F && c <= 0x9F)
            text_fmt(text, "\\u%04x", (unsigned)c);
        else
            text_addn(text, json, length);
        json += length;
        left -= length;
    }
}

void text_paint(struct text *text, const struct style *style, enum color color, const char *s)
{
    static const char *const start[] = {
        [COLOR_NONE] = "",         [COLOR_BOLD] = "\033[1m",   [COLOR_DIM] = "\033[2m",
        [COLOR_RED] = "\033[31m",  [COLOR_GREEN] = "\033[32m", [COLOR_YELLOW] = "\033[33m",
        [COLOR_CYAN] = "\033[36m",
    };
    bool paint = style->color && color != COLOR_NONE;
    text_add(text, paint ? start[color] : "");
    text_add(text, s);
    text_add(text, paint ? "\033[0m" : "");
}

/* The length of a colour sequence (ESC [ … m) at `s`, or 0. */
static size_t sequence(const char *s, size_t n)
{
    if (n < 3 || s[0] != '\033' || s[1] != '[')
        return 0;
    for (size_t i = 2; i < n; i++)
        if (s[i] == 'm')
            return i + 1;
    return 0;
}

/* One printed unit of `n` > 0 bytes: its length, and the columns that it takes. */
static size_t unit(const char *s, size_t n, size_t *ret_columns)
{
    size_t length = sequence(s, n);
    *ret_columns = 0;
    if (length > 0)
        return length;
    uint32_t c;
    length = decode(s, n, &c);
    *ret_columns = length == 0 ? 1 : columns_of(c);
    return length == 0 ? 1 : length;
}

size_t text_columns(const char *s, size_t n)
{
    size_t columns = 0;
    while (n > 0) {
        size_t width, length = unit(s, n, &width);
        columns += width;
        s += length;
        n -= length;
    }
    return columns;
}

static void clip(struct text *text, const struct style *style, const char *line, size_t n,
                 size_t columns)
{
    if (text_columns(line, n) <= columns) {
        text_addn(text, line, n);
        return;
    }
    size_t column = 0;
    bool cut = false;
    while (n > 0) {
        size_t width, length = unit(line, n, &width);
        if (!cut && width > 0 && column + width + 1 > columns) {
            text_add(text, columns == 0 ? "" : style->utf8 ? "…" : "~");
            cut = true;
        }
        /* Colour sequences behind the cut still count: one of them ends the colour. */
        if (!cut || line[0] == '\033')
            text_addn(text, line, length);
        column += width;
        line += length;
        n -= length;
    }
}

void text_clip(struct text *text, const struct style *style, const char *line, size_t columns)
{
    clip(text, style, line, strlen(line), columns);
}

size_t text_clip_lines(struct text *text, const struct style *style, const char *lines)
{
    size_t n = 0;
    while (*lines != '\0') {
        size_t length = strcspn(lines, "\n");
        clip(text, style, lines, length, style->columns);
        text_add(text, "\n");
        lines += length + (lines[length] == '\n');
        n++;
    }
    return n;
}
