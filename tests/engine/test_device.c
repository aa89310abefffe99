/* test_device.c: see test_device.h. */
#include "tests/engine/test_device.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/team.h"
#include "tests/engine/test_backend.h"
#include "tests/lib/checks.h"

struct test_device test_device;

void test_device_open(int n_threads)
{
    struct err err = ERR_INIT;
    team_set_size(n_threads);
    struct device_config config = {.name = "device", .n_threads = n_threads};
    test_device.backend = test_backend(&(const char *){NULL});
    ck_assert_msg(test_device.backend->device_open(&config, &test_device.device, &err) == 0, "%s",
                  err.message);
    test_device.arena = arena_new();
    ck_assert_ptr_nonnull(test_device.arena);
}

void test_device_close(void)
{
    arena_free(test_device.arena);
    test_device.backend->device_close(test_device.device);
}

void *test_device_host_memory(size_t bytes)
{
    void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
    ck_assert_ptr_nonnull(memory);
    memset(memory, 0xff, (bytes + 63) / 64 * 64); /* NaN, whatever is not written */
    return memory;
}

struct instance instance_new(const struct kernel *kernel, const struct node *node,
                             const struct kernel_choice *choice)
{
    struct instance instance = {kernel, node, choice, NULL};
    struct err err = ERR_INIT;
    int rc = kernel->create(test_device.device, node, choice, &instance.state, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    return instance;
}

/* The device's copy of what lies on the host. */
void *test_device_copy(const void *host, size_t bytes)
{
    struct err err = ERR_INIT;
    void *memory = test_device.backend->alloc(test_device.device, bytes);
    ck_assert_ptr_nonnull(memory);
    ck_assert_int_eq(test_device.backend->write(test_device.device, memory, host, bytes, &err), 0);
    return memory;
}

void test_device_take(void *host, void *memory, size_t bytes)
{
    struct err err = ERR_INIT;
    int rc = test_device.backend->read(test_device.device, host, memory, bytes, &err);
    ck_assert_msg(rc == 0, "%s", err.message);
    test_device.backend->free(test_device.device, memory, bytes);
}

static void copy_to(const struct layout *const *layouts, int n, void *const *host, void **ret)
{
    for (int i = 0; i < n; i++)
        ret[i] = host[i] == NULL
                     ? NULL
                     : test_device_copy(host[i], test_device.backend->layout_bytes(layouts[i]));
}

static void copy_back(const struct layout *const *layouts, int n, void *const *host, void **memory)
{
    for (int i = 0; i < n; i++)
        if (host[i] != NULL)
            test_device_take(host[i], memory[i], test_device.backend->layout_bytes(layouts[i]));
}

/* Runs it to its end. */
int test_device_run(const struct instance *instance, const struct kernel_args *args,
                    struct err *err)
{
    int rc = test_device.backend->set_step != NULL
                 ? test_device.backend->set_step(test_device.device, args->step, err)
                 : 0;
    if (rc == 0)
        rc = instance->kernel->run(instance->state, args, err);
    return rc == 0 && test_device.backend->wait != NULL
               ? test_device.backend->wait(test_device.device, err)
               : rc;
}

/* On the device's copies of in and out, which lie on the host. */
int instance_try(const struct instance *instance, void *const *in, void *const *out,
                 const struct step *step, struct err *err)
{
    const struct kernel_choice *choice = instance->choice;
    void *scratch = test_device_host_memory(choice->scratch_bytes);
    void *device_in[NODE_MAX_IN] = {NULL}, *device_out[NODE_MAX_OUT] = {NULL};
    struct kernel_args args = {.in = device_in, .out = device_out, .step = step};
    args.scratch = test_device_copy(scratch, choice->scratch_bytes);
    copy_to(choice->in, instance->node->n_in, in, device_in);
    copy_to(choice->out, instance->node->n_out, out, device_out);
    int rc = test_device_run(instance, &args, err);
    if (rc == 0) {
        copy_back(choice->in, instance->node->n_in, in, device_in);
        copy_back(choice->out, instance->node->n_out, out, device_out);
        test_device.backend->free(test_device.device, args.scratch, choice->scratch_bytes);
    }
    free(scratch);
    return rc;
}

void instance_run(const struct instance *instance, void *const *in, void *const *out,
                  const struct step *step)
{
    struct err err = ERR_INIT;
    ck_assert_msg(instance_try(instance, in, out, step, &err) == 0, "%s", err.message);
}

void instance_free(const struct instance *instance)
{
    instance->kernel->destroy(instance->state);
}
