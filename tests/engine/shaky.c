/* shaky.c: see shaky.h. Each of its kernels is the CPU's of the same op with something before. */
#include "tests/engine/shaky.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/graph/op.h"

struct shaky_kernel {
    const struct kernel *inner;
    void *state;
    const char *device;
};

static atomic_uint most_us, turn;
static const char *fail_device, *fail_op, *poor_device;
static atomic_long runs_left;
static size_t poor_bytes;
static atomic_size_t allocated[10];      /* by device */
static _Thread_local const char *opened; /* the name of this thread's device */

void shaky_delay(unsigned us)
{
    most_us = us;
}

void shaky_fail_run(const char *device, const char *op, long n)
{
    fail_device = device;
    fail_op = op;
    runs_left = n;
}

void shaky_fail_memory(const char *device, size_t most_bytes)
{
    poor_device = device;
    poor_bytes = most_bytes;
}

static void delay(void)
{
    unsigned most = most_us, number = turn++;
    if (most == 0)
        return;
    number = (number + 1) * 2654435761u; /* Knuth's multiplicative hash */
    number ^= number >> 15;
    if (number % 4 != 0)
        nanosleep(&(struct timespec){.tv_nsec = (long)(number / 4 % most) * 1000}, NULL);
}

static int shaky_query(const struct node *node, const struct layout *const *in, struct arena *arena,
                       struct kernel_choice *ret_choice, struct err *err)
{
    return backend_kernel(&backend_cpu, node->op->name)->query(node, in, arena, ret_choice, err);
}

static int shaky_create(struct device *device, const struct node *node,
                        const struct kernel_choice *choice, void **ret_state, struct err *err)
{
    struct shaky_kernel *kernel = calloc(1, sizeof *kernel);
    if (kernel == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    kernel->inner = backend_kernel(&backend_cpu, node->op->name);
    kernel->device = opened;
    int rc = kernel->inner->create(device, node, choice, &kernel->state, err);
    if (rc != 0)
        free(kernel);
    else
        *ret_state = kernel;
    return rc;
}

static int shaky_run(void *state, const struct kernel_args *args, struct err *err)
{
    struct shaky_kernel *kernel = state;
    delay();
    if (fail_op != NULL && strcmp(kernel->inner->op, fail_op) == 0 &&
        strcmp(kernel->device, fail_device) == 0 && atomic_fetch_sub(&runs_left, 1) == 1)
        return err_set(err, ERR_DEVICE_FAILED, "shaken");
    return kernel->inner->run(kernel->state, args, err);
}

static void shaky_destroy(void *state)
{
    struct shaky_kernel *kernel = state;
    if (kernel == NULL)
        return;
    kernel->inner->destroy(kernel->state);
    free(kernel);
}

static const struct layout *shaky_layout_plain(struct arena *arena, const struct shape *shape,
                                               enum dtype dtype)
{
    return backend_cpu.layout_plain(arena, shape, dtype);
}

static size_t shaky_layout_bytes(const struct layout *layout)
{
    return backend_cpu.layout_bytes(layout);
}

static bool shaky_layout_equal(const struct layout *a, const struct layout *b)
{
    return backend_cpu.layout_equal(a, b);
}

static const char *shaky_layout_name(const struct layout *layout, char buf[static 64])
{
    return backend_cpu.layout_name(layout, buf);
}

static int shaky_device_open(const struct device_config *config, struct device **ret_device,
                             struct err *err)
{
    opened = config->name;
    return backend_cpu.device_open(config, ret_device, err);
}

static void shaky_device_close(struct device *device)
{
    backend_cpu.device_close(device);
}

static int shaky_check_precision(enum precision precision, struct err *err)
{
    return backend_cpu.check_precision(precision, err);
}

static atomic_size_t *bytes_of(const char *device)
{
    return &allocated[device[strlen(device) - 1] - '0'];
}

size_t shaky_allocated(const char *device)
{
    return *bytes_of(device);
}

static void *shaky_alloc(struct device *device, size_t bytes)
{
    if (poor_device != NULL && strcmp(opened, poor_device) == 0 && bytes > poor_bytes)
        return NULL;
    *bytes_of(opened) += backend_cpu.alloc_bytes(bytes);
    return backend_cpu.alloc(device, bytes);
}

static void shaky_free(struct device *device, void *memory, size_t bytes)
{
    *bytes_of(opened) -= backend_cpu.alloc_bytes(bytes);
    backend_cpu.free(device, memory, bytes);
}

static int shaky_write(struct device *device, void *to, const void *from, size_t bytes,
                       struct err *err)
{
    delay();
    return backend_cpu.write(device, to, from, bytes, err);
}

static int shaky_read(struct device *device, void *to, const void *from, size_t bytes,
                      struct err *err)
{
    delay();
    return backend_cpu.read(device, to, from, bytes, err);
}

static int shaky_copy(struct device *device, void *to, const struct device *from_device,
                      const void *from, size_t bytes, struct err *err)
{
    delay();
    return backend_cpu.copy(device, to, from_device, from, bytes, err);
}

#define KERNEL(op_name)                                                                            \
    static const struct kernel shaky_##op_name = {                                                 \
        #op_name, shaky_query, shaky_create, shaky_run, shaky_destroy,                             \
    };
#include "engine/backend/cpu/kernels.def"
#undef KERNEL

static const struct kernel *const kernels[] = {
#define KERNEL(op_name) &shaky_##op_name,
#include "engine/backend/cpu/kernels.def"
#undef KERNEL
};

static size_t shaky_alloc_bytes(size_t bytes)
{
    return backend_cpu.alloc_bytes(bytes);
}

const struct backend backend_shaky = {
    .name = "cpu",
    .kernels = kernels,
    .n_kernels = sizeof kernels / sizeof kernels[0],
    .layout_plain = shaky_layout_plain,
    .layout_bytes = shaky_layout_bytes,
    .layout_equal = shaky_layout_equal,
    .layout_name = shaky_layout_name,
    .device_open = shaky_device_open,
    .device_close = shaky_device_close,
    .check_precision = shaky_check_precision,
    .alloc = shaky_alloc,
    .free = shaky_free,
    .alloc_bytes = shaky_alloc_bytes,
    .write = shaky_write,
    .read = shaky_read,
    .copy = shaky_copy,
};
