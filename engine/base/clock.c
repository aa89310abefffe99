/* clock.c: see clock.h. */
#include "engine/base/clock.h"

#include <time.h>

static double seconds(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

double clock_seconds(void)
{
    return seconds(CLOCK_MONOTONIC);
}

double clock_thread_seconds(void)
{
    return seconds(CLOCK_THREAD_CPUTIME_ID);
}
