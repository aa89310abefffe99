/* json_write.c: JSON text from jansson's values.
 *
 * jansson's own dump writes a real with seventeen digits; people read these documents, so numbers
 * get the shortest form here. A writer appends to one growing buffer; after a failed allocation it
 * does nothing more and the result is NULL.
 */
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json.h"

struct writer {
    char *buf;
    size_t used, size;
    bool pretty, failed;
};

static void write_value(struct writer *w, const json_t *value, size_t depth);

static void put(struct writer *w, const char *text, size_t n)
{
    if (w->failed)
        return;
    if (n >= w->size - w->used) {
        size_t size = 2 * (w->used + n) + 256;
        char *buf = realloc(w->buf, size);
        if (buf == NULL) {
            w->failed = true;
            return;
        }
        w->buf = buf;
        w->size = size;
    }
    memcpy(w->buf + w->used, text, n);
    w->used += n;
}

static void put_text(struct writer *w, const char *text)
{
    put(w, text, strlen(text));
}

static void put_string(struct writer *w, const char *s, size_t n)
{
    put(w, "\"", 1);
    size_t plain = 0; /* where the run without escapes began */
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        put(w, s + plain, i - plain);
        plain = i + 1;
        char escape[8];
        const char *shorts = c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '"' ? "\\\"" : "\\\\";
        if (c >= 0x20 || c == '\n' || c == '\t')
            put(w, shorts, 2);
        else
            put(w, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", c));
    }
    put(w, s + plain, n - plain);
    put(w, "\"", 1);
}

/* The fewest digits that are read back as the same double; always recognisable as a real. */
static void put_real(struct writer *w, double value)
{
    if (!isfinite(value)) {
        put_text(w, "null");
        return;
    }
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    put_text(w, text);
    if (strpbrk(text, ".e") == NULL)
        put_text(w, ".0");
}

static void put_integer(struct writer *w, json_int_t value)
{
    char text[24];
    put(w, text, (size_t)snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, value));
}

static void new_line(struct writer *w, size_t depth)
{
    if (!w->pretty)
        return;
    put(w, "\n", 1);
    for (size_t i = 0; i < depth; i++)
        put(w, "  ", 2);
}

/* Between the entries of an object or array on one line. */
static void put_comma(struct writer *w, bool inline_entries)
{
    put(w, ",", 1);
    if (w->pretty && inline_entries)
        put(w, " ", 1);
}

static bool is_flat(const json_t *value)
{
    enum { FLAT_MAX = 16 };
    bool flat = json_is_array(value) && json_array_size(value) <= FLAT_MAX;
    for (size_t i = 0; flat && i < json_array_size(value); i++) {
        const json_t *entry = json_array_get(value, i);
        flat = !json_is_array(entry) && !json_is_object(entry);
    }
    return flat;
}

static void put_array(struct writer *w, const json_t *array, size_t depth)
{
    size_t n = json_array_size(array);
    bool flat = is_flat(array);
    put(w, "[", 1);
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            put_comma(w, flat);
        if (!flat)
            new_line(w, depth + 1);
        write_value(w, json_array_get(array, i), depth + 1);
    }
    if (!flat)
        new_line(w, depth);
    put(w, "]", 1);
}

static void put_object(struct writer *w, const json_t *object, size_t depth)
{
    /* jansson's iterators take a mutable object but do not change it. */
    json_t *mutable = (json_t *)object;
    put(w, "{", 1);
    bool first = true;
    for (void *i = json_object_iter(mutable); i != NULL; i = json_object_iter_next(mutable, i)) {
        if (!first)
            put_comma(w, false);
        first = false;
        new_line(w, depth + 1);
        put_string(w, json_object_iter_key(i), strlen(json_object_iter_key(i)));
        put_text(w, w->pretty ? ": " : ":");
        write_value(w, json_object_iter_value(i), depth + 1);
    }
    if (!first)
        new_line(w, depth);
    put(w, "}", 1);
}

static void write_value(struct writer *w, const json_t *value, size_t depth)
{
    if (json_is_object(value))
        put_object(w, value, depth);
    else if (json_is_array(value))
        put_array(w, value, depth);
    else if (json_is_string(value))
        put_string(w, json_string_value(value), json_string_length(value));
    else if (json_is_integer(value))
        put_integer(w, json_integer_value(value));
    else if (json_is_real(value))
        put_real(w, json_real_value(value));
    else
        put_text(w, json_is_true(value) ? "true" : json_is_false(value) ? "false" : "null");
}

static char *written(const json_t *root, bool pretty)
{
    struct writer w = {.pretty = pretty};
    write_value(&w, root, 0);
    if (pretty)
        put(&w, "\n", 1);
    put(&w, "", 1);
    if (w.failed) {
        free(w.buf);
        return NULL;
    }
    return w.buf;
}

char *json_line(const json_t *root)
{
    return written(root, false);
}

char *json_pretty(const json_t *root)
{
    return written(root, true);
}
