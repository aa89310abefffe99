/* job_duration.c: the kind of field that is a length of time: "2h", "30m", "1-12:00:00". */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/job_kinds.h"
#include "proto/job_queue.h"

enum { MINUTE = 60, HOUR = 3600, DAY = 86400, UNIT_DIGITS = 5 /* as nanoseconds it fits */ };

static const struct unit {
    char letter;
    int64_t seconds;
} units[] = {{'d', DAY}, {'h', HOUR}, {'m', MINUTE}, {'s', 1}};
enum { N_UNITS = sizeof units / sizeof units[0] };

static void duration_expect(const struct field *field, char *buf, size_t size)
{
    (void)field;
    snprintf(buf, size,
             "a length of time such as \"2h\", \"30m\" or \"1-12:00:00\" (days-hours:minutes:"
             "seconds)");
}

/* Up to `most` digits at *text, which is left behind them; -1: there are none, or more. */
static int64_t read_digits(const char **text, size_t most)
{
    int64_t n = 0;
    size_t digits = strspn(*text, "0123456789");
    if (digits == 0 || digits > most)
        return -1;
    for (size_t i = 0; i < digits; i++)
        n = 10 * n + ((*text)[i] - '0');
    *text += digits;
    return n;
}

/* "N" and a unit's letter, without a leading zero. */
static int64_t read_unit(const char *text)
{
    int64_t n = *text == '0' ? -1 : read_digits(&text, UNIT_DIGITS);
    for (size_t i = 0; n > 0 && i < N_UNITS; i++)
        if (text[0] == units[i].letter && text[1] == '\0')
            return n * units[i].seconds;
    return -1;
}

/* "DAYS-HOURS:MM:SS", or without days and then with any number of hours. */
static int64_t read_clock(const char *text)
{
    int64_t days = 0, part[3];
    const char *dash = strchr(text, '-');
    if (dash != NULL && ((days = read_digits(&text, 4)) < 0 || text++ != dash))
        return -1;
    for (int i = 0; i < 3; i++) {
        const char *begin = text;
        part[i] = read_digits(&text, i == 0 ? 3 : 2);
        if (part[i] < 0 || (i > 0 && (text - begin != 2 || part[i] >= 60)) ||
            *text != (i < 2 ? ':' : '\0'))
            return -1;
        text += i < 2;
    }
    if (dash != NULL && part[0] >= 24)
        return -1;
    return days * DAY + part[0] * HOUR + part[1] * MINUTE + part[2];
}

int64_t job_duration_read(const char *text)
{
    int64_t seconds = strchr(text, ':') != NULL ? read_clock(text) : read_unit(text);
    return seconds > 0 ? seconds : -1;
}

static int duration_parse(struct job_parser *parser, const struct field *field, const json_t *value,
                          void *base)
{
    const char *text = json_string_value(value);
    int64_t seconds = text != NULL ? job_duration_read(text) : -1;
    if (seconds < 0)
        return job_parser_refuse(parser, field, value);
    *(int64_t *)job_at(field, base) = seconds;
    return 0;
}

static bool duration_given(const struct field *field, const void *base)
{
    return *(const int64_t *)job_in(field, base) > 0;
}

const char *job_duration_format(int64_t seconds, char buf[static JOB_DURATION_SIZE])
{
    const struct unit *unit = units;
    while (seconds % unit->seconds != 0)
        unit++;
    snprintf(buf, JOB_DURATION_SIZE, "%" PRId64 "%c", seconds / unit->seconds, unit->letter);
    return buf;
}

/* The largest unit that needs no fraction, or the clock where that has too many digits. */
static json_t *duration_dump(const struct field *field, const void *base)
{
    int64_t seconds = *(const int64_t *)job_in(field, base);
    char buf[JOB_DURATION_SIZE];
    if (strlen(job_duration_format(seconds, buf)) <= UNIT_DIGITS + 1)
        return json_string(buf);
    return json_sprintf("%" PRId64 "-%02" PRId64 ":%02" PRId64 ":%02" PRId64, seconds / DAY,
                        seconds % DAY / HOUR, seconds % HOUR / MINUTE, seconds % MINUTE);
}

const struct field_type job_type_duration = {duration_expect, duration_parse, duration_given,
                                             duration_dump, NULL};
