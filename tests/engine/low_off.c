/* low_off.c: this program runs in fp32. */
#include <stddef.h>

#include "tests/engine/low.h"

const bool low_on = false;

const char *low_missing(void)
{
    return NULL;
}
