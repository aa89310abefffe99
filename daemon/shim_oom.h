/* shim_oom.h: has the kernel killed for want of memory where the job runs? */
#ifndef DAEMON_SHIM_OOM_H
#define DAEMON_SHIM_OOM_H

#include <stdint.h>

struct shim_oom {
    char path[512]; /* a file with a line "oom_kill N" */
    int64_t before;
};

/* Chooses the counter: of our own memory cgroup (version 2 or 1), which the job inherits, else of
 * the whole machine. */
void shim_oom_start(struct shim_oom *oom);
/* Kills since then; 0 where nothing is counted. */
int64_t shim_oom_kills(const struct shim_oom *oom);

#endif
