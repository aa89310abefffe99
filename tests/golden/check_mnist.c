/* LeNet on the whole MNIST against PyTorch, as check_curves.c has it on a part: where there is the
 * folder TRAIND_MNIST, by default ../shared/data/mnist beside the sources, with its gz files. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/golden/golden.h"
#include "tests/lib/checks.h"

static json_t *cases;
static char folder[PATH_MAX];

/* The document's file names, in the folder. */
static void set_path(json_t *source, const char *key)
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, json_string_value(json_object_get(source, key)));
    ck_assert_int_eq(json_object_set_new(source, key, json_string(path)), 0);
}

START_TEST(lenet_on_mnist)
{
    json_t *golden = json_array_get(cases, 0), *job = json_object_get(golden, "job");
    json_t *train = json_object_get(json_object_get(job, "data"), "train");
    set_path(train, "inputs");
    set_path(train, "targets");
    golden_curve(golden, 1e-4);
}
END_TEST

int main(void)
{
    static const char *const names[] = {"lenet_on_mnist"};
    cases = golden_cases("mnist.json");
    if (cases == NULL)
        return EXIT_FAILURE;
    const char *given = getenv("TRAIND_MNIST");
    if (realpath(given != NULL ? given : "../../../shared/data/mnist", folder) == NULL) {
        json_decref(cases);
        return checks_skip(names, 1, "no MNIST in $TRAIND_MNIST or ../shared/data/mnist");
    }
    Suite *suite = suite_create("mnist");
    tcase_add_test(checks_case(suite, "pytorch", 300), lenet_on_mnist);
    int status = checks_run(suite);
    json_decref(cases);
    return status;
}
