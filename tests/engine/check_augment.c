/* check_augment.c: what is drawn is a function of its address, and moves pixels as it says. */
#include <string.h>

#include "engine/data/augment.h"
#include "tests/lib/checks.h"

static const struct augment cropped = {.crop = true, .flip = true, .padding = 2, .seed = 7};

START_TEST(draws_are_a_function_of_epoch_and_position)
{
    int tops[7] = {0}, flips = 0, same = 0;
    enum { N = 1400 };
    for (int64_t i = 0; i < N; i++) {
        struct augment_window a = augment_draw(&cropped, 3, i, 2, 0);
        struct augment_window again = augment_draw(&cropped, 3, i, 2, 0);
        struct augment_window other = augment_draw(&cropped, 4, i, 2, 0);
        ck_assert(a.top == again.top && a.left == again.left && a.flip == again.flip);
        ck_assert(a.top >= -2 && a.top <= 4 && a.left >= -2 && a.left <= 2);
        same += a.top == other.top && a.left == other.left && a.flip == other.flip;
        tops[a.top + 2]++;
        flips += a.flip;
    }
    /* Within four standard errors of uniform. */
    for (int i = 0; i < 7; i++)
        ck_assert_msg(tops[i] > 148 && tops[i] < 252, "%d: %d", i, tops[i]);
    ck_assert(flips > N / 2 - 75 && flips < N / 2 + 75);
    ck_assert_int_lt(same, N / 20);
}
END_TEST

START_TEST(nothing_is_drawn_that_was_not_asked_for)
{
    const struct augment none = {.seed = 7}, flip = {.flip = true, .seed = 7};
    for (int64_t i = 0; i < 100; i++) {
        struct augment_window window = augment_draw(&none, 0, i, 5, 5);
        ck_assert(window.top == 0 && window.left == 0 && !window.flip);
        window = augment_draw(&flip, 0, i, 5, 5);
        ck_assert(window.top == 0 && window.left == 0);
    }
}
END_TEST

/* By hand: element [c][y][x] is that at (y + top, x + left) or 0, x counted from the right where it
 * is flipped. */
static float wanted_at(const float *from, struct augment_window window, int h, int w, int c, int y,
                       int x)
{
    int64_t from_y = y + window.top, from_x = (window.flip ? w - 1 - x : x) + window.left;
    bool inside = from_y >= 0 && from_y < h && from_x >= 0 && from_x < w;
    return inside ? from[(c * h + from_y) * w + from_x] : 0;
}

START_TEST(shift_and_cut_agree_with_the_definition)
{
    enum { C = 3, H = 4, W = 5 };
    uint8_t pixels[H * W * C];
    float from[C * H * W], shifted[C * H * W], cut[C * H * W];
    struct image image = {H, W, C, pixels};
    for (int c = 0; c < C; c++)
        for (int i = 0; i < H * W; i++) {
            from[c * H * W + i] = (float)(1 + c * H * W + i);
            pixels[i * C + c] = (uint8_t)(1 + c * H * W + i);
        }
    for (int64_t top = -5; top <= 5; top++)
        for (int64_t left = -6; left <= 6; left++)
            for (int flip = 0; flip <= 1; flip++) {
                struct augment_window window = {top, left, flip};
                memcpy(shifted, from, sizeof from);
                augment_shift(window, C, H, W, shifted);
                augment_cut(&image, window, H, W, cut);
                for (int i = 0; i < C * H * W; i++) {
                    float wanted = wanted_at(from, window, H, W, i / (H * W), i / W % H, i % W);
                    ck_assert_float_eq(shifted[i], wanted);
                    ck_assert_float_eq(cut[i], wanted);
                }
            }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("augment");
    TCase *tcase = checks_case(suite, "augment", 20);
    tcase_add_test(tcase, draws_are_a_function_of_epoch_and_position);
    tcase_add_test(tcase, nothing_is_drawn_that_was_not_asked_for);
    tcase_add_test(tcase, shift_and_cut_agree_with_the_definition);
    return checks_run(suite);
}
