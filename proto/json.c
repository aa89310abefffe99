/* json.c: reading JSON strictly, and saying what was found where it does not fit. */
#include "proto/json.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "proto/limits.h"

/* Refuses nesting beyond `limit`: jansson recurses once a level. Only brackets outside strings
 * count; whether the text is JSON at all is jansson's to find. */
static int check_depth(const char *text, size_t size, size_t limit, int code, struct err *err)
{
    size_t depth = 0, line = 1, line_start = 0;
    bool in_string = false;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '\n') {
            line++;
            line_start = i + 1;
        } else if (c == '[' || c == '{') {
            if (++depth > limit)
                return err_set(err, code, "line %zu, column %zu: nested more than %zu deep", line,
                               i - line_start + 1, limit);
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return 0;
}

int json_load_nested(const char *text, size_t size, size_t depth, int code, json_t **ret_root,
                     struct err *err)
{
    int rc = check_depth(text, size, depth, code, err);
    if (rc != 0)
        return rc;
    json_error_t error = {0};
    errno = 0;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (root == NULL) {
        /* jansson calls a string that it could not allocate a syntax error. */
        if (errno == ENOMEM)
            return err_set(err, ERR_NOMEM, "out of memory while reading JSON");
        /* jansson's own sentence names a flag of its interface. */
        return err_set(err, code, "line %d, column %d: %s", error.line, error.column,
                       json_error_code(&error) == json_error_null_character
                           ? "\\u0000 is not allowed in a string"
                           : error.text);
    }
    *ret_root = root;
    return 0;
}

int json_load(const char *text, size_t size, int code, json_t **ret_root, struct err *err)
{
    return json_load_nested(text, size, LIMIT_DEPTH, code, ret_root, err);
}

json_t *json_list_append(json_t *list, json_t *value)
{
    if (list == NULL || json_array_append_new(list, value) != 0) {
        if (list == NULL)
            json_decref(value);
        json_decref(list);
        return NULL;
    }
    return list;
}

json_t *json_put(json_t *object, const char *key, json_t *value)
{
    if (object == NULL || json_object_set_new(object, key, value) != 0) {
        if (object == NULL)
            json_decref(value);
        json_decref(object);
        return NULL;
    }
    return object;
}

enum { NEAREST_MAX = 64 }; /* longer names are nobody's typing mistake */

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* Edits (insert, delete, replace, swap of neighbours) that turn `a` into `b`, case apart. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t rows[3][NEAREST_MAX + 1];
    size_t n = strlen(a), m = strlen(b);
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= m; j++)
        last[j] = j;
    for (size_t i = 1; i <= n; i++) {
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            int x = tolower((unsigned char)a[i - 1]), y = tolower((unsigned char)b[j - 1]);
            row[j] = min3(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y));
            if (i > 1 && j > 1 && x == tolower((unsigned char)b[j - 2]) &&
                tolower((unsigned char)a[i - 2]) == y && before[j - 2] + 1 < row[j])
                row[j] = before[j - 2] + 1;
        }
        size_t *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[m];
}

const char *json_nearest(const char *name, const char *const *known, size_t n_known)
{
    size_t length = strlen(name);
    if (length > NEAREST_MAX)
        return NULL;
    const char *nearest = NULL;
    size_t least = length < 3 ? 1 : length / 3 + 1; /* this many edits are too many, but for one */
    for (size_t i = 0; i < n_known; i++) {
        if (strlen(known[i]) > NEAREST_MAX)
            continue;
        size_t distance = edit_distance(name, known[i]);
        if (distance < least) {
            least = distance;
            nearest = known[i];
        }
    }
    return nearest;
}

const char *json_describe(const json_t *value, char buf[static 96])
{
    enum { SIZE = 96 };
    const char *text = json_string_value(value);
    int shown = 60;
    switch (json_typeof(value)) {
    case JSON_STRING:
        if (json_string_length(value) <= (size_t)shown)
            shown = (int)json_string_length(value);
        while (((unsigned char)text[shown] & 0xc0) == 0x80)
            shown--; /* not inside a character */
        snprintf(buf, SIZE, "the string \"%.*s\"%s", shown, text, text[shown] != '\0' ? "…" : "");
        break;
    case JSON_INTEGER:
        snprintf(buf, SIZE, "the number %" JSON_INTEGER_FORMAT, json_integer_value(value));
        break;
    case JSON_REAL:
        snprintf(buf, SIZE, "the number %g", json_real_value(value));
        if (strpbrk(buf + strlen("the number "), ".e") == NULL)
            strcat(buf, ".0"); /* a whole one is still no integer */
        break;
    case JSON_ARRAY:
        snprintf(buf, SIZE, "a list of %zu", json_array_size(value));
        break;
    case JSON_OBJECT:
        snprintf(buf, SIZE, "an object");
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        snprintf(buf, SIZE, "%s", json_is_true(value) ? "true" : "false");
        break;
    case JSON_NULL:
        snprintf(buf, SIZE, "null");
        break;
    }
    return buf;
}
