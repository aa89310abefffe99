/* isa.h: which arithmetic a CPU's instructions serve. PURE. */
#ifndef ENGINE_BACKEND_CPU_ISA_H
#define ENGINE_BACKEND_CPU_ISA_H

#include <oneapi/dnnl/dnnl_types.h>

#include "proto/err.h"
#include "proto/job.h"

/* bf16 takes instructions that multiply it (AVX512_BF16, or AMX): without them oneDNN imitates it,
 * slower than fp32. `isa`: what oneDNN would use, which the user may have limited. Errors:
 * ERR_JOB_UNSUPPORTED at /train/precision, saying what is lacking. */
int isa_check_precision(dnnl_cpu_isa_t isa, enum precision precision, struct err *err);

#endif
