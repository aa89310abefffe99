/* Whole models as users train them against PyTorch: the cases of generate_curves.py, 20 steps each
 * of LeNet on images, an MLP on a table, an LSTM and a gpt on text, from the same weights, in the
 * same order: the loss of each step must agree to 1e-4 relative. */
#include <stdlib.h>

#include "tests/golden/golden.h"
#include "tests/lib/checks.h"

static json_t *cases;

START_TEST(curve)
{
    golden_curve(json_array_get(cases, (size_t)_i), 1e-4);
}
END_TEST

int main(void)
{
    cases = golden_cases("curves.json");
    if (cases == NULL)
        return EXIT_FAILURE;
    checks_scratch(); /* one for all of the forked tests */
    Suite *suite = suite_create("curves");
    TCase *tcase = checks_case(suite, "pytorch", 120);
    tcase_add_loop_test(tcase, curve, 0, (int)json_array_size(cases));
    int status = checks_run(suite);
    checks_scratch_remove();
    json_decref(cases);
    return status;
}
