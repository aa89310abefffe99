/* tasks.c: see tasks.h. */
#include "engine/backend/cpu/tasks.h"

#include "engine/base/team.h"

enum {
    TASKS = 64, /* as many at least as keep a team of some dozens of threads busy */
    UNIT_GRAIN = 16,
};

static int64_t unit_elements(const struct view *view)
{
    return view->n * view->steps * LANES;
}

/* Chunks of a unit, of all samples, one behind the other. */
static int64_t pieces_of(const struct view *view)
{
    return view->n * chunks_of(view);
}

int64_t blocks_of(const struct view *view)
{
    int64_t wanted = (TASKS - 1) / units_of(view) + 1, worth = unit_elements(view) / OWN_GRAIN;
    int64_t most = pieces_of(view) < worth ? pieces_of(view) : worth;
    return wanted < most ? wanted : most > 1 ? most : 1;
}

int64_t tasks_of(const struct view *view)
{
    return blocks_of(view) * units_of(view);
}

struct run {
    const struct view *view;
    enum tasks_order order;
    task_chunk *work;
    const void *context;
};

/* Tasks of one block, of units side by side. */
struct part {
    int64_t first, last; /* pieces */
    int64_t begin, end;  /* units */
    int64_t task;        /* of unit 0 */
};

static void run_sample(const struct run *run, const struct part *part, int64_t sample)
{
    int64_t chunks = chunks_of(run->view), at = sample * chunks;
    int64_t first = part->first > at ? part->first - at : 0;
    int64_t last = part->last - at < chunks ? part->last - at : chunks;
    for (int64_t u = part->begin; u < part->end; u++) {
        struct unit unit = unit_at(run->view, u);
        for (int64_t i = first; i < last; i++) {
            struct chunk chunk = chunk_at(run->view, sample, &unit, i);
            run->work(run->context, &chunk, part->task + u, u);
        }
    }
}

static void run_part(const struct run *run, const struct part *part)
{
    int64_t chunks = chunks_of(run->view);
    int64_t first = part->first / chunks, last = (part->last - 1) / chunks;
    if (run->order == TASKS_FORTH)
        for (int64_t n = first; n <= last; n++)
            run_sample(run, part, n);
    else
        for (int64_t n = last; n >= first; n--)
            run_sample(run, part, n);
}

/* What tasks [begin, end) have of a block. */
static struct part part_of(const struct view *view, int64_t block, int64_t begin, int64_t end)
{
    int64_t units = units_of(view), at = block * units;
    int64_t pieces = pieces_of(view), blocks = blocks_of(view);
    return (struct part){
        .first = block * pieces / blocks,
        .last = (block + 1) * pieces / blocks,
        .begin = begin > at ? begin - at : 0,
        .end = end - at < units ? end - at : units,
        .task = at,
    };
}

static void run_tasks(int64_t begin, int64_t end, void *context)
{
    const struct run *run = context;
    int64_t units = units_of(run->view), first = begin / units, last = (end - 1) / units;
    for (int64_t i = first; i <= last; i++) {
        int64_t block = run->order == TASKS_FORTH ? i : last - (i - first);
        struct part part = part_of(run->view, block, begin, end);
        run_part(run, &part);
    }
    store_fence();
}

void tasks_run(const struct view *view, enum tasks_order order, task_chunk *work,
               const void *context)
{
    struct run run = {view, order, work, context};
    int64_t grain = OWN_GRAIN * blocks_of(view) / unit_elements(view) + 1;
    team_for(tasks_of(view), grain, run_tasks, &run);
}

struct units {
    task_unit *work;
    const void *context;
};

static void run_units(int64_t begin, int64_t end, void *context)
{
    const struct units *units = context;
    for (int64_t u = begin; u < end; u++)
        units->work(units->context, u);
}

void tasks_units(const struct view *view, task_unit *work, const void *context)
{
    struct units units = {work, context};
    team_for(units_of(view), UNIT_GRAIN, run_units, &units);
}
