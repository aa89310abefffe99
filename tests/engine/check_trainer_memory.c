/* check_trainer_memory.c: a whole job with each of the engine's own allocations failing in turn.
 *
 * Its libraries' are left alone: jansson's lexer loses text where it has no memory (lex_save), and
 * oneDNN's are not ours to fail.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/engine/run_job.h"
#include "tests/lib/checks.h"
#include "tests/lib/oom.h"

void *__real_malloc(size_t size);

enum { TURNS = 4 }; /* each tries every fourth allocation */

static struct run_job run;

START_TEST(every_allocation_is_checked)
{
    char output[512], document[600];
    long n = 1 + _i;
    for (;; n += TURNS) {
        struct stat st;
        snprintf(output, sizeof output, "%s/out-%ld", checks_scratch(), n);
        struct job *job = run_job_parse("{'checkpoint': {'every': '3 steps'}}");
        oom_arm(n);
        json_set_alloc_funcs(__real_malloc, free);
        run_job_parsed(job, output, 2, 0, &run);
        bool failed = oom_disarm();
        job_free(job);
        if (!failed)
            break;
        ck_assert_msg(run.rc == ERR_NOMEM, "allocation %ld: %s: %s", n, err_name(run.rc),
                      run.err.message);
        snprintf(document, sizeof document, "%s/job.json", output);
        if (stat(document, &st) < 0) /* it never began */
            ck_assert_msg(stat(output, &st) < 0, "allocation %ld left %s", n, output);
    }
    ck_assert_int_eq(run.rc, 0);
    ck_assert_int_gt(n, 50);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trainer_memory");
    TCase *tcase = checks_case(suite, "trainer_memory", 120);
    tcase_add_checked_fixture(tcase, NULL, checks_scratch_remove);
    tcase_add_loop_test(tcase, every_allocation_is_checked, 0, TURNS);
    return checks_run(suite);
}
