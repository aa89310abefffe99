#define _GNU_SOURCE
#include "tests/daemon/box.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/statedir.h"
#include "proto/json.h"
#include "tests/lib/checks.h"

enum { PATIENCE_MS = 20000 };

static struct box_job *find(struct box *box, int64_t id)
{
    for (size_t i = 0; i < box->n_jobs; i++)
        if (box->job[i].id == id)
            return &box->job[i];
    ck_assert_uint_lt(box->n_jobs, BOX_JOBS);
    box->job[box->n_jobs] = (struct box_job){.id = id};
    return &box->job[box->n_jobs++];
}

/* ── The runner ── */

static void run_spawn(struct runner *self, const struct runner_spec *spec)
{
    struct box_job *job = find((struct box *)self, spec->id);
    char dir[PATH_MAX];
    ck_assert_msg(!job->open, "job %d is run twice", (int)spec->id);
    ck_assert_int_gt((int)spec->document_size, 0);
    statedir_job(((struct box *)self)->config.state, spec->id, NULL, dir, sizeof dir);
    ck_assert_str_eq(spec->dir, dir);
    mkdir(dir, 0700);
    job->open = true;
    job->spawns++;
    job->argv[0] = '\0';
    for (size_t i = 1; spec->argv[i] != NULL; i++) {
        strcat(job->argv, i > 1 ? " " : "");
        strcat(job->argv, spec->argv[i]);
    }
    snprintf(job->cwd, sizeof job->cwd, "%s", spec->cwd);
    job->drop = spec->drop;
    job->uid = spec->uid;
}

static void run_adopt(struct runner *self, int64_t id, const char *dir, int64_t report_offset)
{
    struct box_job *job = find((struct box *)self, id);
    (void)dir;
    ck_assert(!job->open);
    job->open = job->adopted = true;
    job->report_offset = report_offset;
}

static void run_stop(struct runner *self, int64_t id)
{
    find((struct box *)self, id)->stops++;
}

static void run_probe(struct runner *self, int cpu_devices)
{
    (void)self; /* box_start answers */
    (void)cpu_devices;
}

static void run_set_alarm(struct runner *self, int64_t delay_ms)
{
    struct box *box = (struct box *)self;
    box->alarm_ms = delay_ms < 0 ? 0 : box->clock_ms + delay_ms;
}

static int64_t run_now_ns(struct runner *self)
{
    return (1700000000000 + ((struct box *)self)->clock_ms) * 1000000;
}

static int64_t run_clock_ms(struct runner *self)
{
    return ((struct box *)self)->clock_ms;
}

static void run_close(struct runner *self, void (*closed)(void *owner))
{
    ((struct box *)self)->closed = closed;
}

static const struct runner runner_functions = {
    .spawn = run_spawn,
    .adopt = run_adopt,
    .stop = run_stop,
    .probe = run_probe,
    .set_alarm = run_set_alarm,
    .now_ns = run_now_ns,
    .clock_ms = run_clock_ms,
    .close = run_close,
};

/* ── The daemon ── */

static void answer_probe(struct box *box)
{
    struct inventory *inventory = calloc(1, sizeof *inventory);
    inventory->n = (size_t)box->n_devices;
    for (int i = 0; i < box->n_devices; i++) {
        struct inventory_device *device = &inventory->device[i];
        device->type = DEVICE_CPU;
        device->memory_bytes = 1 << 30;
        snprintf(device->name, sizeof device->name, "cpu:%d", i);
        snprintf(device->uuid, sizeof device->uuid, "CPU-%d", i);
    }
    box->runner.events->probed(box->runner.owner, inventory, NULL);
}

void box_start(struct box *box, const char *name, int n_devices)
{
    struct err err = ERR_INIT;
    char *state, *socket;
    ck_assert_int_gt(asprintf(&state, "%s/%s", checks_scratch(), name), 0);
    ck_assert_int_gt(asprintf(&socket, "%s/%s.sock", checks_scratch(), name), 0);
    *box = (struct box){
        .runner = runner_functions,
        .n_devices = n_devices,
        .clock_ms = 1000,
        .config = {.user_mode = true,
                   .grace_s = 10,
                   .half_life_h = 24,
                   .user_jobs = 5000,
                   .socket = socket,
                   .state = state,
                   .worker = strdup("/libexec/traind-worker")},
    };
    uv_loop_init(&box->loop);
    uv_timer_init(&box->loop, &box->patience);
    uv_unref((uv_handle_t *)&box->patience);
    ck_assert_msg(daemon_open(&box->loop, &box->config, &box->runner, &box->daemon, &err) == 0,
                  "%s", err.message);
    daemon_start(box->daemon);
    answer_probe(box);
}

