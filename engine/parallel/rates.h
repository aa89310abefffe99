/* rates.h: how fast a device computes and moves memory at best, as its own kernels do. */
#ifndef ENGINE_PARALLEL_RATES_H
#define ENGINE_PARALLEL_RATES_H

#include "engine/backend/backend.h"
#include "engine/parallel/estimate.h"

/* Of a large product (`low`: in BF16) and of the sum of arrays that no cache holds, written over
 * one of them; ret_rates->seconds is 0. On the device's thread. Errors: the device's, ERR_NOMEM. */
int rates_measure(const struct backend *backend, struct device *device, bool low,
                  struct estimate_rates *ret_rates, struct err *err);

#endif
