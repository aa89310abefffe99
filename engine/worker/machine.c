/* machine.c: see machine.h. What cannot be read (a /proc without cpuinfo) is left out; only a
 * machine without cores to run on is an error. */
#define _GNU_SOURCE
#include "engine/worker/machine.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/device_id.h"

struct device_config machine_deal(const int *cores, size_t n_cores, size_t n_devices, size_t i)
{
    size_t first = i % n_cores, count = 1;
    if (n_devices <= n_cores) {
        first = i * n_cores / n_devices;
        count = (i + 1) * n_cores / n_devices - first;
    }
    return (struct device_config){
        .cores = cores + first,
        .n_cores = count,
        .n_threads = (int)count,
    };
}

/* The kernel refuses a set that is too small for its own: grow until it fits. */
static cpu_set_t *read_affinity(int *ret_limit)
{
    for (int limit = CPU_SETSIZE; limit <= 1 << 20; limit *= 2) {
        size_t bytes = CPU_ALLOC_SIZE((size_t)limit);
        cpu_set_t *set = CPU_ALLOC((size_t)limit);
        if (set == NULL)
            return NULL;
        if (sched_getaffinity(0, bytes, set) == 0) {
            *ret_limit = limit;
            return set;
        }
        CPU_FREE(set);
        if (errno != EINVAL)
            return NULL;
    }
    return NULL;
}

static int read_cores(struct machine *machine, struct err *err)
{
    int limit = 0;
    errno = ENOMEM;
    cpu_set_t *set = read_affinity(&limit);
    if (set == NULL)
        return err_errno(err, errno, "cannot read which cores may be used");
    size_t bytes = CPU_ALLOC_SIZE((size_t)limit);
    machine->cores = calloc((size_t)CPU_COUNT_S(bytes, set), sizeof *machine->cores);
    for (int core = 0; machine->cores != NULL && core < limit; core++)
        if (CPU_ISSET_S((size_t)core, bytes, set))
            machine->cores[machine->n_cores++] = core;
    CPU_FREE(set);
    return machine->cores == NULL ? err_set(err, ERR_NOMEM, "out of memory") : 0;
}

static void read_model(char *model, size_t size)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "re");
    snprintf(model, size, "CPU");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        const char *colon = strchr(line, ':');
        if (colon == NULL || strncmp(line, "model name", strlen("model name")) != 0)
            continue;
        const char *name = colon + 1 + strspn(colon + 1, " \t");
        snprintf(model, size, "%.*s", (int)strcspn(name, "\n"), name);
        break;
    }
    if (file != NULL)
        fclose(file);
}

static int64_t read_limit(const char *path)
{
    long long limit = INT64_MAX; /* "max" is no number */
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return INT64_MAX;
    if (fscanf(file, "%lld", &limit) != 1)
        limit = INT64_MAX;
    fclose(file);
    return limit;
}

/* Physical memory, or less where a container's limit (cgroup v2, v1) is lower. */
static int64_t read_memory(void)
{
    static const char *const limits[] = {
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    };
    int64_t bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        int64_t limit = read_limit(limits[i]);
        if (limit < bytes)
            bytes = limit;
    }
    return bytes;
}

static void add_device(struct machine *machine, enum device_type type, int index,
                       struct device_config config)
{
    size_t i = machine->n_devices++;
    machine->devices[i] = config;
    machine->devices[i].index = index;
    machine->devices[i].name = device_id_format((struct device_id){type, index}, machine->names[i]);
}

static void add_cpus(struct machine *machine, size_t cpu_devices)
{
    size_t n = cpu_devices > 0 ? cpu_devices : machine->n_cores;
    if (n > LIMIT_DEVICES - machine->n_gpus)
        n = LIMIT_DEVICES - machine->n_gpus;
    for (size_t i = 0; i < n; i++) {
        struct device_config config = machine_deal(machine->cores, machine->n_cores, n, i);
        config.memory_bytes = machine->memory_bytes;
        add_device(machine, DEVICE_CPU, (int)i, config);
    }
}

/* A GPU's thread waits more than it computes: it is bound to no core. */
static void add_gpus(struct machine *machine)
{
    for (size_t i = 0; i < machine->n_gpus; i++)
        add_device(
            machine, DEVICE_CUDA, (int)i,
            (struct device_config){.n_threads = 1, .memory_bytes = machine->gpus[i].memory_bytes});
}

static void find_gpus(struct machine *machine)
{
    const struct backend_module *module;
    struct err err = ERR_INIT;
    int rc = backend_module_cuda(&module, &err);
    if (rc == 0)
        rc = module->probe(machine->gpus, &machine->n_gpus, &err);
    if (rc == 0)
        machine->gpu_backend = module->backend;
    else
        snprintf(machine->no_gpus, sizeof machine->no_gpus, "%s", err.message);
}

int machine_probe(size_t cpu_devices, bool gpus, struct machine *ret_machine, struct err *err)
{
    struct machine *m = ret_machine;
    *m = (struct machine){0};
    int rc = read_cores(m, err);
    if (rc != 0)
        return rc;
    read_model(m->model, sizeof m->model);
    m->memory_bytes = read_memory();
    if (gpus)
        find_gpus(m);
    add_cpus(m, cpu_devices);
    add_gpus(m);
    return 0;
}

void machine_done(struct machine *machine)
{
    free(machine->cores);
    *machine = (struct machine){0};
}

const struct gpu *machine_gpu(const struct machine *machine, size_t i)
{
    size_t n_cpus = machine->n_devices - machine->n_gpus;
    return i < n_cpus ? NULL : &machine->gpus[i - n_cpus];
}

int machine_resolve(const struct machine *machine, const struct job_parallel *parallel,
                    const struct backend **ret_backend, struct device_config *ret_devices,
                    int *ret_n, struct err *err)
{
    enum device_type types[LIMIT_DEVICES];
    int index[LIMIT_DEVICES];
    size_t n;
    for (size_t i = 0; i < machine->n_devices; i++)
        types[i] = machine_gpu(machine, i) != NULL ? DEVICE_CUDA : DEVICE_CPU;
    int rc = device_resolve(parallel, types, machine->n_devices, index, &n, err);
    if (rc != 0)
        return machine->no_gpus[0] == '\0'
                   ? rc
                   : err_context(err, "there are no GPUs (%s)", machine->no_gpus);
    for (size_t i = 0; i < n; i++)
        ret_devices[i] = machine->devices[index[i]];
    *ret_backend =
        machine_gpu(machine, (size_t)index[0]) != NULL ? machine->gpu_backend : &backend_cpu;
    *ret_n = (int)n;
    return 0;
}
