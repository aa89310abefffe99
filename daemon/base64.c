/* base64.c: see base64.h. */
#include "daemon/base64.h"

#include <stdlib.h>

char *base64_encode(const char *data, size_t n)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = malloc((n + 2) / 3 * 4 + 1), *to = text;
    if (text == NULL)
        return NULL;
    for (size_t i = 0; i < n; i += 3) {
        unsigned group = 0;
        for (size_t k = 0; k < 3; k++)
            group = group << 8 | (i + k < n ? (unsigned char)data[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            *to++ = i + k <= n ? alphabet[group >> (18 - 6 * k) & 63] : '=';
    }
    *to = '\0';
    return text;
}
