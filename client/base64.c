/* base64.c: see base64.h. */
#include "client/base64.h"

#include <stdint.h>

static int value_of(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

bool base64_decode(const char *in, size_t size, char *out, size_t *ret_size)
{
    size_t used = 0;
    if (size % 4 != 0)
        return false;
    for (size_t i = 0; i < size; i += 4) {
        size_t padding = i + 4 < size ? 0 : (size_t)(in[i + 3] == '=') + (in[i + 2] == '=');
        uint32_t bits = 0;
        for (size_t j = 0; j < 4; j++) {
            int value = j < 4 - padding ? value_of(in[i + j]) : in[i + j] == '=' ? 0 : -1;
            if (value < 0)
                return false;
            bits = bits << 6 | (uint32_t)value;
        }
        for (size_t j = 0; j < 3 - padding; j++)
            out[used++] = (char)(bits >> (16 - 8 * j));
    }
    *ret_size = used;
    return true;
}
