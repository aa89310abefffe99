/* status.c: see status.h. */
#include "engine/backend/cpu/status.h"

#include <oneapi/dnnl/dnnl_debug.h>

int status_check(dnnl_status_t status, const char *what, struct err *err)
{
    if (status == dnnl_success)
        return 0;
    int code = status == dnnl_out_of_memory ? ERR_NOMEM : ERR_DEVICE_FAILED;
    return err_set(err, code, "oneDNN: %s: %s", what, dnnl_status2str(status));
}
