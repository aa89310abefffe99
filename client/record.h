/* record.h: a job's record as the daemon gives it (doc/processes.md), read into plain values. Pure.
 */
#ifndef CLIENT_RECORD_H
#define CLIENT_RECORD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/state.h"

/* Numbers that the record does not have are NAN or -1, strings NULL. Everything is borrowed from
 * the JSON, and is somebody else's words: print strings with text_safe. */
struct record {
    int64_t id, user, n_devices;
    const char *name, *reason, *cwd, *output, *weights;
    enum job_state state; /* STATE_COUNT: one that this version does not know */
    const char *state_text;
    double submitted, started, ended;
    const json_t *devices, *confusion, *losses, *history, *document;

    bool has_progress;
    int64_t step, steps, epoch, epochs, resumed_step, checkpoint_step;
    double loss, rate, seconds_left, accuracy, validation_loss;

    bool has_exit;
    int64_t exit_status, exit_signal;
    const char *exit_code, *exit_message, *exit_path;
};

void record_read(const json_t *json, struct record *ret);

/* Whether it is in a state that it will not leave; one that this version does not know is none. */
bool record_ended(const struct record *record);
/* Of 0 to 1: how much of the job is done; 0 while it is not known. */
double record_fraction(const struct record *record);
/* Seconds from its start to its end or `now`; NAN before its start. */
double record_elapsed(const struct record *record, double now);

#endif
