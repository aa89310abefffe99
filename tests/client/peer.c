#include "tests/client/peer.h"

#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/lib/checks.h"

struct peer {
    const struct peer_step *steps;
    size_t n, at;
    int listening;
    pthread_t thread;
    json_t *requests;
    char complaint[256];
    char path[108];
};

static void send_text(int fd, const char *text)
{
    size_t size = text != NULL ? strlen(text) : 0;
    while (size > 0) {
        ssize_t n = send(fd, text, size, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        text += n;
        size -= (size_t)n;
    }
}

static void send_reply(int fd, json_t *request, const char *reply)
{
    char head[64];
    if (reply == NULL)
        return;
    snprintf(head, sizeof head, "{\"jsonrpc\":\"2.0\",\"id\":%lld,",
             (long long)json_integer_value(json_object_get(request, "id")));
    send_text(fd, head);
    send_text(fd, reply);
    send_text(fd, "}\n");
}

/* Plays the next step; false when the connection is to be closed. */
static bool answer(struct peer *peer, int fd, json_t *request)
{
    const char *method = json_string_value(json_object_get(request, "method"));
    json_array_append_new(peer->requests, request);
    if (peer->at == peer->n || method == NULL ||
        strcmp(method, peer->steps[peer->at].method) != 0) {
        snprintf(peer->complaint, sizeof peer->complaint, "request %zu was %s", peer->at,
                 method != NULL ? method : "none");
        return false;
    }
    const struct peer_step *step = &peer->steps[peer->at++];
    send_text(fd, step->before);
    send_reply(fd, request, step->reply);
    send_text(fd, step->after);
    return !step->hang_up;
}

static void serve(struct peer *peer, int fd)
{
    FILE *in = fdopen(fd, "r");
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, in) > 0) {
        json_t *request = json_loads(line, 0, NULL);
        if (request == NULL || !answer(peer, fd, request))
            break;
    }
    free(line);
    fclose(in);
}

static void *play(void *context)
{
    struct peer *peer = context;
    int fd;
    while ((fd = accept(peer->listening, NULL, NULL)) >= 0)
        serve(peer, fd);
    return NULL;
}

struct peer *peer_start(const struct peer_step *steps, size_t n)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct peer *peer = calloc(1, sizeof *peer);
    peer->steps = steps;
    peer->n = n;
    peer->requests = json_array();
    snprintf(peer->path, sizeof peer->path, "%s/traind.sock", checks_scratch());
    strcpy(address.sun_path, peer->path);
    peer->listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(peer->listening, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(peer->listening, 4), 0);
    ck_assert_int_eq(pthread_create(&peer->thread, NULL, play, peer), 0);
    return peer;
}

const char *peer_socket(const struct peer *peer)
{
    return peer->path;
}

json_t *peer_stop(struct peer *peer)
{
    json_t *requests = peer->requests;
    shutdown(peer->listening, SHUT_RDWR); /* wakes accept */
    pthread_join(peer->thread, NULL);
    close(peer->listening);
    unlink(peer->path);
    ck_assert_msg(peer->complaint[0] == '\0', "%s", peer->complaint);
    ck_assert_uint_eq(peer->at, peer->n);
    free(peer);
    return requests;
}
