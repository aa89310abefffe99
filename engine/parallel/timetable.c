/* timetable.c: see timetable.h. Lists first, each stage's by the schedule's rule; then all are run
 * in thought: a section begins when its stage is free and what it needs has ended. */
#include "engine/parallel/timetable.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

static int depth_one(int stages, int stage, int microbatches)
{
    (void)stages;
    (void)stage;
    (void)microbatches;
    return 1;
}

static int depth_all(int stages, int stage, int microbatches)
{
    (void)stages;
    (void)stage;
    return microbatches;
}

/* As many as it takes until the first gradient can be back. */
static int depth_to_end(int stages, int stage, int microbatches)
{
    (void)microbatches;
    return stages - stage;
}

static int hold_none(int stage)
{
    (void)stage;
    return 0;
}

static int hold_stage(int stage)
{
    return stage;
}

struct rule {
    /* Forward sections before the first backward one; from there on they alternate. */
    int (*depth)(int stages, int stage, int microbatches);
    /* Micro-batches whose weight gradients are put off. */
    int (*held)(int stage);
    bool split; /* weight gradients are sections of their own */
};

static const struct rule rules[] = {
    [PIPELINE_NONE] = {depth_one, hold_none, false},
    [PIPELINE_GPIPE] = {depth_all, hold_none, false},
    [PIPELINE_1F1B] = {depth_to_end, hold_none, false},
    [PIPELINE_ZERO_BUBBLE] = {depth_to_end, hold_stage, true},
};

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

bool timetable_splits_backward(enum pipeline_schedule schedule)
{
    return rules[schedule].split;
}

int timetable_slots(enum pipeline_schedule schedule, int stages, int stage, int microbatches)
{
    const struct rule *rule = &rules[schedule];
    return smaller(rule->depth(stages, stage, microbatches) + rule->held(stage), microbatches);
}

static void append(struct timetable_stage *stage, enum section kind, int microbatch)
{
    stage->entries[stage->n++] = (struct timetable_entry){.kind = kind, .microbatch = microbatch};
}

static void list_training(const struct timetable_config *config, int index,
                          struct timetable_stage *stage)
{
    const struct rule *rule = &rules[config->schedule];
    int m = config->microbatches, forward = 0, weight = 0;
    int depth = smaller(rule->depth(config->stages, index, m), m), held = rule->held(index);
    while (forward < depth)
        append(stage, SECTION_FORWARD, forward++);
    for (int backward = 0; backward < m; backward++) {
        append(stage, SECTION_BACKWARD, backward);
        if (rule->split && backward >= held)
            append(stage, SECTION_WEIGHTS, weight++);
        if (forward < m)
            append(stage, SECTION_FORWARD, forward++);
    }
    while (rule->split && weight < m)
        append(stage, SECTION_WEIGHTS, weight++);
}

static void list_evaluation(const struct timetable_config *config, struct timetable_stage *stage)
{
    for (int i = 0; i < config->microbatches; i++)
        append(stage, SECTION_FORWARD, i);
}

static enum section last_kind(const struct timetable_config *config)
{
    if (!config->training)
        return SECTION_FORWARD;
    return rules[config->schedule].split ? SECTION_WEIGHTS : SECTION_BACKWARD;
}

static int count_slots(const struct timetable_config *config, const struct timetable_stage *stage)
{
    int held = 0, most = 0;
    for (size_t i = 0; i < stage->n; i++) {
        held += stage->entries[i].kind == SECTION_FORWARD;
        most = held > most ? held : most;
        held -= stage->entries[i].kind == last_kind(config);
    }
    return most;
}

static double cost_of(const struct timetable_config *config, int stage,
                      const struct timetable_entry *entry)
{
    static const struct timetable_cost unit = {{1, 1, 1}};
    size_t at = (size_t)entry->microbatch * (size_t)config->stages + (size_t)stage;
    const struct timetable_cost *cost = config->costs != NULL ? &config->costs[at] : &unit;
    bool both = entry->kind == SECTION_BACKWARD && !rules[config->schedule].split;
    return cost->of[entry->kind] + (both ? cost->of[SECTION_WEIGHTS] : 0);
}

/* How far the stages are: of each kind the sections that have ended are the first ones. */
struct run {
    struct timetable *table;
    const struct timetable_config *config;
    size_t *next;    /* of each stage: its next entry */
    double *ends[2]; /* forward, backward: [microbatch * stages + stage]; below 0: not yet */
};

static double *end_of(struct run *run, enum section kind, int stage, int microbatch)
{
    return &run->ends[kind][(size_t)microbatch * (size_t)run->config->stages + (size_t)stage];
}

/* When a section can begin; below 0: what it needs has not ended. What it needs of its own stage
 * comes before it in the list. */
static double ready_at(struct run *run, int stage, const struct timetable_entry *entry)
{
    if (entry->kind == SECTION_FORWARD && stage > 0)
        return *end_of(run, SECTION_FORWARD, stage - 1, entry->microbatch);
    if (entry->kind == SECTION_BACKWARD && stage < run->config->stages - 1)
        return *end_of(run, SECTION_BACKWARD, stage + 1, entry->microbatch);
    return 0;
}

/* Runs as much of a stage's list as the other stages allow. Returns how many sections. */
static size_t advance(struct run *run, int index)
{
    struct timetable_stage *stage = &run->table->stages[index];
    size_t first = run->next[index], i = first;
    for (; i < stage->n; i++) {
        struct timetable_entry *entry = &stage->entries[i];
        double ready = ready_at(run, index, entry), free_at = i > 0 ? entry[-1].end : 0;
        if (ready < 0)
            break;
        entry->start = ready > free_at ? ready : free_at;
        entry->end = entry->start + cost_of(run->config, index, entry);
        stage->busy += cost_of(run->config, index, entry);
        if (entry->kind != SECTION_WEIGHTS)
            *end_of(run, entry->kind, index, entry->microbatch) = entry->end;
    }
    run->next[index] = i;
    return i - first;
}

