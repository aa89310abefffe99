/* oom.h: makes the n-th allocation fail, to prove that every allocation is checked.
 *
 *     for (long n = 1; ; n++) {
 *         oom_arm(n);
 *         int rc = job_parse(text, size, &job, &err);
 *         if (!oom_disarm()) break;          // fewer than n allocations: all were tried
 *         ck_assert_int_eq(rc, ERR_NOMEM);
 *     }
 *
 * Programs that use it link with the flags in OOM_FLAGS (--wrap=malloc and friends), so that only
 * our own objects and jansson (through json_set_alloc_funcs) are affected.
 */
#ifndef TESTS_LIB_OOM_H
#define TESTS_LIB_OOM_H

#include <stdbool.h>

/* From now on the n-th allocation (1 is the next) of this process fails, once. */
void oom_arm(long n);
/* Stops failing; true if an allocation was failed since oom_arm. */
bool oom_disarm(void);

#endif
