/* sparkline.c: see sparkline.h. */
#include "client/render/sparkline.h"

#include <math.h>

void sparkline_draw(struct text *text, const struct style *style, const double *numbers, size_t n)
{
    static const char *const eighths[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const heights[] = {"_", ".", "-", "'"};
    const char *const *cells = style->utf8 ? eighths : heights;
    double levels = style->utf8 ? 8 : 4, low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < n; i++)
        if (isfinite(numbers[i])) {
            low = fmin(low, numbers[i]);
            high = fmax(high, numbers[i]);
        }
    for (size_t i = 0; i < n; i++) {
        double part = high > low ? (numbers[i] - low) / (high - low) : 0;
        if (isfinite(numbers[i]))
            text_add(text, cells[(size_t)fmin(part * levels, levels - 1)]);
        else
            text_add(text, " ");
    }
}
