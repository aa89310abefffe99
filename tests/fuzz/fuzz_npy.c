/* fuzz_npy.c: .npy files. Every sample of what is read can be gathered. */
#include <stdlib.h>

#include "engine/data/npy.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    struct array array;
    int rc = npy_open(fuzz_file(data, size), &array, &err);
    if (rc != 0) {
        fuzz_expect_error(rc, &err);
        return 0;
    }
    int64_t count = array_count(&array);
    float *floats = malloc((size_t)count * sizeof *floats);
    fuzz_expect(floats != NULL && count >= 1);
    for (int64_t i = 0; i < array.shape.dim[0]; i++)
        array.type->floats(array_sample(&array, i), count, floats);
    array_fingerprint(&array, 0);
    free(floats);
    array_done(&array);
    return 0;
}
