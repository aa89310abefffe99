/* descriptors.c: see descriptors.h. */
#include "proto/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int descriptors_reserve(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
            continue;
        /* The lowest free number is this one. Opened the wrong way round: reading standard input
         * and writing the others fail as before. */
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            return -1;
    }
    return 0;
}
