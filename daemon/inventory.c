/* inventory.c: checks the list of devices that a probe printed. */
#include "daemon/inventory.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/device_id.h"
#include "proto/json.h"

static int bad(struct err *err, size_t i, const char *key)
{
    return err_set(err, ERR_DEVICE_FAILED, "the list of devices: device %zu has no valid '%s'", i,
                   key);
}

/* Copies a string that fits and is not empty. */
static bool get_text(const json_t *row, const char *key, char *buf, size_t size)
{
    const json_t *value = json_object_get(row, key);
    size_t length = json_string_length(value);
    if (!json_is_string(value) || length == 0 || length >= size)
        return false;
    memcpy(buf, json_string_value(value), length + 1);
    return true;
}

/* "type" repeats what the name says; a name of its own, with an index. */
static bool get_name(const json_t *row, struct inventory_device *device)
{
    struct device_id id;
    struct err ignored;
    char type[32], prefix[32];
    if (!get_text(row, "name", device->name, sizeof device->name) ||
        device_id_parse(device->name, &id, &ignored) != 0 || id.index < 0 ||
        !get_text(row, "type", type, sizeof type))
        return false;
    device->type = id.type;
    device_id_format((struct device_id){.type = id.type, .index = -1}, prefix);
    return strcmp(prefix, type) == 0;
}

/* Core numbers are optional: a GPU has none. */
static int get_cores(const json_t *row, size_t i, struct inventory_device *device, struct err *err)
{
    const json_t *cores = json_object_get(row, "cores");
    if (cores == NULL)
        return 0;
    size_t n = json_array_size(cores);
    if (!json_is_array(cores) || n > 65536)
        return bad(err, i, "cores");
    if (n == 0)
        return 0;
    device->cores = calloc(n, sizeof *device->cores);
    if (device->cores == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    for (device->n_cores = 0; device->n_cores < n; device->n_cores++) {
        const json_t *core = json_array_get(cores, device->n_cores);
        json_int_t number = json_integer_value(core);
        if (!json_is_integer(core) || number < 0 || number > INT_MAX)
            return bad(err, i, "cores");
        device->cores[device->n_cores] = (int)number;
    }
    return 0;
}

static int get_device(const json_t *row, size_t i, struct inventory *inventory, struct err *err)
{
    struct inventory_device *device = &inventory->device[i];
    if (!get_name(row, device))
        return bad(err, i, "name");
    if (!get_text(row, "uuid", device->uuid, sizeof device->uuid))
        return bad(err, i, "uuid");
    if (!get_text(row, "model", device->model, sizeof device->model))
        return bad(err, i, "model");
    const json_t *memory = json_object_get(row, "memory_bytes");
    if (!json_is_integer(memory) || json_integer_value(memory) < 0)
        return bad(err, i, "memory_bytes");
    device->memory_bytes = json_integer_value(memory);
    for (size_t k = 0; k < i; k++) {
        if (strcmp(inventory->device[k].name, device->name) == 0)
            return err_set(err, ERR_DEVICE_FAILED, "the list of devices names %s twice",
                           device->name);
    }
    return get_cores(row, i, device, err);
}

int inventory_parse(const char *text, size_t size, struct inventory **ret_inventory,
                    struct err *err)
{
    json_t *root = NULL;
    struct inventory *inventory = NULL;
    int rc = json_load(text, size, ERR_DEVICE_FAILED, &root, err);
    if (rc != 0)
        return err_context(err, "the list of devices");
    const json_t *rows = json_object_get(root, "devices");
    size_t n = json_array_size(rows);
    if (!json_is_array(rows) || n == 0 || n > LIMIT_DEVICES) {
        rc =
            err_set(err, ERR_DEVICE_FAILED,
                    "the list of devices must hold 1 to %d devices under 'devices'", LIMIT_DEVICES);
        goto out;
    }
    inventory = calloc(1, sizeof *inventory);
    if (inventory == NULL) {
        rc = err_set(err, ERR_NOMEM, "out of memory");
        goto out;
    }
    inventory->n = n; /* all, for inventory_free */
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = get_device(json_array_get(rows, i), i, inventory, err);
    if (rc == 0) {
        *ret_inventory = inventory;
        inventory = NULL;
    }
out:
    inventory_free(inventory);
    json_decref(root);
    return rc;
}

void inventory_free(struct inventory *inventory)
{
    if (inventory == NULL)
        return;
    for (size_t i = 0; i < inventory->n; i++)
        free(inventory->device[i].cores);
    free(inventory);
}
