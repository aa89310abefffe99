#define _GNU_SOURCE /* memfd_create */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

const char *fuzz_file(const uint8_t *data, size_t size)
{
    static char path[64];
    static int fd = -1;
    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    fuzz_expect(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
    return path;
}

void fuzz_expect(int condition)
{
    if (!condition)
        abort();
}

void fuzz_expect_error(int rc, const struct err *err)
{
    fuzz_expect(rc < 0 && err->code == rc && err->message[0] != '\0');
}
