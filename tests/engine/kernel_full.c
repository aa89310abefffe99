/* kernel_full.c: this program runs kernels in F32. */
#include "tests/engine/kernel_test.h"

const bool kernel_test_low = false;
