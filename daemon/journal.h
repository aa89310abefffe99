/* journal.h: what a job's worker reports, entered into its record. No I/O; the loop's thread. */
#ifndef DAEMON_JOURNAL_H
#define DAEMON_JOURNAL_H

#include "daemon/job.h"

enum {
    JOURNAL_LOSSES = 120, /* points kept of the loss curve */
};

/* What a watcher is told. */
enum journal_news {
    JOURNAL_NOTHING,
    JOURNAL_PROGRESS,
    JOURNAL_VALIDATION,
    JOURNAL_CHECKPOINT,
    JOURNAL_NEWS_COUNT
};

const char *journal_news_name(enum journal_news news); /* "progress" */

/* Enters one line of report.jsonl; `next` is the offset behind it and becomes report_offset also
 * when the line is refused: it is a user's word, and a bad one is skipped. Errors: ERR_PARSE
 * (nothing but the offset has changed), ERR_NOMEM (some of the line is entered). */
int journal_enter(struct job_record *record, const char *line, size_t size, int64_t next,
                  enum journal_news *ret_news, struct err *err);

#endif
