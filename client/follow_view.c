/* follow_view.c: see follow_view.h. */
#include "client/follow_view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client/render/progress.h"
#include "client/render/summary.h"

/* A line at least so often while there is progress; one about validation at most so often. */
enum { LINE_EVERY_S = 60, VALIDATION_EVERY_S = 1 };

double follow_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* In place: events only mark the block, which follow.c has drawn in its own time. */

static int live_event(struct follow *follow, struct followed *job, const json_t *event,
                      struct err *err)
{
    (void)job;
    (void)event;
    (void)err;
    follow->dirty = true;
    return 0;
}

static int live_end(struct follow *follow, struct followed *job, struct err *err)
{
    (void)err;
    summary_draw(&follow->above, &follow->ctl->style, &job->record);
    follow->dirty = true;
    return 0;
}

static size_t count_lines(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++)
        n += *text == '\n';
    return n;
}

/* The jobs that have not ended, as many as the terminal has lines for. */
static void add_blocks(const struct follow *follow, double now, struct text *lines)
{
    const struct style *style = &follow->ctl->style;
    size_t room = style->rows - 1;
    for (size_t i = 0; i < follow->n; i++) {
        struct text block = {0};
        if (follow->jobs[i].ended)
            continue;
        progress_block(&block, style, &follow->jobs[i].record, now);
        size_t height = count_lines(text_str(&block));
        if (height <= room)
            text_add(lines, text_str(&block));
        room = height <= room ? room - height : 0;
        lines->failed |= block.failed;
        text_done(&block);
    }
}

static int live_draw(struct follow *follow, struct err *err)
{
    struct text lines = {0};
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    add_blocks(follow, (double)now.tv_sec, &lines);
    int rc = block_draw(&follow->block, &follow->ctl->style, &follow->above, &lines, err);
    text_clear(&follow->above);
    text_done(&lines);
    return rc;
}

const struct follow_view follow_view_live = {
    .event = live_event, .end = live_end, .draw = live_draw};

/* As lines: only what is new. */

static bool state_is_new(const struct followed *job)
{
    const char *reason = job->record.reason != NULL ? job->record.reason : "";
    return job->said.state != job->record.state ||
           strncmp(job->said.reason, reason, sizeof job->said.reason - 1) != 0;
}

static void say_state(struct text *text, const struct style *style, struct followed *job)
{
    if (!state_is_new(job) || record_ended(&job->record))
        return;
    progress_state_line(text, style, &job->record);
    job->said.state = job->record.state;
    snprintf(job->said.reason, sizeof job->said.reason, "%s",
             job->record.reason != NULL ? job->record.reason : "");
}

static void say_progress(struct text *text, struct followed *job)
{
    int tenth = (int)(record_fraction(&job->record) * 10);
    double now = follow_clock();
    if (job->record.step <= 0 || (tenth <= job->said.tenth && now < job->said.time + LINE_EVERY_S))
        return;
    progress_step_line(text, &job->record);
    job->said.tenth = tenth;
    job->said.time = now;
}

/* Epochs may be shorter than a blink; what the last one reached is in the summary. */
static void say_validation(struct text *text, struct followed *job)
{
    double now = follow_clock();
    if (job->said.validation > 0 && now < job->said.validation + VALIDATION_EVERY_S)
        return;
    progress_validation_line(text, &job->record);
    job->said.validation = now;
}

static int lines_event(struct follow *follow, struct followed *job, const json_t *event,
                       struct err *err)
{
    struct text text = {0};
    const struct style *style = &follow->ctl->style;
    const char *type = json_string_value(json_object_get(event, "type"));
    say_state(&text, style, job);
    if (job->record.resumed_step > 0 && !job->said.resumed) {
        progress_resumed_line(&text, &job->record);
        job->said.resumed = true;
    }
    if (type != NULL && strcmp(type, "validation") == 0)
        say_validation(&text, job);
    else if (!record_ended(&job->record))
        say_progress(&text, job);
    return ctl_print(&text, err);
}

static int lines_end(struct follow *follow, struct followed *job, struct err *err)
{
    struct text text = {0};
    summary_draw(&text, &follow->ctl->style, &job->record);
    return ctl_print(&text, err);
}

const struct follow_view follow_view_lines = {.event = lines_event, .end = lines_end};

/* As JSON: the records of the snapshot, then the events as they come. */

static int json_event(struct follow *follow, struct followed *job, const json_t *event,
                      struct err *err)
{
    (void)follow;
    return ctl_print_json(event != NULL ? event : job->json, err);
}

static int json_end(struct follow *follow, struct followed *job, struct err *err)
{
    (void)follow;
    return ctl_print_json(job->json, err);
}

const struct follow_view follow_view_json = {
    .event = json_event, .end = json_end, .other = ctl_print_json};
