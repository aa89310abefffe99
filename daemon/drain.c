/* drain.c: see drain.h. device.drain and device.resume: all of the devices or none. */
#include "daemon/drain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/methods.h"
#include "daemon/store.h"
#include "daemon/store_thread.h"
#include "proto/json.h"
#include "proto/methods.h"

static bool same(struct device_id a, struct device_id b)
{
    return a.type == b.type && a.index == b.index;
}

const struct drain *drain_find(const struct daemon *daemon, struct device_id device)
{
    for (size_t i = 0; i < daemon->drains.n; i++)
        if (same(daemon->drains.list[i].device, device))
            return &daemon->drains.list[i];
    return NULL;
}

devset drain_set(const struct daemon *daemon)
{
    devset set = 0;
    for (size_t i = 0; i < daemon->devices.n; i++)
        if (drain_find(daemon, daemon->devices.id[i]) != NULL)
            set |= (devset)1 << i;
    return set;
}

static void forget(struct drains *drains, struct device_id device)
{
    size_t kept = 0;
    for (size_t i = 0; i < drains->n; i++)
        if (!same(drains->list[i].device, device))
            drains->list[kept++] = drains->list[i];
    drains->n = kept;
}

/* A name that no device of this version can have is left in the database. */
static int enter(void *arg, const char *device, uid_t uid, const char *reason, struct err *err)
{
    struct drains *drains = arg;
    struct err ignored = ERR_INIT;
    struct drain drain = {.uid = uid};
    (void)err;
    if (device_id_parse(device, &drain.device, &ignored) != 0 || drains->n == DRAIN_MOST)
        return 0;
    snprintf(drain.reason, sizeof drain.reason, "%s", reason);
    drains->list[drains->n++] = drain;
    return 0;
}

int drain_load(struct daemon *daemon, struct err *err)
{
    return store_each_drain(daemon->opened, enter, &daemon->drains, err);
}

/* Read who they are ─► write ─► let the scheduler see it ─► answer. */
struct drain_change {
    struct store_request base;
    struct daemon *daemon;
    struct call *call;
    bool drains; /* else resumes */
    struct devlist devices;
    char reason[DRAIN_REASON_BYTES + 1];
};

static int change_run(struct store_request *base, struct store *store, struct err *err)
{
    struct drain_change *change = (struct drain_change *)base;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < change->devices.n; i++) {
        char name[32];
        device_id_format(change->devices.id[i], name);
        rc = change->drains
                 ? store_put_drain(store, name, change->call->peer.uid, change->reason, err)
                 : store_delete_drain(store, name, err);
    }
    return rc;
}

static void apply(struct drain_change *change)
{
    struct drains *drains = &change->daemon->drains;
    for (size_t i = 0; i < change->devices.n; i++) {
        struct drain drain = {.device = change->devices.id[i], .uid = change->call->peer.uid};
        char name[32];
        memcpy(drain.reason, change->reason, sizeof drain.reason);
        forget(drains, drain.device);
        if (change->drains && drains->n < DRAIN_MOST)
            drains->list[drains->n++] = drain;
        log_info("device %s: %s by uid %u%s%s", device_id_format(drain.device, name),
                 change->drains ? "drained" : "resumed", (unsigned)drain.uid,
                 drain.reason[0] != '\0' ? ": " : "", drain.reason);
    }
}

static void change_done(struct store_request *base, const struct err *err)
{
    struct drain_change *change = (struct drain_change *)base;
    if (err->code != 0 || change->daemon->stopping) {
        call_fail(change->call, err);
    } else {
        apply(change);
        jobs_schedule(change->daemon);
        call_reply(change->call, devices_json(change->daemon));
    }
    free(change);
}

/* "cpu:1" is that one, "cpu" all of its type. */
static int add_named(const struct devlist *devices, const char *name, struct devlist *named,
                     struct err *err)
{
    struct device_id wanted;
    size_t before = named->n;
    int rc = device_id_parse(name, &wanted, err);
    if (rc != 0)
        return rc;
    for (size_t i = 0; i < devices->n && named->n < LIMIT_DEVICES; i++)
        if (devices->id[i].type == wanted.type &&
            (wanted.index < 0 || devices->id[i].index == wanted.index))
            named->id[named->n++] = devices->id[i];
    return named->n > before ? 0 : err_set(err, ERR_DEVICE_UNKNOWN, "there is no device %s", name);
}

static int read_devices(const struct daemon *daemon, const json_t *names, struct devlist *ret_list,
                        struct err *err)
{
    size_t i;
    json_t *name;
    int rc = 0;
    if (names == NULL)
        *ret_list = daemon->devices;
    json_array_foreach((json_t *)names, i, name)
    {
        rc = add_named(&daemon->devices, json_string_value(name), ret_list, err);
        if (rc != 0)
            return rc;
    }
    return rc;
}

static int change_call(struct daemon *daemon, struct call *call, bool drains, struct err *err)
{
    const json_t *params = call->request.params;
    const char *reason = json_string_value(json_object_get(params, "reason"));
    struct devlist devices = {0};
    if (!call->peer.admin)
        return err_set(err, ERR_DENIED, "only administrators drain and resume devices");
    if (reason != NULL && strlen(reason) > DRAIN_REASON_BYTES)
        return method_refuse(err, params, "reason", "at most %d bytes", DRAIN_REASON_BYTES);
    int rc = read_devices(daemon, json_object_get(params, "devices"), &devices, err);
    if (rc != 0)
        return rc;
    struct drain_change *change = calloc(1, sizeof *change);
    if (change == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    change->base =
        (struct store_request){.kind = STORE_WRITE, .run = change_run, .done = change_done};
    change->daemon = daemon;
    change->call = call;
    change->drains = drains;
    change->devices = devices;
    snprintf(change->reason, sizeof change->reason, "%s", reason != NULL ? reason : "");
    store_thread_submit(daemon->store, &change->base);
    return 0;
}

int drain_call(struct daemon *daemon, struct call *call, struct err *err)
{
    return change_call(daemon, call, true, err);
}

int resume_call(struct daemon *daemon, struct call *call, struct err *err)
{
    return change_call(daemon, call, false, err);
}
