/* progress.h: a job's progress as a block that is redrawn, and as lines for a pipe. Pure. */
#ifndef CLIENT_RENDER_PROGRESS_H
#define CLIENT_RENDER_PROGRESS_H

#include "client/record.h"
#include "client/render/style.h"
#include "client/render/text.h"

/* "job 7  digits-cnn  running on cpu:0 cpu:1  12s", a queued job with its reason; while it runs a
 * bar and the numbers in two more lines. `now`: seconds since 1970. */
void progress_block(struct text *text, const struct style *style, const struct record *record,
                    double now);

/* One line each, without colours. */
void progress_state_line(struct text *text, const struct style *style, const struct record *record);
void progress_resumed_line(struct text *text, const struct record *record);
void progress_step_line(struct text *text, const struct record *record);
void progress_validation_line(struct text *text, const struct record *record);

/* Adds the state in its colour. */
void progress_state(struct text *text, const struct style *style, const struct record *record);
enum color progress_color(enum job_state state);
/* Of a device's state: "free", "assigned", "draining", "drained". */
enum color progress_device_color(const char *state);
/* Adds "cpu:0 cpu:1". */
void progress_devices(struct text *text, const struct style *style, const struct record *record);

#endif
