/* descriptors.h: what a program of ours does first. */
#ifndef PROTO_DESCRIPTORS_H
#define PROTO_DESCRIPTORS_H

/* Takes descriptors 0, 1 and 2 where the caller left them closed (`prog >&-`), so that no file or
 * socket that is opened later becomes standard output and is written into. To use one that was
 * closed stays an error (EBADF). Returns 0, or -1 with errno where there is no /dev/null. Before
 * anything is opened. */
int descriptors_reserve(void);

#endif
