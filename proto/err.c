/* err.c: filling `struct err`, and the tables behind its codes.
 *
 * Whatever bytes a format brings in (a user's file name, half a character cut by a limit), path and
 * message end up as valid UTF-8 without control characters: they go into JSON and onto other
 * people's terminals as they are.
 */
#include "proto/err.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct code_row {
    const char *name;
    int rpc_code;
    int exit_status;
};

static const struct code_row rows[] = {
#define X(name, stable, rpc, status) [ERR_INDEX_##name] = {stable, rpc, status},
    ERR_CODES(X)
#undef X
};

static const struct code_row *row_of(int code)
{
    int index = -1 - code;
    return &rows[index >= 0 && index < ERR_COUNT ? index : ERR_INDEX_INTERNAL];
}

/* The bytes of the well-formed character at `s` (RFC 3629: no overlong form, no surrogate, nothing
 * above U+10FFFF), or 0. A NUL inside a character fails its range test, so nothing beyond is read.
 */
static size_t utf8_length(const unsigned char *s)
{
    static const struct {
        unsigned char first, last; /* of the lead byte */
        unsigned char low, high;   /* of the second byte */
        unsigned char size;
    } forms[] = {
        {0x00, 0x7f, 0x00, 0x00, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (s[0] < forms[i].first || s[0] > forms[i].last)
            continue;
        if (forms[i].size > 1 && (s[1] < forms[i].low || s[1] > forms[i].high))
            return 0;
        for (size_t k = 2; k < forms[i].size; k++)
            if (s[k] < 0x80 || s[k] > 0xbf)
                return 0;
        return forms[i].size;
    }
    return 0;
}

/* U+0000 to U+001F, DEL, and the C1 controls, which some terminals obey too. */
static bool is_control(const unsigned char *s)
{
    return s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0);
}

/* Makes `text` printable in place; a character that the buffer's end cut in two is dropped. */
static void clean(char *text, bool cut)
{
    unsigned char *s = (unsigned char *)text;
    while (*s != '\0') {
        size_t n = utf8_length(s);
        if (n == 0 && cut && strlen((char *)s) < 4) {
            *s = '\0';
            return;
        }
        if (n == 0 || is_control(s))
            memset(s, '?', n == 0 ? 1 : n);
        s += n == 0 ? 1 : n;
    }
}

static void print(char *buf, size_t size, const char *format, va_list args)
{
    int n = vsnprintf(buf, size, format, args);
    if (n < 0)
        buf[0] = '\0';
    clean(buf, n >= (int)size);
}

int err_set(struct err *err, int code, const char *format, ...)
{
    char message[sizeof err->message]; /* the arguments may be err's own strings */
    va_list args;
    va_start(args, format);
    print(message, sizeof message, format, args);
    va_end(args);
    err->code = code;
    err->path[0] = '\0';
    strcpy(err->message, message);
    return code;
}

int err_at(struct err *err, int code, const char *path, const char *format, ...)
{
    char message[sizeof err->message];
    va_list args;
    va_start(args, format);
    print(message, sizeof message, format, args);
    va_end(args);
    err->code = code;
    if (path != err->path) {
        int n = snprintf(err->path, sizeof err->path, "%s", path);
        clean(err->path, n >= (int)sizeof err->path);
    }
    strcpy(err->message, message);
    return code;
}

int err_errno(struct err *err, int errnum, const char *format, ...)
{
    char what[sizeof err->message];
    va_list args;
    va_start(args, format);
    print(what, sizeof what, format, args);
    va_end(args);
    char reason[128] = "";
    if (strerror_r(errnum, reason, sizeof reason) != 0)
        snprintf(reason, sizeof reason, "error %d", errnum);
    return err_set(err, ERR_IO, "%s: %s", what, reason);
}

int err_context(struct err *err, const char *format, ...)
{
    char context[sizeof err->message];
    va_list args;
    va_start(args, format);
    print(context, sizeof context, format, args);
    va_end(args);
    char message[2 * sizeof err->message + 2];
    int n = snprintf(message, sizeof message, "%s: %s", context, err->message);
    size_t kept = sizeof err->message - 1;
    memcpy(err->message, message, kept);
    err->message[kept] = '\0';
    clean(err->message, n > (int)kept);
    return err->code;
}

const char *err_name(int code)
{
    return row_of(code)->name;
}

int err_rpc_code(int code)
{
    return row_of(code)->rpc_code;
}

int err_exit_status(int code)
{
    return row_of(code)->exit_status;
}

int err_from_name(const char *name)
{
    for (int i = 0; i < ERR_COUNT; i++)
        if (strcmp(rows[i].name, name) == 0)
            return -1 - i;
    return ERR_INTERNAL;
}
