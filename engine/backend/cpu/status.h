/* status.h: oneDNN's status as our error. */
#ifndef ENGINE_BACKEND_CPU_STATUS_H
#define ENGINE_BACKEND_CPU_STATUS_H

#include <oneapi/dnnl/dnnl_types.h>

#include "proto/err.h"

/* 0, or ERR_NOMEM / ERR_DEVICE_FAILED with "oneDNN: WHAT: …". */
int status_check(dnnl_status_t status, const char *what, struct err *err);

#endif
