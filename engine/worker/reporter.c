/* reporter.c: see reporter.h. Nobody must stop training because nobody reads: a report that cannot
 * be written ends the reports, not the job. */
#include "engine/worker/reporter.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PROGRESS_INTERVAL_NS = 100 * 1000 * 1000 };

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int parse_fd(const char *text, int *ret_fd, struct err *err)
{
    char *end;
    errno = 0;
    long fd = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || fd < 0 || fd > 1 << 20 ||
        fcntl((int)fd, F_SETFD, FD_CLOEXEC) != 0)
        return err_set(err, ERR_USAGE, "TRAIND_REPORT_FD: \"%.64s\" is not an open descriptor",
                       text);
    *ret_fd = (int)fd;
    return 0;
}

int reporter_open(struct reporter *reporter, const char *document, bool json, struct err *err)
{
    *reporter = (struct reporter){.fd = -1, .text = stdout, .document = document};
    const char *fd = getenv("TRAIND_REPORT_FD");
    if (fd != NULL) {
        int rc = parse_fd(fd, &reporter->fd, err);
        reporter->owned = rc == 0;
        return rc;
    }
    if (json) {
        reporter->fd = STDOUT_FILENO;
        reporter->text = stderr;
    }
    return 0;
}

static bool write_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, text, size);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0) {
            text += n;
            size -= (size_t)n;
        }
    }
    return true;
}

static void close_reports(struct reporter *reporter)
{
    if (reporter->owned && reporter->fd >= 0)
        close(reporter->fd);
    reporter->fd = -1;
}

static void send(struct reporter *reporter, const struct report *report)
{
    if (reporter->fd < 0)
        return;
    char *line = report_format(report);
    size_t size = line != NULL ? strlen(line) : 0;
    if (line == NULL) {
        fprintf(stderr, "traind-worker: out of memory: a report is lost\n");
        return;
    }
    line[size] = '\n'; /* one write a line where the pipe has room */
    if (!write_all(reporter->fd, line, size + 1)) {
        fprintf(stderr, "traind-worker: cannot write reports any more: %s\n", strerror(errno));
        close_reports(reporter);
    }
    free(line);
}

static void print_seconds(FILE *text, double seconds)
{
    if (!(seconds >= 0) || seconds > 1e9)
        return;
    int64_t s = (int64_t)(seconds + 0.5);
    if (s >= 3600)
        fprintf(text, "  %lld:%02d:%02d left", (long long)(s / 3600), (int)(s / 60 % 60),
                (int)(s % 60));
    else
        fprintf(text, "  %d:%02d left", (int)(s / 60), (int)(s % 60));
}

static void print_started(struct reporter *reporter, const struct report *report)
{
    reporter->steps = report->steps;
    reporter->epochs = report->epochs;
    fprintf(reporter->text, "%lld step%s, output %s\n", (long long)report->steps,
            report->steps == 1 ? "" : "s", report->path);
    if (report->resumed_step > 0)
        fprintf(reporter->text, "resumed after step %lld\n", (long long)report->resumed_step);
}

static void print_progress(struct reporter *reporter, const struct report *report)
{
    fprintf(reporter->text, "step %lld/%lld  epoch %lld", (long long)report->step,
            (long long)reporter->steps, (long long)report->epoch);
    if (reporter->epochs > 0)
        fprintf(reporter->text, "/%lld", (long long)reporter->epochs);
    fprintf(reporter->text, "  loss %.6g", report->loss);
    if (isfinite(report->samples_per_second))
        fprintf(reporter->text, "  %.0f samples/s", report->samples_per_second);
    print_seconds(reporter->text, report->seconds_left);
    fprintf(reporter->text, "\n");
}

static void print_scores(FILE *text, const struct report *report)
{
    if (!isnan(report->validation_loss))
        fprintf(text, "  validation loss %.6g", report->validation_loss);
    if (!isnan(report->accuracy))
        fprintf(text, "  accuracy %.4f", report->accuracy);
    fprintf(text, "\n");
}

static void print_validation(struct reporter *reporter, const struct report *report)
{
    fprintf(reporter->text, "step %lld", (long long)report->step);
    print_scores(reporter->text, report);
}

static void print_checkpoint(struct reporter *reporter, const struct report *report)
{
    fprintf(reporter->text, "step %lld  checkpoint %s\n", (long long)report->step, report->path);
}

static void print_done(struct reporter *reporter, const struct report *report)
{
    fprintf(reporter->text, "done: step %lld  weights %s", (long long)report->step, report->path);
    print_scores(reporter->text, report);
}

static void print_nothing(struct reporter *reporter, const struct report *report)
{
    (void)reporter;
    (void)report;
}

static void (*const print[REPORT_TYPE_COUNT])(struct reporter *, const struct report *) = {
    [REPORT_STARTED] = print_started,
    [REPORT_PROGRESS] = print_progress,
    [REPORT_VALIDATION] = print_validation,
    [REPORT_CHECKPOINT] = print_checkpoint,
    [REPORT_DONE] = print_done,
    [REPORT_FAILED] = print_nothing,
};

static void pass_on(struct reporter *reporter, const struct report *report)
{
    send(reporter, report);
    print[report->type](reporter, report);
    fflush(reporter->text);
}

static void release_held(struct reporter *reporter)
{
    if (reporter->held)
        pass_on(reporter, &reporter->latest);
    reporter->held = false;
}

void reporter_report(struct reporter *reporter, const struct report *report)
{
    if (report->type != REPORT_PROGRESS) {
        release_held(reporter);
        pass_on(reporter, report);
        return;
    }
    int64_t now = now_ns();
    reporter->held = now < reporter->next_ns;
    if (reporter->held) {
        reporter->latest = *report;
        return;
    }
    reporter->next_ns = now + PROGRESS_INTERVAL_NS;
    pass_on(reporter, report);
}

void reporter_say(struct reporter *reporter, const char *line)
{
    fprintf(reporter->text, "%s\n", line);
    fflush(reporter->text);
}

void reporter_fail(struct reporter *reporter, const struct err *failure)
{
    const char *document = reporter->document;
    struct report report = report_blank(REPORT_FAILED);
    report.err = *failure;
    reporter_report(reporter, &report);
    fprintf(stderr, "traind-worker: %s%s%s%s%s\n", document != NULL ? document : "",
            document != NULL ? ": " : "", failure->path, failure->path[0] != '\0' ? ": " : "",
            failure->message);
}

void reporter_close(struct reporter *reporter)
{
    release_held(reporter);
    close_reports(reporter);
}
