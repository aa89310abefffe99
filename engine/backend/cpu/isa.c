/* isa.c: see isa.h. */
#include "engine/backend/cpu/isa.h"

#include <stdbool.h>
#include <stddef.h>

/* oneDNN numbers them so that one that contains another has its bits. */
static bool contains(dnnl_cpu_isa_t isa, dnnl_cpu_isa_t other)
{
    return ((unsigned)isa & (unsigned)other) == (unsigned)other;
}

static const struct {
    dnnl_cpu_isa_t isa;
    const char *name;
} names[] = {
    /* the largest first */
    {dnnl_cpu_isa_avx512_core_vnni, "AVX-512 with VNNI"},
    {dnnl_cpu_isa_avx512_core, "AVX-512"},
    {dnnl_cpu_isa_avx2_vnni, "AVX2 with VNNI"},
    {dnnl_cpu_isa_avx2, "AVX2"},
    {dnnl_cpu_isa_avx, "AVX"},
    {dnnl_cpu_isa_sse41, "SSE4.1"},
};

static const char *isa_name(dnnl_cpu_isa_t isa)
{
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (contains(isa, names[i].isa))
            return names[i].name;
    return "less than SSE4.1";
}

int isa_check_precision(dnnl_cpu_isa_t isa, enum precision precision, struct err *err)
{
    if (precision == PRECISION_FP32 || contains(isa, dnnl_cpu_isa_avx512_core_bf16))
        return 0;
    return err_at(err, ERR_JOB_UNSUPPORTED, "/train/precision",
                  "bf16 needs a CPU with AVX512_BF16 or AMX, and this one has %s; use \"fp32\"",
                  isa_name(isa));
}
