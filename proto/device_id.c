#include "proto/device_id.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/job_check.h"
#include "proto/limits.h"

static const char *const type_names[] = {[DEVICE_CPU] = "cpu", [DEVICE_CUDA] = "cuda"};

/* Digits only, without leading zeros, at most six: no machine has more devices. */
static bool parse_index(const char *text, size_t size, int *ret_index)
{
    if (size == 0 || size > 6 || (size > 1 && text[0] == '0'))
        return false;
    int index = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        index = 10 * index + (text[i] - '0');
    }
    *ret_index = index;
    return true;
}

int device_id_parse(const char *text, struct device_id *ret_id, struct err *err)
{
    for (int type = DEVICE_CPU; type <= DEVICE_CUDA; type++) {
        size_t n = strlen(type_names[type]);
        struct device_id id = {.type = (enum device_type)type, .index = -1};
        if (strncmp(text, type_names[type], n) != 0)
            continue;
        if (text[n] == '\0' ||
            (text[n] == ':' && parse_index(text + n + 1, strlen(text + n + 1), &id.index))) {
            *ret_id = id;
            return 0;
        }
    }
    return err_set(err, ERR_DEVICE_UNKNOWN,
                   "\"%.64s\" names no device; names are like cpu:0, cuda:1, cpu, cuda", text);
}

const char *device_id_format(struct device_id id, char buf[static 32])
{
    if (id.index < 0)
        snprintf(buf, 32, "%s", type_names[id.type]);
    else
        snprintf(buf, 32, "%s:%d", type_names[id.type], id.index);
    return buf;
}

/* The one device whose UUID begins with the entry, or -1: an ambiguous prefix names nothing. */
static int find_uuid(const char *prefix, size_t size, const char *const *uuids, size_t n)
{
    int found = -1;
    if (size <= 4 || (strncmp(prefix, "GPU-", 4) != 0 && strncmp(prefix, "MIG-", 4) != 0))
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (strncmp(uuids[i], prefix, size) != 0)
            continue;
        if (found >= 0)
            return -1;
        found = (int)i;
    }
    return found;
}

static int find_device(const char *entry, size_t size, const char *const *uuids, size_t n)
{
    int index;
    if (parse_index(entry, size, &index))
        return (size_t)index < n ? index : -1;
    return find_uuid(entry, size, uuids, n);
}

/* The next entry between commas without the blanks around it; moves *rest behind it, to NULL at the
 * end. */
static const char *next_entry(const char **rest, size_t *ret_size)
{
    const char *entry = *rest;
    size_t size = strcspn(entry, ",");
    *rest = entry[size] == ',' ? entry + size + 1 : NULL;
    while (size > 0 && isspace((unsigned char)entry[0])) {
        entry++;
        size--;
    }
    while (size > 0 && isspace((unsigned char)entry[size - 1]))
        size--;
    *ret_size = size;
    return entry;
}

static bool contains(const int *list, size_t n, int value)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == value)
            return true;
    return false;
}

int device_visible(const char *value, const char *const *uuids, size_t n, int *ret_index,
                   size_t *ret_n, struct err *err)
{
    size_t seen = 0;
    if (value == NULL)
        for (; seen < n; seen++)
            ret_index[seen] = (int)seen;
    for (const char *rest = value; rest != NULL;) {
        size_t size;
        const char *entry = next_entry(&rest, &size);
        int index = find_device(entry, size, uuids, n);
        if (index < 0)
            break; /* hides itself and all after it */
        if (contains(ret_index, seen, index))
            return err_set(err, ERR_DEVICE_UNKNOWN,
                           "CUDA_VISIBLE_DEVICES names device %d twice (\"%.128s\")", index, value);
        ret_index[seen++] = index;
    }
    *ret_n = seen;
    return 0;
}

/* A job's choice among the visible devices. */
struct choice {
    const enum device_type *types;
    size_t n;
    int picked[LIMIT_DEVICES];
    size_t n_picked;
};

/* The position of device `id.index` of its type, or of the first that is not picked yet for -1; -1
 * if there is none. */
static int find_position(const struct choice *c, struct device_id id)
{
    int index = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (c->types[i] != id.type)
            continue;
        if (id.index < 0 ? !contains(c->picked, c->n_picked, (int)i) : index == id.index)
            return (int)i;
        index++;
    }
    return -1;
}