static void time_all(struct run *run)
{
    size_t left = 0;
    for (int s = 0; s < run->config->stages; s++)
        left += run->table->stages[s].n;
    while (left > 0) {
        size_t before = left;
        for (int s = 0; s < run->config->stages; s++)
            left -= advance(run, s);
        assert(left < before); /* no list waits for itself */
        (void)before;
    }
}

static void sum_up(struct timetable *table)
{
    double busy = 0;
    for (int s = 0; s < table->config.stages; s++) {
        const struct timetable_stage *stage = &table->stages[s];
        double end = stage->entries[stage->n - 1].end;
        table->seconds = end > table->seconds ? end : table->seconds;
        busy += stage->busy;
    }
    if (table->seconds > 0)
        table->bubble = 1 - busy / (table->seconds * table->config.stages);
}

static int predict(struct timetable *table, const struct timetable_config *config, struct err *err)
{
    size_t stages = (size_t)config->stages, n = stages * (size_t)config->microbatches;
    struct run run = {.table = table, .config = config};
    run.next = calloc(stages, sizeof *run.next);
    run.ends[0] = malloc(2 * n * sizeof *run.ends[0]);
    bool fits = run.next != NULL && run.ends[0] != NULL;
    for (size_t i = 0; fits && i < 2 * n; i++)
        run.ends[0][i] = -1;
    if (fits) {
        run.ends[1] = run.ends[0] + n;
        time_all(&run);
        sum_up(table);
    }
    free(run.next);
    free(run.ends[0]);
    return fits ? 0 : err_set(err, ERR_NOMEM, "out of memory for the timetable");
}

static int list_all(struct timetable *table, struct err *err)
{
    const struct timetable_config *config = &table->config;
    table->stages = calloc((size_t)config->stages, sizeof *table->stages);
    for (int s = 0; table->stages != NULL && s < config->stages; s++) {
        struct timetable_stage *stage = &table->stages[s];
        stage->entries = calloc((size_t)config->microbatches,
                                (config->training ? SECTION_COUNT : 1) * sizeof *stage->entries);
        if (stage->entries == NULL)
            break;
        if (config->training)
            list_training(config, s, stage);
        else
            list_evaluation(config, stage);
        stage->slots = count_slots(config, stage);
    }
    if (table->stages == NULL || table->stages[config->stages - 1].entries == NULL)
        return err_set(err, ERR_NOMEM, "out of memory for the timetable");
    return 0;
}

int timetable_build(const struct timetable_config *config, struct timetable **ret_table,
                    struct err *err)
{
    struct timetable *table = calloc(1, sizeof *table);
    if (table == NULL)
        return err_set(err, ERR_NOMEM, "out of memory for the timetable");
    table->config = *config;
    table->config.costs = NULL;
    int rc = list_all(table, err);
    if (rc == 0)
        rc = predict(table, config, err);
    if (rc == 0)
        *ret_table = table;
    else
        timetable_free(table);
    return rc;
}

void timetable_free(struct timetable *table)
{
    if (table == NULL)
        return;
    for (int s = 0; table->stages != NULL && s < table->config.stages; s++)
        free(table->stages[s].entries);
    free(table->stages);
    free(table);
}

static const char letters[] = {
    [SECTION_FORWARD] = 'F', [SECTION_BACKWARD] = 'B', [SECTION_WEIGHTS] = 'W'};

static void print_row(FILE *out, const struct timetable *table, size_t *next, int step)
{
    fprintf(out, "%4d", step);
    for (int s = 0; s < table->config.stages; s++) {
        const struct timetable_stage *stage = &table->stages[s];
        char cell[16] = ".";
        while (next[s] < stage->n && stage->entries[next[s]].end <= step)
            next[s]++;
        const struct timetable_entry *entry = &stage->entries[next[s]];
        if (next[s] < stage->n && entry->start <= step)
            snprintf(cell, sizeof cell, "%c%d", letters[entry->kind], entry->microbatch);
        fprintf(out, " %7s", cell);
    }
    fputc('\n', out);
}

/* Rows at both ends: a screen or two of them are read, a million are not. */
enum { GRID_BEGIN = 80, GRID_END = 20 };

static void print_grid(FILE *out, const struct timetable *table, size_t *next)
{
    fputs("step", out);
    for (int s = 0; s < table->config.stages; s++) {
        char name[24];
        snprintf(name, sizeof name, "stage %d", s);
        fprintf(out, " %7s", name);
    }
    fputc('\n', out);
    for (int step = 0; step < table->seconds; step++) {
        if (step < GRID_BEGIN || step >= table->seconds - GRID_END)
            print_row(out, table, next, step);
        else if (step == GRID_BEGIN)
            fputs(" ...\n", out);
    }
}

char *timetable_grid(const struct timetable *table)
{
    struct timetable *steps = NULL;
    struct err err;
    char *text = NULL;
    size_t size;
    if (timetable_build(&table->config, &steps, &err) != 0)
        return NULL;
    size_t *next = calloc((size_t)table->config.stages, sizeof *next);
    FILE *out = next != NULL ? open_memstream(&text, &size) : NULL;
    if (out != NULL) {
        print_grid(out, steps, next);
        bool failed = ferror(out) != 0;
        if (fclose(out) != 0 || failed) {
            free(text);
            text = NULL;
        }
    }
    free(next);
    timetable_free(steps);
    return text;
}