void box_stop(struct box *box)
{
    daemon_stop(box->daemon);
    ck_assert_ptr_nonnull(box->closed);
    box->closed(box->runner.owner);
    uv_close((uv_handle_t *)&box->patience, NULL);
    uv_run(&box->loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(daemon_free(box->daemon), 0);
    ck_assert_int_eq(uv_loop_close(&box->loop), 0);
    config_done(&box->config);
}

static void copy_file(const char *from, const char *to)
{
    char buf[65536];
    FILE *in = fopen(from, "r"), *out = fopen(to, "w");
    ck_assert(in != NULL && out != NULL);
    for (size_t n; (n = fread(buf, 1, sizeof buf, in)) > 0;)
        ck_assert_uint_eq(fwrite(buf, 1, n, out), n);
    fclose(in);
    fclose(out);
}

void box_crash_image(struct box *box, const char *name)
{
    static const char *const files[] = {"traind.db", "traind.db-wal"};
    char from[PATH_MAX], to[PATH_MAX];
    snprintf(to, sizeof to, "%s/%s", checks_scratch(), name);
    mkdir(to, 0700);
    for (size_t i = 0; i < 2; i++) {
        snprintf(from, sizeof from, "%s/%s", box->config.state, files[i]);
        snprintf(to, sizeof to, "%s/%s/%s", checks_scratch(), name, files[i]);
        copy_file(from, to);
    }
}

static void on_patience(uv_timer_t *timer)
{
    (void)timer;
    ck_abort_msg("nothing happens any more");
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    uv_poll_stop(poll);
}

void box_turn(struct box *box, struct client *client)
{
    if (client != NULL)
        uv_poll_start(&client->poll, UV_READABLE | UV_DISCONNECT, on_poll);
    uv_timer_start(&box->patience, on_patience, PATIENCE_MS, 0);
    uv_run(&box->loop, UV_RUN_ONCE);
    uv_timer_stop(&box->patience);
    if (client != NULL)
        uv_poll_stop(&client->poll);
}

struct box_job *box_wait_open(struct box *box, int64_t id)
{
    struct box_job *job = find(box, id);
    while (!job->open)
        box_turn(box, NULL);
    return job;
}

void box_started(struct box *box, int64_t id)
{
    box->runner.events->started(box->runner.owner, id);
}

void box_report(struct box *box, int64_t id, const char *line)
{
    struct box_job *job = find(box, id);
    job->report_offset += (int64_t)strlen(line) + 1;
    box->runner.events->report(box->runner.owner, id, line, strlen(line), job->report_offset);
}

void box_ended(struct box *box, int64_t id, struct runner_exit record)
{
    find(box, id)->open = false;
    box->runner.events->ended(box->runner.owner, id, &record);
}

void box_gone(struct box *box, int64_t id, bool ran, const char *why)
{
    struct err err = ERR_INIT;
    find(box, id)->open = false;
    err_set(&err, ERR_IO, "%s", why);
    box->runner.events->gone(box->runner.owner, id, ran, &err);
}

void box_log(struct box *box, int64_t id, const char *data, size_t size)
{
    char path[PATH_MAX];
    FILE *file = fopen(statedir_job(box->config.state, id, "log", path, sizeof path), "a");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, size, file), size);
    int64_t at = ftell(file);
    fclose(file);
    box->runner.events->log_grew(box->runner.owner, id, at);
}

void box_advance(struct box *box, int64_t ms)
{
    box->clock_ms += ms;
    if (box->alarm_ms != 0 && box->alarm_ms <= box->clock_ms) {
        box->alarm_ms = 0;
        box->runner.events->alarm(box->runner.owner);
    }
}

/* ── A client ── */

void client_take(struct box *box, struct client *client, int fd)
{
    *client = (struct client){.box = box, .fd = fd, .events = json_array()};
    uv_poll_init(&box->loop, &client->poll, fd);
    client->poll.data = client;
}

void client_open(struct box *box, struct client *client)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(to.sun_path, sizeof to.sun_path, "%s", box->config.socket);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    client_take(box, client, fd);
}

