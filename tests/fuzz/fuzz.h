/* fuzz.h: what the fuzz targets share. Each is a program of libFuzzer's
 * (https://llvm.org/docs/LibFuzzer.html) that gives one reader any bytes: it must end in a value or
 * in an error with a message, never in a crash, a leak or a sanitizer's finding. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include "proto/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A file in memory with these bytes, for readers that take a path; the same path every time. */
const char *fuzz_file(const uint8_t *data, size_t size);
/* Aborts unless the condition holds. */
void fuzz_expect(int condition);
/* Aborts unless `err` says what a failed call that returned `rc` must: its code and a message. */
void fuzz_expect_error(int rc, const struct err *err);

#endif
