/* usage.h: who has had how much of the devices lately: the sum over the jobs that have ended
 * (share.h), kept a user, and what runs now. It follows from the jobs' history alone, and is read
 * from it when the daemon starts. The loop's thread.
 */
#ifndef DAEMON_USAGE_H
#define DAEMON_USAGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/err.h"

struct daemon;
struct job_record;

struct usage_entry {
    uid_t uid;
    double amount; /* device-seconds, as of at_ns */
    int64_t at_ns;
};

/* Zero-initialise. */
struct usage {
    struct usage_entry *entry;
    size_t n, room;
};

/* Before the store's thread runs. Errors: the store's. */
int usage_load(struct daemon *daemon, struct err *err);
/* A job that held devices has ended. Errors: ERR_NOMEM. */
int usage_charge(struct daemon *daemon, const struct job_record *record, struct err *err);
/* Of ended jobs, as it counts now. */
double usage_of(const struct daemon *daemon, uid_t uid, int64_t now_ns);
/* What a running job has come to. */
double usage_running(const struct daemon *daemon, const struct job_record *record, int64_t now_ns);
void usage_done(struct usage *usage);

#endif
