/* shim_reap.h: the end of everything that a job has left behind. */
#ifndef DAEMON_SHIM_REAP_H
#define DAEMON_SHIM_REAP_H

#include <stdbool.h>

/* Kills every child of this process, which is a subreaper, and reaps the dead. True when no child
 * is left; false: some are dying, and SIGCHLD will say when to call again. Whoever loses its parent
 * on the way becomes a child of ours before that parent can be reaped, so none escapes. */
bool shim_reap(void);

#endif
