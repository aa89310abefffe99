/* schedule.h: the learning rate of a step. PURE: a resume has nothing to restore. */
#ifndef ENGINE_TRAIN_SCHEDULE_H
#define ENGINE_TRAIN_SCHEDULE_H

#include "proto/job.h"

/* The rate of optimizer step `step`, from 1, where step 1 has `lr` (but for a warm-up): what
 * torch.optim.lr_scheduler's class of that name gives after step - 1 calls of its step(), times
 * min(1, step / warmup_steps). */
double schedule_lr(const struct job_schedule *schedule, double lr, int64_t step);

#endif
