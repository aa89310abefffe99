/* cpu.c: the CPU as a backend: a device is the cores of the thread that drives it.
 *
 * Compute is oneDNN's for convolution, Linear, normalisation and activations (program.h), our own
 * loops for the rest (own.h). Memory is mapped in one piece per allocation, with huge pages: the
 * first touch of small pages costs more than many a kernel.
 */
#include "engine/backend/cpu/cpu.h"

#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/backend/cpu/isa.h"
#include "engine/backend/cpu/layout.h"
#include "engine/backend/cpu/status.h"

enum { HUGE_PAGE_BYTES = 2 << 20, PAGE_BYTES = 4 << 10 };

static void cpu_device_close(struct device *device)
{
    if (!device)
        return;
    dnnl_stream_destroy(device->stream);
    dnnl_engine_destroy(device->engine);
    free(device);
}

static int cpu_device_open(const struct device_config *config, struct device **ret_device,
                           struct err *err)
{
    struct device *device = calloc(1, sizeof *device);
    if (!device)
        return err_set(err, ERR_NOMEM, "no memory for the device %s", config->name);
    int rc = status_check(dnnl_engine_create(&device->engine, dnnl_cpu, 0), "engine", err);
    if (rc == 0)
        rc = status_check(
            dnnl_stream_create(&device->stream, device->engine, dnnl_stream_default_flags),
            "stream", err);
    if (rc) {
        cpu_device_close(device);
        return err_context(err, "%s", config->name);
    }
    *ret_device = device;
    return 0;
}

/* Whole pages, and whole huge pages where one fits: the kernel only makes a huge page of an aligned
 * range. */
static size_t mapped_bytes(size_t bytes)
{
    size_t page = bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : PAGE_BYTES;
    return bytes == 0 ? page : (bytes + page - 1) / page * page;
}

static void *cpu_alloc(struct device *device, size_t bytes)
{
    (void)device;
    if (bytes > SIZE_MAX / 2)
        return NULL;
    size_t want = mapped_bytes(bytes);
    size_t slack = want >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : 0;
    char *map =
        mmap(NULL, want + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    if (!slack)
        return map;
    size_t head = (HUGE_PAGE_BYTES - (uintptr_t)map % HUGE_PAGE_BYTES) % HUGE_PAGE_BYTES;
    if (head)
        munmap(map, head);
    if (slack - head)
        munmap(map + head + want, slack - head);
    madvise(map + head, want, MADV_HUGEPAGE); /* a wish: small pages serve as well */
    return map + head;
}

static void cpu_free(struct device *device, void *memory, size_t bytes)
{
    (void)device;
    if (memory)
        munmap(memory, mapped_bytes(bytes));
}

static int cpu_copy(struct device *device, void *to, const void *from, size_t bytes,
                    struct err *err)
{
    (void)device;
    (void)err;
    memcpy(to, from, bytes);
    return 0;
}

static int cpu_check_precision(enum precision precision, struct err *err)
{
    return isa_check_precision(dnnl_get_effective_cpu_isa(), precision, err);
}

static int cpu_copy_between(struct device *device, void *to, const struct device *from_device,
                            const void *from, size_t bytes, struct err *err)
{
    (void)from_device;
    return cpu_copy(device, to, from, bytes, err);
}

static const struct kernel *const kernels[] = {
#define KERNEL(op) &kernel_##op,
#include "engine/backend/cpu/kernels.def"
#undef KERNEL
};

const struct backend backend_cpu = {
    .name = "cpu",
    .shares_memory = true,
    .kernels = kernels,
    .n_kernels = sizeof kernels / sizeof kernels[0],
    .check_precision = cpu_check_precision,
    .layout_plain = layout_plain,
    .layout_bytes = layout_bytes,
    .layout_equal = layout_equal,
    .layout_name = layout_name,
    .device_open = cpu_device_open,
    .device_close = cpu_device_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .alloc_bytes = mapped_bytes,
    .write = cpu_copy,
    .read = cpu_copy,
    .copy = cpu_copy_between,
};