static size_t count_type(const struct choice *c, enum device_type type)
{
    size_t count = 0;
    for (size_t i = 0; i < c->n; i++)
        count += c->types[i] == type;
    return count;
}

/* "cpu:0 to cpu:7", "cuda:0", "none": what there is of a type. */
static const char *describe(size_t count, enum device_type type, char buf[static 48])
{
    const char *name = type_names[type];
    if (count == 0)
        snprintf(buf, 48, "there is no %s device", name);
    else if (count == 1)
        snprintf(buf, 48, "there is %s:0 only", name);
    else
        snprintf(buf, 48, "there are %s:0 to %s:%zu", name, name, count - 1);
    return buf;
}

static int pick_count(struct choice *c, const struct job_parallel *parallel, struct err *err)
{
    enum device_type type = parallel->device_type;
    if (type == DEVICE_DEFAULT)
        type = count_type(c, DEVICE_CUDA) > 0 ? DEVICE_CUDA : DEVICE_CPU;
    size_t count = count_type(c, type);
    size_t wanted = parallel->n_devices == 0 ? count : (size_t)parallel->n_devices;
    char there[48];
    if (wanted > LIMIT_DEVICES)
        return err_at(err, ERR_DEVICE_UNKNOWN, "/parallel/devices",
                      "%zu devices are more than the %d that a job can have", wanted,
                      LIMIT_DEVICES);
    if (wanted == 0 || wanted > count)
        return err_at(err, ERR_DEVICE_UNKNOWN, "/parallel/devices",
                      "the job asks for %zu %s device%s, but %s", wanted == 0 ? 1 : wanted,
                      type_names[type], wanted > 1 ? "s" : "", describe(count, type, there));
    struct device_id any = {.type = type, .index = -1};
    while (c->n_picked < wanted) {
        int position = find_position(c, any);
        c->picked[c->n_picked++] = position;
    }
    return 0;
}

static int parse_list(const struct job_parallel *parallel, struct device_id *ret_ids,
                      struct err *err)
{
    for (int64_t i = 0; i < parallel->n_devices; i++) {
        int rc = device_id_parse(parallel->devices[i], &ret_ids[i], err);
        if (rc != 0) {
            char path[JOB_DEVICE_PATH];
            job_device_path(parallel, (size_t)i, path);
            snprintf(err->path, sizeof err->path, "%s", path);
            return rc;
        }
    }
    return 0;
}

/* Named devices are taken before "any one" is chosen, so that ["cuda", "cuda:0"] is two devices. */
static int pick_list(struct choice *c, const struct job_parallel *parallel, struct err *err)
{
    struct device_id ids[LIMIT_DEVICES];
    int at[LIMIT_DEVICES];
    size_t n = (size_t)parallel->n_devices;
    int rc = parse_list(parallel, ids, err);
    for (int any = 0; rc == 0 && any <= 1; any++) {
        for (size_t i = 0; rc == 0 && i < n; i++) {
            char path[JOB_DEVICE_PATH], there[48];
            job_device_path(parallel, i, path);
            if ((ids[i].index < 0) != (any == 1))
                continue;
            at[i] = find_position(c, ids[i]);
            if (at[i] < 0)
                rc = err_at(err, ERR_DEVICE_UNKNOWN, path, "the job asks for %s, but %s%s",
                            parallel->devices[i],
                            describe(count_type(c, ids[i].type), ids[i].type, there),
                            any == 1 ? " (the list names every one)" : "");
            else if (contains(c->picked, c->n_picked, at[i]))
                rc = err_at(err, ERR_DEVICE_UNKNOWN, path, "%s is named twice",
                            parallel->devices[i]);
            else
                c->picked[c->n_picked++] = at[i];
        }
    }
    if (rc == 0)
        memcpy(c->picked, at, n * sizeof at[0]);
    return rc;
}

int device_resolve(const struct job_parallel *parallel, const enum device_type *types, size_t n,
                   int *ret_index, size_t *ret_n, struct err *err)
{
    struct choice c = {.types = types, .n = n};
    int rc =
        parallel->devices != NULL ? pick_list(&c, parallel, err) : pick_count(&c, parallel, err);
    if (rc != 0)
        return rc;
    memcpy(ret_index, c.picked, c.n_picked * sizeof c.picked[0]);
    *ret_n = c.n_picked;
    return 0;
}
