/* checks.h: how every check program runs: Check's suites, TAP on standard output. */
#ifndef TESTS_LIB_CHECKS_H
#define TESTS_LIB_CHECKS_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>

/* Runs the suite, prints TAP ("ok N - …"), returns the exit status. CK_FORK=no runs without forks.
 */
int checks_run(Suite *suite);

/* Prints a skip for each of the n cases, which cannot run here, and returns the exit status. */
int checks_skip(const char *const *names, size_t n, const char *why);

/* Whether AddressSanitizer or ThreadSanitizer watches, which takes memory for itself. */
bool checks_sanitized(void);

/* One TCase of one test function list; adds it to the suite. `timeout_s` 0: Check's default. */
TCase *checks_case(Suite *suite, const char *name, double timeout_s);

/* A scratch directory of this test, made under TMPDIR and removed with all its files by
 * checks_scratch_remove, or when the test's process exits. */
const char *checks_scratch(void);
void checks_scratch_remove(void);

#endif
