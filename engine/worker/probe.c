/* probe.c: `traind-worker probe`: the devices that this machine offers. */
#include <jansson.h>
#include <stdlib.h>

#include "engine/worker/command.h"
#include "engine/worker/machine.h"
#include "proto/json.h"

static json_t *cores_json(const struct device_config *device)
{
    json_t *cores = json_array();
    for (size_t i = 0; i < device->n_cores; i++)
        json_array_append_new(cores, json_integer(device->cores[i]));
    return cores;
}

static json_t *peers_json(const struct machine *machine, const struct gpu *gpu)
{
    json_t *peers = json_array();
    for (size_t i = 0; i < machine->n_gpus; i++)
        if ((gpu->peers >> i & 1) != 0)
            json_array_append_new(peers, json_integer((json_int_t)i));
    return peers;
}

static json_t *gpu_json(const struct machine *machine, size_t i, const struct gpu *gpu)
{
    char capability[16];
    snprintf(capability, sizeof capability, "%d.%d", gpu->capability[0], gpu->capability[1]);
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:s, s:s, s:i, s:o}", "name", machine->names[i],
                     "type", "cuda", "uuid", gpu->uuid, "model", gpu->model, "memory_bytes",
                     (json_int_t)gpu->memory_bytes, "pci", gpu->pci, "capability", capability,
                     "multiprocessors", gpu->multiprocessors, "peers", peers_json(machine, gpu));
}

static json_t *device_json(const struct machine *machine, size_t i)
{
    const struct gpu *gpu = machine_gpu(machine, i);
    if (gpu != NULL)
        return gpu_json(machine, i, gpu);
    char uuid[32];
    snprintf(uuid, sizeof uuid, "CPU-%zu", i);
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:I}", "name", machine->names[i], "type", "cpu",
                     "uuid", uuid, "model", machine->model, "cores",
                     cores_json(&machine->devices[i]), "memory_bytes",
                     (json_int_t)machine->memory_bytes);
}

static int print_json(const struct machine *machine, struct err *err)
{
    json_t *devices = json_array();
    int rc = devices == NULL ? -1 : 0;
    for (size_t i = 0; rc == 0 && i < machine->n_devices; i++)
        rc = json_array_append_new(devices, device_json(machine, i));
    json_t *root = rc == 0 ? json_pack("{s:O}", "devices", devices) : NULL;
    if (root != NULL && machine->no_gpus[0] != '\0')
        json_object_set_new(root, "no_gpus", json_string(machine->no_gpus));
    char *line = root != NULL ? json_line(root) : NULL;
    json_decref(root);
    json_decref(devices);
    if (line == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    puts(line);
    free(line);
    return 0;
}

static double gib(int64_t bytes)
{
    return (double)bytes / (1 << 30);
}

static void print_gpu(const struct machine *machine, size_t i)
{
    const struct gpu *gpu = machine_gpu(machine, i);
    printf("%-8s %s, %.1f GiB, %d multiprocessors, capability %d.%d, %s, %s\n", machine->names[i],
           gpu->model, gib(gpu->memory_bytes), gpu->multiprocessors, gpu->capability[0],
           gpu->capability[1], gpu->pci, gpu->uuid);
}

static void print_text(const struct machine *machine)
{
    size_t n_cpus = machine->n_devices - machine->n_gpus;
    printf("%s, %.1f GiB\n", machine->model, gib(machine->memory_bytes));
    for (size_t i = 0; i < n_cpus; i++) {
        const struct device_config *device = &machine->devices[i];
        printf("%-8s %s", device->name, device->n_cores == 1 ? "core" : "cores");
        for (size_t k = 0; k < device->n_cores; k++)
            printf(" %d", device->cores[k]);
        printf("\n");
    }
    for (size_t i = n_cpus; i < machine->n_devices; i++)
        print_gpu(machine, i);
    if (machine->no_gpus[0] != '\0')
        printf("no GPUs: %s\n", machine->no_gpus);
}

int command_probe(const struct command_options *options, struct reporter *reporter, struct err *err)
{
    struct machine machine;
    (void)reporter;
    int rc = machine_probe(options->cpu_devices, true, &machine, err);
    if (rc != 0)
        return rc;
    if (options->json)
        rc = print_json(&machine, err);
    else
        print_text(&machine);
    machine_done(&machine);
    return rc;
}
