/* machine.h: the devices that this machine offers: CPU devices as sets of cores, then GPUs. */
#ifndef ENGINE_WORKER_MACHINE_H
#define ENGINE_WORKER_MACHINE_H

#include <stdint.h>

#include "engine/backend/module.h"
#include "proto/job.h"

struct machine {
    char model[128];      /* the processor's */
    int64_t memory_bytes; /* what this process may use; every CPU device can use all of it */
    int *cores;           /* that this process may run on */
    size_t n_cores;
    size_t n_devices; /* the GPUs are the last ones */
    struct device_config devices[LIMIT_DEVICES];
    char names[LIMIT_DEVICES][32];
    size_t n_gpus;
    struct gpu gpus[LIMIT_DEVICES];
    const struct backend *gpu_backend;              /* NULL: no GPUs */
    char no_gpus[sizeof((struct err *)0)->message]; /* why there are none; "": nobody asked */
};

/* `cpu_devices` 0: one a core. Without `gpus` none are looked for: that starts their driver.
 * A machine whose GPUs cannot be used has none. Errors: ERR_IO, ERR_NOMEM. */
int machine_probe(size_t cpu_devices, bool gpus, struct machine *ret_machine, struct err *err);
/* The GPU that device i of the machine is; NULL: it is a CPU device. */
const struct gpu *machine_gpu(const struct machine *machine, size_t i);
void machine_done(struct machine *machine);

/* The devices of a job, in its order, among the machine's, and their backend; ret_devices has room
 * for LIMIT_DEVICES. Errors: ERR_DEVICE_UNKNOWN. */
int machine_resolve(const struct machine *machine, const struct job_parallel *parallel,
                    const struct backend **ret_backend, struct device_config *ret_devices,
                    int *ret_n, struct err *err);

/* Deals cores to device i of n: consecutive runs that differ by at most one; with more devices than
 * cores they share them round robin. One thread a core. PURE. */
struct device_config machine_deal(const int *cores, size_t n_cores, size_t n_devices, size_t i);

#endif
