/* low.h: a check program linked with low_on.c instead of low_off.c runs its tables in bf16. */
#ifndef TESTS_ENGINE_LOW_H
#define TESTS_ENGINE_LOW_H

#include <stdbool.h>

extern const bool low_on;
/* Why such a program has to be skipped on this machine; NULL: it has not. */
const char *low_missing(void);

#endif
