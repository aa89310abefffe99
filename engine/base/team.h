/* team.h: the threads of one device, shared with oneDNN.
 *
 * Debian's oneDNN runs on libgomp, so our own kernels use that same runtime, through its ABI (a
 * second OpenMP runtime would fight for the cores). Each device thread has a team of its own; its
 * size is set once, before any primitive is created. Never fork a process that has used a team.
 */
#ifndef ENGINE_BASE_TEAM_H
#define ENGINE_BASE_TEAM_H

#include <stdint.h>

/* Threads of the calling thread's team from now on. */
void team_set_size(int n_threads);
int team_size(void);
/* Calls fn(begin, end, context) for a partition of [0, n) on the calling thread's team, in equal
 * consecutive parts that depend only on n and the team's size; on this thread alone where n <
 * `grain` * 2. */
void team_for(int64_t n, int64_t grain, void (*fn)(int64_t begin, int64_t end, void *context),
              void *context);

#endif
