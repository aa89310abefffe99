/* units.c: see units.h. */
#include "client/render/units.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const char *units_duration(double seconds, char buf[static UNITS_SIZE])
{
    /* Two neighbouring units: one of the smaller in seconds, and how many make one of the larger.
     */
    static const struct {
        double below;
        int small_s, per;
        char large, small;
    } pairs[] = {{3599.5, 1, 60, 'm', 's'}, {86370, 60, 60, 'h', 'm'}, {1e12, 3600, 24, 'd', 'h'}};
    if (!isfinite(seconds) || seconds < 0 || seconds >= 1e12)
        return strcpy(buf, "-");
    if (seconds < 59.5) {
        snprintf(buf, UNITS_SIZE, "%.*fs", seconds < 9.95 && seconds != floor(seconds), seconds);
        return buf;
    }
    size_t i = 0;
    while (seconds >= pairs[i].below)
        i++;
    int64_t n = (int64_t)(seconds / pairs[i].small_s + 0.5);
    snprintf(buf, UNITS_SIZE, "%" PRId64 "%c%02" PRId64 "%c", n / pairs[i].per, pairs[i].large,
             n % pairs[i].per, pairs[i].small);
    return buf;
}

const char *units_bytes(int64_t bytes, char buf[static UNITS_SIZE])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double x = bytes < 0 ? 0 : (double)bytes;
    size_t i = 0;
    while (i < 5 && x >= 1023.5) {
        x /= 1024;
        i++;
    }
    snprintf(buf, UNITS_SIZE, "%.*f %s", i > 0 && x < 9.95, x, units[i]);
    return buf;
}

const char *units_si(double x, char buf[static UNITS_SIZE])
{
    static const char *const units[] = {"", " k", " M", " G", " T", " P", " E"};
    if (!isfinite(x) || x < 0)
        return strcpy(buf, "-");
    size_t i = 0;
    while (i < 6 && x >= 999.5) {
        x /= 1000;
        i++;
    }
    snprintf(buf, UNITS_SIZE, "%.*f%s", i == 0 || x >= 99.95 ? 0 : x >= 9.995 ? 1 : 2, x, units[i]);
    return buf;
}

const char *units_number(double x, char buf[static UNITS_SIZE])
{
    double size = fabs(x);
    if (!isfinite(x) || size < 1e-4 || size >= 1e6) {
        snprintf(buf, UNITS_SIZE, x == 0 ? "%.0f" : "%.3e", x);
        return buf;
    }
    int decimals = 3 - (int)floor(log10(size));
    snprintf(buf, UNITS_SIZE, "%.*f", decimals > 0 ? decimals : 0, x);
    return buf;
}

const char *units_count(int64_t n, char buf[static UNITS_SIZE])
{
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%" PRId64, n);
    size_t used = 0;
    for (int i = 0; i < length; i++) {
        buf[used++] = digits[i];
        int left = length - 1 - i;
        if (left > 0 && left % 3 == 0 && digits[i] != '-')
            buf[used++] = ',';
    }
    buf[used] = '\0';
    return buf;
}

const char *units_time(double seconds_since_1970, char buf[static UNITS_SIZE])
{
    struct tm tm;
    if (!isfinite(seconds_since_1970) || fabs(seconds_since_1970) > 1e11)
        return strcpy(buf, "-");
    time_t t = (time_t)seconds_since_1970;
    if (localtime_r(&t, &tm) == NULL || strftime(buf, UNITS_SIZE, "%Y-%m-%d %H:%M:%S", &tm) == 0)
        strcpy(buf, "-");
    return buf;
}
