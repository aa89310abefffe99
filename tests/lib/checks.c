#define _GNU_SOURCE
#include "tests/lib/checks.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char scratch[4096];
static pid_t scratch_owner; /* the test's own process, not what it forks */

/* ThreadSanitizer asks for this. oneDNN is not instrumented: the sanitizer sees its atomic reads
 * through pthread's functions, but not the guards under which its globals were constructed. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:libdnnl.so\n";
}

/* The sanitizers ask for these: too large an allocation fails, as it does without them. */
static const char sanitizer_options[] = "allocator_may_return_null=1";
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return sanitizer_options;
}
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return sanitizer_options;
}

void __asan_init(void) __attribute__((weak));
void __tsan_init(void) __attribute__((weak));
bool checks_sanitized(void)
{
    return __asan_init != NULL || __tsan_init != NULL;
}

int checks_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    srunner_run_all(runner, CK_SILENT);
    int failed = srunner_ntests_failed(runner);
    int run = srunner_ntests_run(runner);
    srunner_free(runner);
    return failed == 0 && run > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int checks_skip(const char *const *names, size_t n, const char *why)
{
    for (size_t i = 0; i < n; i++)
        printf("ok %zu - %s # SKIP %s\n", i + 1, names[i], why);
    printf("1..%zu\n", n);
    return EXIT_SUCCESS;
}

TCase *checks_case(Suite *suite, const char *name, double timeout_s)
{
    TCase *tcase = tcase_create(name);
    if (timeout_s > 0)
        tcase_set_timeout(tcase, timeout_s);
    suite_add_tcase(suite, tcase);
    return tcase;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void checks_scratch_remove(void)
{
    if (scratch[0] != '\0')
        nftw(scratch, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    scratch[0] = '\0';
}

static void remove_at_exit(void)
{
    if (getpid() == scratch_owner)
        checks_scratch_remove();
}

const char *checks_scratch(void)
{
    if (scratch[0] == '\0') {
        const char *base = getenv("TMPDIR");
        snprintf(scratch, sizeof scratch, "%s/check-XXXXXX", base != NULL ? base : "/tmp");
        if (mkdtemp(scratch) == NULL)
            ck_abort_msg("mkdtemp(%s) failed", scratch);
        scratch_owner = getpid();
        atexit(remove_at_exit);
    }
    return scratch;
}
