/* kernel_low.c: this program runs kernels in BF16 where their ops can. */
#include "tests/engine/kernel_test.h"

const bool kernel_test_low = true;
