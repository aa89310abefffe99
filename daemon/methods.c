/* methods.c: see methods.h. The small methods are here; the others have files of their own. */
#include "daemon/methods.h"

#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/logs.h"
#include "daemon/record.h"
#include "daemon/store_thread.h"
#include "daemon/watch.h"
#include "proto/json.h"
#include "proto/methods.h"
#include <config.h>

struct info_request {
    struct store_request base;
    struct daemon *daemon;
    struct call *call;
    int64_t count[STATE_COUNT];
};

static int info_run(struct store_request *base, struct store *store, struct err *err)
{
    return store_count_states(store, ((struct info_request *)base)->count, err);
}

static json_t *info_json(const struct info_request *request)
{
    struct daemon *daemon = request->daemon;
    const struct peer *peer = &request->call->peer;
    int64_t now_ns = daemon->runner->now_ns(daemon->runner);
    devset free = devset_all(&daemon->devices) & ~daemon->jobs.assigned & ~drain_set(daemon);
    json_t *jobs = json_object();
    for (int state = 0; state < STATE_COUNT; state++)
        jobs =
            json_put(jobs, state_name((enum job_state)state), json_integer(request->count[state]));
    json_t *limits = json_pack("{s:i, s:i, s:i, s:i, s:i}", "line_bytes", LIMIT_LINE_BYTES,
                               "document_bytes", LIMIT_DOCUMENT_BYTES, "connections", SESSION_MAX,
                               "connections_per_user", SESSION_MAX_PER_UID, "calls", SESSION_CALLS);
    return json_pack("{s:s, s:i, s:I, s:b, s:b, s:i, s:f, s:o, s:{s:I, s:I}, s:o}", "version",
                     PACKAGE_VERSION, "protocol", 1, "uid", (json_int_t)peer->uid, "user_mode",
                     daemon->config->user_mode, "administrator", peer->admin, "pid", (int)getpid(),
                     "uptime", (double)(now_ns - daemon->started_ns) / 1e9, "limits", limits,
                     "devices", "total", (json_int_t)daemon->devices.n, "free",
                     (json_int_t)devset_count(free), "jobs", jobs);
}

static void info_done(struct store_request *base, const struct err *err)
{
    struct info_request *request = (struct info_request *)base;
    if (err->code != 0 || request->daemon->stopping)
        call_fail(request->call, err);
    else
        call_reply(request->call, info_json(request));
    free(request);
}

static int info_call(struct daemon *daemon, struct call *call, struct err *err)
{
    struct info_request *request = calloc(1, sizeof *request);
    if (request == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    request->base = (struct store_request){.kind = STORE_READ, .run = info_run, .done = info_done};
    request->daemon = daemon;
    request->call = call;
    store_thread_submit(daemon->store, &request->base);
    return 0;
}

static int describe_call(struct daemon *daemon, struct call *call, struct err *err)
{
    (void)daemon;
    (void)err;
    call_reply(call, method_describe());
    return 0;
}

static json_t *cores_json(const struct inventory_device *device)
{
    json_t *cores = json_array();
    for (size_t i = 0; cores != NULL && i < device->n_cores; i++)
        cores = json_list_append(cores, json_integer(device->cores[i]));
    return cores;
}

static json_t *device_json(struct daemon *daemon, size_t at)
{
    char name[32];
    const struct inventory_device *device = &daemon->inventory->device[at];
    const struct live *holder = jobs_holder(daemon, at);
    const struct drain *drain = drain_find(daemon, daemon->devices.id[at]);
    const char *state = drain == NULL    ? (holder != NULL ? "assigned" : "free")
                        : holder != NULL ? "draining"
                                         : "drained";
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:I, s:o, s:s, s:s*}", "name",
        device_id_format(daemon->devices.id[at], name), "type",
        device->type == DEVICE_CUDA ? "cuda" : "cpu", "uuid", device->uuid, "model", device->model,
        "cores", cores_json(device), "memory_bytes", (json_int_t)device->memory_bytes, "job",
        holder != NULL ? json_integer(holder->record->id) : json_null(), "state", state, "reason",
        drain != NULL && drain->reason[0] != '\0' ? drain->reason : NULL);
}

json_t *devices_json(struct daemon *daemon)
{
    json_t *list = json_array();
    for (size_t i = 0; list != NULL && i < daemon->devices.n; i++)
        list = json_list_append(list, device_json(daemon, i));
    return json_pack("{s:o}", "devices", list);
}

static int devices_call(struct daemon *daemon, struct call *call, struct err *err)
{
    (void)err;
    call_reply(call, devices_json(daemon));
    return 0;
}

static const struct {
    method_fn *call;
    bool bulky; /* see call_bulky */
} handlers[METHOD_COUNT] = {
    [METHOD_SERVER_INFO] = {info_call, false},
    [METHOD_SERVER_DESCRIBE] = {describe_call, false},
    [METHOD_JOB_SUBMIT] = {submit_call, false},
    [METHOD_JOB_LIST] = {list_call, true},
    [METHOD_JOB_SHOW] = {show_call, true},
    [METHOD_JOB_WAIT] = {wait_call, false},
    [METHOD_JOB_WATCH] = {watch_call, true},
    [METHOD_JOB_LOGS] = {logs_call, true},
    [METHOD_JOB_CANCEL] = {cancel_call, false},
    [METHOD_JOB_HOLD] = {hold_call, false},
    [METHOD_JOB_RELEASE] = {release_call, false},
    [METHOD_JOB_UPDATE] = {update_call, false},
    [METHOD_DEVICE_LIST] = {devices_call, false},
    [METHOD_DEVICE_DRAIN] = {drain_call, false},
    [METHOD_DEVICE_RESUME] = {resume_call, false},
};

static void handle(struct daemon *daemon, enum method method, struct call *call, struct err *err)
{
    if (handlers[method].bulky)
        call_bulky(call);
    handlers[method].call(daemon, call, err);
}

void methods_call(struct daemon *daemon, struct call *call)
{
    struct err err = ERR_INIT;
    enum method method = method_find(call->request.method);
    if (method == METHOD_COUNT)
        method_unknown(call->request.method, &err);
    else if (method_check(method, call->request.params, &err) == 0)
        handle(daemon, method, call, &err);
    if (err.code != 0)
        call_fail(call, &err);
}
