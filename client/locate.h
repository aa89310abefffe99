/* locate.h: where in a JSON text a JSON Pointer leads. Pure. */
#ifndef CLIENT_LOCATE_H
#define CLIENT_LOCATE_H

#include <stdbool.h>
#include <stddef.h>

struct position {
    size_t line, column; /* from 1; columns count characters */
};

/* Where the value at `pointer` (RFC 6901) is written in `text`: for a member of an object the start
 * of its key, else the start of the value. A pointer that leads nowhere (a key that is missing)
 * gives the nearest value on the way to it. `text` is JSON that a parser accepted; of anything else
 * as much is followed as can be. False where not even the root can be found. */
bool locate_pointer(const char *text, size_t size, const char *pointer, struct position *ret);

/* Reads the "line L, column C: " that proto's parser puts in front of what is wrong with a JSON
 * text. Returns what follows it, or NULL when `message` does not begin so. */
const char *locate_in_message(const char *message, struct position *ret);

#endif
