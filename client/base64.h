/* base64.h: RFC 4648, section 4. Pure. */
#ifndef CLIENT_BASE64_H
#define CLIENT_BASE64_H

#include <stdbool.h>
#include <stddef.h>

/* Decodes `size` characters into `out`, which has room for size / 4 * 3 bytes and may be `in`
 * itself. False if they are not Base64 (padding is required). */
bool base64_decode(const char *in, size_t size, char *out, size_t *ret_size);

#endif
