/* devset.c: see devset.h. */
#include "daemon/devset.h"

#include <stdio.h>
#include <string.h>

int devlist_parse(const char *text, struct devlist *ret_list, struct err *err)
{
    struct devlist list = {0};
    while (*text != '\0') {
        char name[32];
        size_t length = strcspn(text, ",");
        if (length >= sizeof name || list.n == LIMIT_DEVICES)
            return err_set(err, ERR_DEVICE_UNKNOWN, "\"%.64s\" is not a list of devices", text);
        memcpy(name, text, length);
        name[length] = '\0';
        int rc = device_id_parse(name, &list.id[list.n++], err);
        if (rc != 0)
            return rc;
        text += length + (text[length] == ',');
    }
    *ret_list = list;
    return 0;
}

const char *devlist_format(const struct devlist *list, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < list->n && used < size; i++) {
        char name[32];
        int n = snprintf(buf + used, size - used, "%s%s", i > 0 ? "," : "",
                         device_id_format(list->id[i], name));
        used += (size_t)n;
    }
    return buf;
}

/* The device that a document names at `i`, or any one of `type`. */
static int wanted(const struct job_parallel *parallel, size_t i, enum device_type type,
                  struct device_id *ret_id, struct err *err)
{
    if (parallel->devices != NULL)
        return device_id_parse(parallel->devices[i], ret_id, err);
    *ret_id = (struct device_id){.type = type, .index = -1};
    return 0;
}

int devlist_want(const struct job_parallel *parallel, const struct devlist *devices,
                 struct devlist *ret_want, struct err *err)
{
    enum device_type types[LIMIT_DEVICES];
    int index[LIMIT_DEVICES];
    struct devlist want = {0};
    for (size_t i = 0; i < devices->n; i++)
        types[i] = devices->id[i].type;
    int rc = device_resolve(parallel, types, devices->n, index, &want.n, err);
    for (size_t i = 0; rc == 0 && i < want.n; i++)
        rc = wanted(parallel, i, types[index[i]], &want.id[i], err);
    if (rc == 0)
        *ret_want = want;
    return rc;
}

devset devset_all(const struct devlist *devices)
{
    return devices->n >= 64 ? ~(devset)0 : ((devset)1 << devices->n) - 1;
}

static bool fits(struct device_id device, struct device_id want)
{
    return device.type == want.type && (want.index < 0 || device.index == want.index);
}

/* The lowest device of `set` that is what `want` asks for, or -1. */
static int first_fit(const struct devlist *devices, struct device_id want, devset set)
{
    for (size_t i = 0; i < devices->n; i++)
        if ((set >> i & 1) != 0 && fits(devices->id[i], want))
            return (int)i;
    return -1;
}

devset devset_of(const struct devlist *devices, const struct devlist *list)
{
    devset set = 0;
    for (size_t i = 0; i < list->n; i++) {
        int at = first_fit(devices, list->id[i], devset_all(devices));
        if (at >= 0)
            set |= (devset)1 << at;
    }
    return set;
}

size_t devset_count(devset set)
{
    return (size_t)__builtin_popcountll(set);
}

/* Takes what can be had: named devices first, so that "any" never takes one that is named. */
static size_t take(const struct devlist *devices, const struct devlist *want, devset free,
                   struct devlist *ret_got)
{
    size_t got = 0;
    for (int named = 1; named >= 0; named--)
        for (size_t i = 0; i < want->n; i++) {
            if ((want->id[i].index >= 0) != (named == 1))
                continue;
            int at = first_fit(devices, want->id[i], free);
            if (at < 0)
                continue;
            free &= ~((devset)1 << at);
            ret_got->id[i] = devices->id[at];
            got++;
        }
    ret_got->n = got;
    return got;
}

bool devset_pick(const struct devlist *devices, const struct devlist *want, devset free,
                 struct devlist *ret_got)
{
    struct devlist got;
    if (take(devices, want, free, &got) != want->n)
        return false;
    *ret_got = got;
    return true;
}

size_t devset_available(const struct devlist *devices, const struct devlist *want, devset free)
{
    struct devlist got;
    return take(devices, want, free, &got);
}

devset devset_type(const struct devlist *devices, enum device_type type)
{
    devset set = 0;
    for (size_t i = 0; i < devices->n; i++)
        set |= (devset)(devices->id[i].type == type) << i;
    return set;
}

struct devwish devwish_of(const struct devlist *devices, const struct devlist *want)
{
    struct devwish wish = {0};
    for (size_t i = 0; i < want->n; i++) {
        if (want->id[i].index < 0)
            wish.any[want->id[i].type]++;
        else
            wish.named |= (devset)1 << first_fit(devices, want->id[i], devset_all(devices));
    }
    return wish;
}

size_t devwish_count(const struct devwish *wish)
{
    size_t n = devset_count(wish->named);
    for (size_t type = 0; type < DEVWISH_TYPES; type++)
        n += wish->any[type];
    return n;
}

size_t devwish_missing(const struct devlist *devices, const struct devwish *wish, devset set)
{
    size_t missing = devset_count(wish->named & ~set);
    set &= ~wish->named;
    for (size_t type = 0; type < DEVWISH_TYPES; type++) {
        if (wish->any[type] == 0)
            continue;
        size_t there = devset_count(set & devset_type(devices, (enum device_type)type));
        missing += there < wish->any[type] ? wish->any[type] - there : 0;
    }
    return missing;
}

devset devwish_pick(const struct devlist *devices, const struct devwish *wish, devset set)
{
    devset got = wish->named;
    for (size_t type = 0; type < DEVWISH_TYPES; type++) {
        devset left = set & ~wish->named & devset_type(devices, (enum device_type)type);
        for (size_t n = wish->any[type]; n > 0; n--, left &= left - 1)
            got |= left & -left;
    }
    return got;
}
