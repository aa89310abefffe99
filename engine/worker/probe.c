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

static json_t *device_json(const struct machine *machine, size_t i)
{
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
    char *line = root != NULL ? json_line(root) : NULL;
    json_decref(root);
    json_decref(devices);
    if (line == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    puts(line);
    free(line);
    return 0;
}

static void print_text(const struct machine *machine)
{
    printf("%s, %.1f GiB\n", machine->model, (double)machine->memory_bytes / (1 << 30));
    for (size_t i = 0; i < machine->n_devices; i++) {
        const struct device_config *device = &machine->devices[i];
        printf("%-8s %s", device->name, device->n_cores == 1 ? "core" : "cores");
        for (size_t k = 0; k < device->n_cores; k++)
            printf(" %d", device->cores[k]);
        printf("\n");
    }
}

int command_probe(const struct command_options *options, struct reporter *reporter, struct err *err)
{
    struct machine machine;
    (void)reporter;
    int rc = machine_probe(options->cpu_devices, &machine, err);
    if (rc != 0)
        return rc;
    if (options->json)
        rc = print_json(&machine, err);
    else
        print_text(&machine);
    machine_done(&machine);
    return rc;
}
