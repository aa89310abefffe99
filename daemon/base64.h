/* base64.h: RFC 4648, with padding. Pure. */
#ifndef DAEMON_BASE64_H
#define DAEMON_BASE64_H

#include <stddef.h>

/* The text of `n` bytes, to be freed with free(); NULL without memory. */
char *base64_encode(const char *data, size_t n);

#endif