void client_open_as(struct box *box, struct client *client, uid_t uid)
{
    int pair[2];
    ck_assert_int_eq(seteuid(uid), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    ck_assert_int_eq(seteuid(0), 0);
    client_take(box, client, pair[0]);
    session_accept(box->daemon, pair[1]);
}

static void on_poll_closed(uv_handle_t *handle)
{
    ((struct client *)handle->data)->poll_closed = true;
}

void client_close(struct client *client)
{
    uv_close((uv_handle_t *)&client->poll, on_poll_closed);
    while (!client->poll_closed)
        uv_run(&client->box->loop, UV_RUN_NOWAIT);
    close(client->fd);
    free(client->buf);
    json_decref(client->events);
}

void client_send(struct client *client, const char *text, size_t size)
{
    while (size > 0) { /* the daemon reads while we write */
        ssize_t n = send(client->fd, text, size, MSG_NOSIGNAL);
        ck_assert_msg(n > 0 || errno == EAGAIN, "send: %s", strerror(errno));
        if (n < 0) {
            uv_run(&client->box->loop, UV_RUN_NOWAIT);
            continue;
        }
        text += n;
        size -= (size_t)n;
    }
}

/* Takes the first whole line out of the buffer. */
static json_t *take_line(struct client *client)
{
    char *end = client->used > 0 ? memchr(client->buf, '\n', client->used) : NULL;
    if (end == NULL)
        return NULL;
    json_t *line = json_loadb(client->buf, (size_t)(end - client->buf), JSON_ALLOW_NUL, NULL);
    ck_assert_msg(line != NULL, "not JSON: %.200s", client->buf);
    client->used -= (size_t)(end + 1 - client->buf);
    memmove(client->buf, end + 1, client->used);
    return line;
}

json_t *client_read(struct box *box, struct client *client)
{
    json_t *line;
    while ((line = take_line(client)) == NULL) {
        if (client->size - client->used < 65536)
            client->buf = realloc(client->buf, client->size += 1 << 20);
        ssize_t n =
            recv(client->fd, client->buf + client->used, client->size - client->used, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno == ECONNRESET))
            return NULL;
        if (n > 0)
            client->used += (size_t)n;
        else
            box_turn(box, client);
    }
    return line;
}

json_t *client_call(struct box *box, struct client *client, const char *method, json_t *params)
{
    static json_int_t last;
    json_int_t id = ++last;
    json_t *request = json_pack("{s:s, s:I, s:s, s:o*}", "jsonrpc", "2.0", "id", id, "method",
                                method, "params", params);
    char *text = json_line(request);
    size_t size = strlen(text);
    text[size] = '\n';
    client_send(client, text, size + 1);
    free(text);
    json_decref(request);
    for (;;) {
        json_t *line = client_read(box, client);
        ck_assert_msg(line != NULL, "%s: the connection was closed", method);
        if (json_integer_value(json_object_get(line, "id")) == id)
            return line;
        json_array_append_new(client->events, line);
    }
}

json_t *client_result(struct box *box, struct client *client, const char *method, json_t *params)
{
    json_t *reply = client_call(box, client, method, params);
    json_t *result = json_incref(json_object_get(reply, "result"));
    const char *message =
        json_string_value(json_object_get(json_object_get(reply, "error"), "message"));
    ck_assert_msg(result != NULL, "%s: %s", method, message != NULL ? message : "?");
    json_decref(reply);
    return result;
}

const char *client_error(struct box *box, struct client *client, const char *method, json_t *params,
                         const char *name)
{
    static char message[1024];
    json_t *reply = client_call(box, client, method, params);
    const json_t *error = json_object_get(reply, "error");
    const json_t *data = json_object_get(error, "data");
    ck_assert_msg(error != NULL, "%s: no error", method);
    snprintf(message, sizeof message, "%s", json_string_value(json_object_get(error, "message")));
    ck_assert_msg(strcmp(json_string_value(json_object_get(data, "name")), name) == 0, "%s: %s",
                  json_string_value(json_object_get(data, "name")), message);
    json_decref(reply);
    return message;
}

json_t *client_event(struct box *box, struct client *client)
{
    if (json_array_size(client->events) == 0)
        return client_read(box, client);
    json_t *event = json_incref(json_array_get(client->events, 0));
    json_array_remove(client->events, 0);
    return event;
}

json_t *box_document(int devices)
{
    json_t *document = json_loads(
        "{\"version\":1,\"name\":\"small\",\"model\":{\"input\":{\"shape\":[5]},\"layers\":"
        "[{\"type\":\"Linear\",\"out_features\":2}]},\"data\":{\"train\":{\"format\":\"random\","
        "\"samples\":100,\"seed\":1}},\"loss\":{\"type\":\"MSELoss\"},\"optimizer\":{\"type\":"
        "\"SGD\",\"lr\":0.05},\"train\":{\"epochs\":2,\"batch_size\":30,\"seed\":1}}",
        0, NULL);
    ck_assert_ptr_nonnull(document);
    json_object_set_new(document, "parallel",
                        json_pack("{s:s, s:i}", "mode", "replicate", "devices", devices));
    return document;
}

int64_t client_submit(struct box *box, struct client *client, int devices)
{
    json_t *result =
        client_result(box, client, "job.submit",
                      json_pack("{s:o, s:s}", "job", box_document(devices), "cwd", "/home/a"));
    int64_t id = json_integer_value(json_object_get(result, "id"));
    json_decref(result);
    return id;
}

json_t *client_show(struct box *box, struct client *client, int64_t id)
{
    return client_result(box, client, "job.show", json_pack("{s:I}", "id", (json_int_t)id));
}

void client_wait_state(struct box *box, struct client *client, int64_t id, const char *state)
{
    for (int i = 0; i < 1000; i++) {
        json_t *record = client_show(box, client, id);
        bool there = strcmp(json_string_value(json_object_get(record, "state")), state) == 0;
        json_decref(record);
        if (there)
            return;
    }
    ck_abort_msg("job %d does not become %s", (int)id, state);
}
