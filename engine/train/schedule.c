/* schedule.c: each schedule in its closed form, `made` being the optimizer steps made before. */
#include "engine/train/schedule.h"

#include <math.h>

static double constant(const struct job_schedule *schedule, double lr, int64_t made)
{
    (void)schedule;
    (void)made;
    return lr;
}

static double step_lr(const struct job_schedule *schedule, double lr, int64_t made)
{
    return lr * pow(schedule->gamma, (double)(made / schedule->step_size));
}

static double multi_step_lr(const struct job_schedule *schedule, double lr, int64_t made)
{
    int64_t passed = 0;
    for (size_t i = 0; i < schedule->milestones.n; i++)
        passed += schedule->milestones.v[i] <= made;
    return lr * pow(schedule->gamma, (double)passed);
}

/* Beyond T_max it rises again, as PyTorch's does. */
static double cosine_annealing_lr(const struct job_schedule *schedule, double lr, int64_t made)
{
    const double pi = 3.14159265358979323846;
    int64_t in_period = made % (2 * schedule->t_max);
    double angle = pi * (double)in_period / (double)schedule->t_max;
    return schedule->eta_min + (lr - schedule->eta_min) * (1 + cos(angle)) / 2;
}

static double (*const schedules[])(const struct job_schedule *schedule, double lr, int64_t made) = {
    [SCHEDULE_CONSTANT] = constant,
    [SCHEDULE_STEP] = step_lr,
    [SCHEDULE_MULTI_STEP] = multi_step_lr,
    [SCHEDULE_COSINE_ANNEALING] = cosine_annealing_lr,
};

double schedule_lr(const struct job_schedule *schedule, double lr, int64_t step)
{
    double rate = schedules[schedule->type](schedule, lr, step - 1);
    if (step < schedule->warmup_steps)
        rate *= (double)step / (double)schedule->warmup_steps;
    return rate;
}
