/* bar.c: see bar.h. */
#include "client/render/bar.h"

#include <math.h>

void bar_draw(struct text *text, const struct style *style, double fraction, size_t cells)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    fraction = isnan(fraction) ? 0 : fmin(fmax(fraction, 0), 1);
    if (!style->utf8) {
        size_t inner = cells > 2 ? cells - 2 : 0;
        size_t full = (size_t)(fraction * (double)inner);
        text_add(text, "[");
        text_repeat(text, "#", full);
        text_repeat(text, "-", inner - full);
        text_add(text, "]");
        return;
    }
    size_t filled = (size_t)(fraction * (double)cells * 8); /* in eighths of a cell */
    size_t full = filled / 8, part = filled % 8;
    text_repeat(text, "█", full);
    text_add(text, eighths[part]);
    text_repeat(text, "░", cells - full - (part > 0));
}
