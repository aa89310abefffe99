/* recover.h: what an earlier daemon has left unfinished. */
#ifndef DAEMON_RECOVER_H
#define DAEMON_RECOVER_H

#include "proto/err.h"

struct daemon;

/* Reads the unfinished jobs from daemon->opened (before the store's thread runs) into the list of
 * live jobs. Errors: those of the store. */
int recover_load(struct daemon *daemon, struct err *err);
/* Once devices and store are there: queued jobs stay queued, all others are given to the runner,
 * whose evidence decides (see runner.h). Then the queue is scheduled. */
void recover_adopt(struct daemon *daemon);

#endif
