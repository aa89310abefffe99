/* augment.h: the transforms that move pixels: crops and flips, drawn anew for every sample of every
 * epoch. PURE: what is drawn is a function of (seed, epoch, position of the sample in the epoch's
 * order), whoever makes the batch.
 */
#ifndef ENGINE_DATA_AUGMENT_H
#define ENGINE_DATA_AUGMENT_H

#include <stdbool.h>

#include "engine/data/image.h"

struct augment {
    bool crop, flip;
    int64_t padding; /* around the picture before a crop */
    uint64_t seed;
};

/* Where the window's corner lies in the picture, outside of it where that is padded. */
struct augment_window {
    int64_t top, left;
    bool flip;
};

/* `rows` and `columns`: how much larger than the window the picture is. */
struct augment_window augment_draw(const struct augment *augment, int64_t epoch, int64_t position,
                                   int64_t rows, int64_t columns);
/* The middle, not flipped. */
struct augment_window augment_middle(int64_t rows, int64_t columns);

/* Cuts the window out of an image: to[image->channels][height][width], 0 outside of it. */
void augment_cut(const struct image *image, struct augment_window window, int64_t height,
                 int64_t width, float *to);
/* The same in place, for a picture [channels, height, width] of the window's size. */
void augment_shift(struct augment_window window, int64_t channels, int64_t height, int64_t width,
                   float *value);

#endif
