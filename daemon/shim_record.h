/* shim_record.h: the small files that outlive the shim: shim.json, worker.json, exit.json. */
#ifndef DAEMON_SHIM_RECORD_H
#define DAEMON_SHIM_RECORD_H

#include <stdint.h>
#include <sys/types.h>

/* Why a job ended, as exit.json names it. */
#define SHIM_EXITED "exited"
#define SHIM_SIGNALLED "signalled"
#define SHIM_OOM "oom"
#define SHIM_HUNG "hung"
#define SHIM_STOPPED "stopped"
#define SHIM_EXEC_FAILED "exec_failed"

struct shim_exit {
    int status;         /* -1: null */
    int signal;         /* 0: null */
    const char *reason; /* one of the above */
    char message[512];  /* any bytes; what is not UTF-8 is written as '?' */
    int64_t ended_ns;   /* realtime */
    int64_t oom_kills;
};

/* Each writes a new file, syncs it, renames it into place and syncs the directory: the name is
 * either absent or complete. Returns 0 or an errno; then nothing has changed. */
int shim_record_shim(int dir_fd);
int shim_record_worker(int dir_fd, pid_t pid);
int shim_record_exit(int dir_fd, const struct shim_exit *record);

#endif
