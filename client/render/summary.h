/* summary.h: what is to say of a job that has ended. Pure. */
#ifndef CLIENT_RENDER_SUMMARY_H
#define CLIENT_RENDER_SUMMARY_H

#include "client/record.h"
#include "client/render/style.h"
#include "client/render/text.h"

/* Final state and how long it took; then of a job that completed validation, loss curve, confusion
 * table (each where the record has it) and the weights' path, of another the reason with its code
 * and path, where to read on, and how to go on. */
void summary_draw(struct text *text, const struct style *style, const struct record *record);

/* The parts that `trainctl show` prints too; each adds nothing where the record has nothing. */
void summary_exit(struct text *text, const struct style *style, const struct record *record);
void summary_losses(struct text *text, const struct style *style, const struct record *record);
void summary_confusion(struct text *text, const struct style *style, const struct record *record);
/* Of a job that ended too early: its last checkpoint, and how to go on from it. */
void summary_checkpoint(struct text *text, const struct style *style, const struct record *record);
/* What the file of summary_weights is: "weights", or "results" of a job that does not train. */
const char *summary_result_name(const struct record *record);
/* The weights' file, absolute if the record knows the directory. */
void summary_weights(struct text *text, const struct style *style, const struct record *record);

#endif
