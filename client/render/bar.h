/* bar.h: a progress bar. Pure. */
#ifndef CLIENT_RENDER_BAR_H
#define CLIENT_RENDER_BAR_H

#include "client/render/style.h"
#include "client/render/text.h"

/* Adds a bar of `cells` columns filled to `fraction` (0 to 1; what is outside is clamped, NaN is
 * 0). In UTF-8 the last cell is filled by eighths; in ASCII it is "[###-----]". */
void bar_draw(struct text *text, const struct style *style, double fraction, size_t cells);

#endif
