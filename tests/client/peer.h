/* peer.h: a daemon that answers by a script, on a real Unix socket, for the client's tests. */
#ifndef TESTS_CLIENT_PEER_H
#define TESTS_CLIENT_PEER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* One exchange: the request that has to come, and what is sent then. */
struct peer_step {
    const char *method;
    const char *before; /* whole lines sent before the reply, or NULL */
    const char *reply;  /* "\"result\":{…}" or "\"error\":{…}"; NULL: no reply */
    const char *after;  /* whole lines sent after the reply, or NULL */
    bool hang_up;       /* closes the connection; the next step waits for a new one */
};

struct peer;

/* Listens in the test's scratch directory and plays `steps` (which must outlive it) in a thread. */
struct peer *peer_start(const struct peer_step *steps, size_t n);
const char *peer_socket(const struct peer *peer);
/* Ends it when its client has gone. Returns the requests that came, in order (a new reference);
 * fails the test if one was not the step's. */
json_t *peer_stop(struct peer *peer);

#endif
