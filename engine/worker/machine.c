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

int machine_probe(size_t cpu_devices, struct machine *ret_machine, struct err *err)
{
    struct machine *m = ret_machine;
    *m = (struct machine){0};
    int rc = read_cores(m, err);
    if (rc != 0)
        return rc;
    read_model(m->model, sizeof m->model);
    m->memory_bytes = read_memory();
    m->n_devices = cpu_devices > 0 ? cpu_devices : m->n_cores;
    if (m->n_devices > LIMIT_DEVICES)
        m->n_devices = LIMIT_DEVICES;
    for (size_t i = 0; i < m->n_devices; i++) {
        m->devices[i] = machine_deal(m->cores, m->n_cores, m->n_devices, i);
        m->devices[i].memory_bytes = m->memory_bytes;
        m->devices[i].name = device_id_format((struct device_id){DEVICE_CPU, (int)i}, m->names[i]);
    }
    return 0;
}

void machine_done(struct machine *machine)
{
    free(machine->cores);
    *machine = (struct machine){0};
}

int machine_resolve(const struct machine *machine, const struct job_parallel *parallel,
                    struct device_config *ret_devices, int *ret_n, struct err *err)
{
    enum device_type types[LIMIT_DEVICES];
    int index[LIMIT_DEVICES];
    size_t n;
    for (size_t i = 0; i < machine->n_devices; i++)
        types[i] = DEVICE_CPU;
    int rc = device_resolve(parallel, types, machine->n_devices, index, &n, err);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < n; i++)
        ret_devices[i] = machine->devices[index[i]];
    *ret_n = (int)n;
    return 0;
}
