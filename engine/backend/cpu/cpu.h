/* cpu.h: what the CPU backend's files share. */
#ifndef ENGINE_BACKEND_CPU_CPU_H
#define ENGINE_BACKEND_CPU_CPU_H

#include <oneapi/dnnl/dnnl_types.h>

#include "engine/backend/backend.h"

struct device {
    dnnl_engine_t engine;
    dnnl_stream_t stream; /* runs on the device thread itself, in order */
};

#define KERNEL(op) extern const struct kernel kernel_##op;
#include "engine/backend/cpu/kernels.def"
#undef KERNEL

#endif
