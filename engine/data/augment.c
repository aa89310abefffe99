/* augment.c: see augment.h. */
#include "engine/data/augment.h"

#include <string.h>

#include "engine/base/rng.h"

static int64_t below(uint32_t word, int64_t n)
{
    return (int64_t)((uint64_t)word * (uint64_t)n >> 32);
}

struct augment_window augment_draw(const struct augment *augment, int64_t epoch, int64_t position,
                                   int64_t rows, int64_t columns)
{
    uint32_t word[4];
    struct augment_window window = {0};
    rng_block(rng_key(augment->seed, RNG_AUGMENT, (uint64_t)epoch), (uint64_t)position, 0, word);
    if (augment->crop) {
        window.top = below(word[0], rows + 2 * augment->padding + 1) - augment->padding;
        window.left = below(word[1], columns + 2 * augment->padding + 1) - augment->padding;
    }
    window.flip = augment->flip && word[2] >> 31 != 0;
    return window;
}

struct augment_window augment_middle(int64_t rows, int64_t columns)
{
    return (struct augment_window){rows / 2, columns / 2, false};
}

static void flip_row(float *row, int64_t width)
{
    for (int64_t x = 0; x < width / 2; x++) {
        float swap = row[x];
        row[x] = row[width - 1 - x];
        row[width - 1 - x] = swap;
    }
}

void augment_cut(const struct image *image, struct augment_window window, int64_t height,
                 int64_t width, float *to)
{
    int64_t channels = image->channels;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++) {
            int64_t from_y = window.top + y, from_x = window.left + x;
            bool inside =
                from_y >= 0 && from_y < image->height && from_x >= 0 && from_x < image->width;
            const uint8_t *pixel =
                inside ? image->pixels + (from_y * image->width + from_x) * channels : NULL;
            for (int64_t c = 0; c < channels; c++)
                to[(c * height + y) * width + x] = inside ? pixel[c] : 0;
        }
    for (int64_t row = 0; window.flip && row < channels * height; row++)
        flip_row(to + row * width, width);
}

/* One row moved by `left`, zeros where nothing was. */
static void shift_row(const float *from, int64_t left, int64_t width, float *to)
{
    int64_t kept = width - (left < 0 ? -left : left);
    if (kept <= 0) {
        memset(to, 0, (size_t)width * sizeof *to);
        return;
    }
    memmove(to + (left < 0 ? -left : 0), from + (left > 0 ? left : 0), (size_t)kept * sizeof *to);
    memset(left < 0 ? to : to + kept, 0, (size_t)(width - kept) * sizeof *to);
}

static void shift_plane(struct augment_window window, int64_t height, int64_t width, float *plane)
{
    /* Rows in the order in which none is overwritten before it is read. */
    for (int64_t i = 0; i < height; i++) {
        int64_t y = window.top >= 0 ? i : height - 1 - i, from = y + window.top;
        if (from >= 0 && from < height)
            shift_row(plane + from * width, window.left, width, plane + y * width);
        else
            memset(plane + y * width, 0, (size_t)width * sizeof *plane);
        if (window.flip)
            flip_row(plane + y * width, width);
    }
}

void augment_shift(struct augment_window window, int64_t channels, int64_t height, int64_t width,
                   float *value)
{
    for (int64_t c = 0; c < channels; c++)
        shift_plane(window, height, width, value + c * height * width);
}
