/* locate.c: see locate.h. One walk over the text, following the pointer a token a level; what is
 * not on the way is skipped by counting brackets, so no depth can exhaust the stack. */
#include "client/locate.h"

#include <stdio.h>
#include <string.h>

struct cursor {
    const char *at, *end;
};

static void skip_blanks(struct cursor *c)
{
    while (c->at < c->end && strchr(" \t\r\n", *c->at) != NULL && *c->at != '\0')
        c->at++;
}

static bool take(struct cursor *c, char wanted)
{
    skip_blanks(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

/* Behind the string at the cursor, which stands on its first quote. */
static void skip_string(struct cursor *c)
{
    c->at++;
    while (c->at < c->end && *c->at != '"')
        c->at += c->at[0] == '\\' && c->at + 1 < c->end ? 2 : 1;
    if (c->at < c->end)
        c->at++;
}

/* Behind the value at the cursor. */
static void skip_value(struct cursor *c)
{
    size_t depth = 0;
    do {
        skip_blanks(c);
        if (c->at == c->end)
            return;
        char here = *c->at;
        if (here == '"') {
            skip_string(c);
            continue;
        }
        if (here == '{' || here == '[')
            depth++;
        else if (here == '}' || here == ']') {
            if (depth == 0)
                return;
            depth--;
        } else if (here == ',' && depth == 0)
            return;
        c->at++;
        if (depth == 0 && strchr("}]", here) == NULL)
            while (c->at < c->end && strchr(",]} \t\r\n", *c->at) == NULL)
                c->at++;
    } while (depth > 0);
}

static int hex_digit(char h)
{
    return h >= '0' && h <= '9' ? h - '0' : (h | 32) >= 'a' && (h | 32) <= 'f' ? (h | 32) - 87 : -1;
}

/* One character of a JSON string as UTF-8; a lone \u escape is taken as it is, which is enough to
 * compare keys. Returns how many bytes `out` got. */
static size_t unescape(struct cursor *c, char out[static 4])
{
    static const char names[] = "bfnrt", values[] = "\b\f\n\r\t";
    if (c->at[0] != '\\' || c->at + 1 >= c->end) {
        out[0] = *c->at++;
        return 1;
    }
    char escaped = c->at[1];
    c->at += 2;
    if (escaped != 'u' || c->end - c->at < 4) {
        const char *name = strchr(names, escaped);
        out[0] = name != NULL && escaped != '\0' ? values[name - names] : escaped;
        return 1;
    }
    unsigned code = 0;
    for (int i = 0; i < 4; i++)
        code = code << 4 | (unsigned)(hex_digit(*c->at++) & 15);
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : 3;
    out[0] = (char)(n == 2 ? 0xC0 | code >> 6 : 0xE0 | code >> 12);
    if (n == 3)
        out[1] = (char)(0x80 | (code >> 6 & 0x3F));
    out[n - 1] = (char)(0x80 | (code & 0x3F));
    return n;
}

/* The next byte of a pointer's token: "~1" is "/", "~0" is "~". */
static char token_byte(const char **token, const char *end)
{
    char byte = *(*token)++;
    if (byte == '~' && *token < end && (**token == '0' || **token == '1'))
        byte = *(*token)++ == '1' ? '/' : '~';
    return byte;
}

/* Whether the string at the cursor equals the token; the cursor goes behind the string. */
static bool key_equals(struct cursor *c, const char *token, const char *token_end)
{
    struct cursor after = *c;
    skip_string(&after);
    struct cursor key = {c->at + 1, after.at > c->at + 1 ? after.at - 1 : after.at};
    bool equal = true;
    while (equal && key.at < key.end) {
        char bytes[4];
        size_t n = unescape(&key, bytes);
        for (size_t i = 0; i < n && equal; i++)
            equal = token < token_end && token_byte(&token, token_end) == bytes[i];
    }
    *c = after;
    return equal && token == token_end;
}

/* From the inside of an object to the token's member: *ret_key is its key, the cursor is on its
 * value. */
static bool enter_member(struct cursor *c, const char *token, const char *end, const char **ret_key)
{
    while (skip_blanks(c), c->at < c->end && *c->at == '"') {
        const char *key = c->at;
        bool found = key_equals(c, token, end);
        if (!take(c, ':'))
            return false;
        skip_blanks(c);
        if (found) {
            *ret_key = key;
            return true;
        }
        skip_value(c);
        if (!take(c, ','))
            return false;
    }
    return false;
}

/* From the inside of an array to the token's element. */
static bool enter_element(struct cursor *c, const char *token, const char *end,
                          const char **ret_start)
{
    size_t index = 0;
    if (token == end)
        return false;
    for (; token < end; token++) {
        if (*token < '0' || *token > '9' || index > 100000000)
            return false;
        index = index * 10 + (size_t)(*token - '0');
    }
    for (size_t i = 0; i < index; i++) {
        skip_value(c);
        if (!take(c, ','))
            return false;
    }
    skip_blanks(c);
    if (c->at == c->end || *c->at == ']')
        return false;
    *ret_start = c->at;
    return true;
}

static struct position position_of(const char *text, const char *at)
{
    struct position position = {1, 1};
    for (; text < at; text++) {
        if (*text == '\n')
            position = (struct position){position.line + 1, 1};
        else if (((unsigned char)*text & 0xC0) != 0x80)
            position.column++;
    }
    return position;
}

bool locate_pointer(const char *text, size_t size, const char *pointer, struct position *ret)
{
    struct cursor c = {text, text + size};
    skip_blanks(&c);
    if (c.at == c.end)
        return false;
    const char *start = c.at;
    while (*pointer == '/') {
        const char *token = pointer + 1;
        pointer = token + strcspn(token, "/");
        bool found = take(&c, '{')   ? enter_member(&c, token, pointer, &start)
                     : take(&c, '[') ? enter_element(&c, token, pointer, &start)
                                     : false;
        if (!found)
            break;
    }
    *ret = position_of(text, start);
    return true;
}

const char *locate_in_message(const char *message, struct position *ret)
{
    struct position position;
    int length = 0;
    if (sscanf(message, "line %zu, column %zu: %n", &position.line, &position.column, &length) <
            2 ||
        length == 0)
        return NULL;
    position.column += position.column == 0; /* jansson's for a text that is empty */
    *ret = position;
    return message + length;
}
