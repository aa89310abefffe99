/* low_on.c: this program runs in bf16. */
#include "tests/engine/low.h"
#include "tests/engine/test_backend.h"

const bool low_on = true;

const char *low_missing(void)
{
    struct err err = ERR_INIT;
    const char *missing = NULL;
    const struct backend *backend = test_backend(&missing);
    if (backend == NULL)
        return missing;
    int rc = backend->check_precision(PRECISION_BF16, &err);
    return rc == 0 ? NULL : "the devices of this machine do not compute in bf16";
}
