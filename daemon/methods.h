/* methods.h: the protocol's methods: one row of a table each. The loop's thread. */
#ifndef DAEMON_METHODS_H
#define DAEMON_METHODS_H

#include "daemon/session.h"

struct daemon;

/* Finds the method, checks the parameters, runs its handler; the call is answered now or later. */
void methods_call(struct daemon *daemon, struct call *call);

/* A handler returns 0 and answers (now or later) with call_reply or call_fail, or returns an error
 * with `err` filled and leaves the call to its caller. */
typedef int method_fn(struct daemon *daemon, struct call *call, struct err *err);

method_fn submit_call; /* submit.c */
method_fn cancel_call; /* change.c */
method_fn hold_call;
method_fn release_call;
method_fn update_call;
method_fn drain_call; /* drain.c */
method_fn resume_call;
method_fn list_call; /* query.c */
method_fn show_call;

/* {"devices": […]}, as device.list gives it. NULL without memory. */
json_t *devices_json(struct daemon *daemon);

#endif
