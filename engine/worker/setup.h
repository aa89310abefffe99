/* setup.h: what plan and run need first: the job, the machine, the job's devices on it. */
#ifndef ENGINE_WORKER_SETUP_H
#define ENGINE_WORKER_SETUP_H

#include "engine/worker/command.h"
#include "engine/worker/machine.h"

struct setup {
    struct job *job;
    struct machine machine;        /* `devices` point into it: a setup is not copied */
    const struct backend *backend; /* of its devices */
    struct device_config devices[LIMIT_DEVICES];
    int n_devices;
};

/* Errors: document_load's, machine_probe's, machine_resolve's. On failure nothing is left open. */
int setup_open(const struct command_options *options, struct setup *setup, struct err *err);
/* A device's memory: CPU devices share the machine's. Of GPUs the first's. */
int64_t setup_device_bytes(const struct setup *setup);
void setup_close(struct setup *setup);

#endif
