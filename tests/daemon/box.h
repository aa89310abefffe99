/* box.h: a whole daemon for a test: real database, real socket, real log files; the processes are
 * played by the test through a runner of its own. All in one thread: whoever waits turns the loop.
 */
#ifndef TESTS_DAEMON_BOX_H
#define TESTS_DAEMON_BOX_H

#include <jansson.h>
#include <uv.h>

#include "daemon/daemon.h"

enum { BOX_JOBS = 256 };

/* A job that the daemon has given to the runner. */
struct box_job {
    int64_t id;
    bool open, adopted;
    int spawns, stops;
    int64_t report_offset; /* of adopt, then behind the last report */
    char argv[1024];       /* joined with blanks */
    char cwd[256];
    bool drop;
    uid_t uid;
};

struct box {
    struct runner runner; /* first: the daemon's `self` is the box */
    uv_loop_t loop;
    struct config config;
    struct daemon *daemon;
    int n_devices;
    struct box_job job[BOX_JOBS];
    size_t n_jobs;
    int64_t clock_ms, alarm_ms; /* simulated; alarm 0: none */
    uv_timer_t patience;        /* ends a test in which nothing happens any more */
    void (*closed)(void *owner);
};

struct client {
    struct box *box;
    int fd;
    uv_poll_t poll;
    bool poll_closed;
    char *buf;
    size_t used, size;
    json_t *events; /* notifications that came while a reply was waited for */
};

/* A daemon with `n_devices` CPU devices on a fresh state directory named `name`, or on what an
 * earlier one has left there. */
void box_start(struct box *box, const char *name, int n_devices);
void box_stop(struct box *box);
/* Copies the database as a crash would leave it now, into the state directory `name`. */
void box_crash_image(struct box *box, const char *name);

/* Turns the loop once: waits for an event of the daemon or of `client` (NULL: of the daemon). */
void box_turn(struct box *box, struct client *client);
/* The job as the runner knows it; waits until it is open there. */
struct box_job *box_wait_open(struct box *box, int64_t id);
void box_started(struct box *box, int64_t id);
void box_report(struct box *box, int64_t id, const char *line);
void box_ended(struct box *box, int64_t id, struct runner_exit record);
void box_gone(struct box *box, int64_t id, bool ran, const char *why);
void box_log(struct box *box, int64_t id, const char *data, size_t size);
/* Simulated time goes by. */
void box_advance(struct box *box, int64_t ms);

void client_open(struct box *box, struct client *client);
/* The same for a socket that the test has connected. */
void client_take(struct box *box, struct client *client, int fd);
/* A client of another user (root only): the kernel keeps the credentials of who made the pair. */
void client_open_as(struct box *box, struct client *client, uid_t uid);
void client_close(struct client *client);
void client_send(struct client *client, const char *text, size_t size);
/* The next line, or NULL at the end of the connection. */
json_t *client_read(struct box *box, struct client *client);
/* One request and its reply (the whole object); `params` is stolen, NULL is none. */
json_t *client_call(struct box *box, struct client *client, const char *method, json_t *params);
/* The result; fails the test on an error. */
json_t *client_result(struct box *box, struct client *client, const char *method, json_t *params);
/* The error's name is `name`; returns its message, which the next call overwrites. */
const char *client_error(struct box *box, struct client *client, const char *method, json_t *params,
                         const char *name);
/* The next notification. */
json_t *client_event(struct box *box, struct client *client);

/* A small document that asks for so many devices. */
json_t *box_document(int devices);
/* Submits it from "/home/a"; returns its id. */
int64_t client_submit(struct box *box, struct client *client, int devices);
/* job.show's record; a new reference. */
json_t *client_show(struct box *box, struct client *client, int64_t id);
/* Waits until job.show says that the job is in this state. */
void client_wait_state(struct box *box, struct client *client, int64_t id, const char *state);

#endif
