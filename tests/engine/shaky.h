/* shaky.h: the CPU backend with random delays before every kernel and copy, and with failures on
 * demand. */
#ifndef TESTS_ENGINE_SHAKY_H
#define TESTS_ENGINE_SHAKY_H

#include "engine/backend/backend.h"

extern const struct backend backend_shaky;

/* Delays of up to so many microseconds, another one each time; 0: none. */
void shaky_delay(unsigned most_us);
/* The n-th run (from 1) of `op` on the device fails; memory of more than `most_bytes` a piece is
 * refused there. NULL: nothing fails. Before the device is opened, or between two calls. */
void shaky_fail_run(const char *device, const char *op, long n);
void shaky_fail_memory(const char *device, size_t most_bytes);
/* The bytes of memory that a device of cpu:0 … cpu:9 holds, in whole pages. */
size_t shaky_allocated(const char *device);

#endif
