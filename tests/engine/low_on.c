/* low_on.c: this program runs in bf16. */
#include "engine/backend/backend.h"
#include "tests/engine/low.h"

const bool low_on = true;

const char *low_missing(void)
{
    struct err err = ERR_INIT;
    int rc = backend_cpu.check_precision(PRECISION_BF16, &err);
    return rc == 0 ? NULL : "this CPU does not compute in bf16";
}
