/* tasks.h: a kernel with sums a channel shares its tensor among the team.
 *
 * Channels alone would leave threads idle: units (channels.h) may be fewer. So the samples are cut
 * into blocks, the more the fewer units there are; a block of a unit is a task. Blocks depend on
 * the shape alone, a task is done by one thread, in one order, and who adds up a unit's tasks does
 * it in their order: the bits do not depend on the team.
 */
#ifndef ENGINE_BACKEND_CPU_TASKS_H
#define ENGINE_BACKEND_CPU_TASKS_H

#include "engine/backend/cpu/channels.h"

/* Block b of unit u is task b * units_of(view) + u. */
int64_t blocks_of(const struct view *view);
int64_t tasks_of(const struct view *view);

enum tasks_order { TASKS_FORTH, TASKS_BACK }; /* back: later samples first */

typedef void task_chunk(const void *context, const struct chunk *chunk, int64_t task, int64_t u);
/* Every chunk, on the team; on each thread in the order in which they lie in memory. */
void tasks_run(const struct view *view, enum tasks_order order, task_chunk *work,
               const void *context);

typedef void task_unit(const void *context, int64_t u);
/* Every unit, on the team where they are many. */
void tasks_units(const struct view *view, task_unit *work, const void *context);

#endif
