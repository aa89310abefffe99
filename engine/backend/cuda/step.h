/* step.h: what changes from step to step, as kernels read it: in the device's memory, so that a
 * step that is captured once can be run again. In C and in CUDA. */
#ifndef ENGINE_BACKEND_CUDA_STEP_H
#define ENGINE_BACKEND_CUDA_STEP_H

#include <stdint.h>

struct device_step { /* struct step of backend.h */
    uint64_t seed;
    int64_t number, first_sample;
    double loss_divisor, gradient_scale, lr;
    int record;
};

/* What a kernel has found in its data that must not be there: a target or an index that names no
 * row. The first to find one leaves it; the host looks when it reads. */
struct device_fault {
    int kind; /* enum fault_kind; 0: none */
    int pad;
    int64_t sample;       /* of the batch */
    int64_t value, limit; /* found; how many there are */
};

enum fault_kind { FAULT_NONE, FAULT_CLASS, FAULT_INDEX, FAULT_LENGTH };

#endif
