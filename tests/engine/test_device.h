/* test_device.h: the device of a check program's tests, of test_backend.h's backend, and kernels
 * that run on it: what they read and write lies on the host, each run is of the device's copies.
 * Every function fails its test where a call fails. */
#ifndef TESTS_ENGINE_TEST_DEVICE_H
#define TESTS_ENGINE_TEST_DEVICE_H

#include "engine/backend/backend.h"

struct test_device {
    const struct backend *backend;
    struct device *device;
    struct arena *arena; /* of layouts */
};

extern struct test_device test_device; /* from open to close */

void test_device_open(int n_threads);
void test_device_close(void);

/* A kernel that lives; `node` and `choice` are borrowed. */
struct instance {
    const struct kernel *kernel;
    const struct node *node;
    const struct kernel_choice *choice;
    void *state;
};

struct instance instance_new(const struct kernel *kernel, const struct node *node,
                             const struct kernel_choice *choice);
void instance_run(const struct instance *instance, void *const *in, void *const *out,
                  const struct step *step);
/* The same, but may fail: the run's result. */
int instance_try(const struct instance *instance, void *const *in, void *const *out,
                 const struct step *step, struct err *err);
void instance_free(const struct instance *instance);

/* Of the host, full of NaN. */
void *test_device_host_memory(size_t bytes);
/* The device's copy of what lies on the host; back, freeing it. */
void *test_device_copy(const void *host, size_t bytes);
void test_device_take(void *host, void *memory, size_t bytes);
/* Runs it to its end on the device's memory. */
int test_device_run(const struct instance *instance, const struct kernel_args *args,
                    struct err *err);

#endif
