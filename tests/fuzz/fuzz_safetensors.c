/* fuzz_safetensors.c: safetensors files. What is read covers the file's tensors, byte for byte. */
#include "engine/base/safetensors.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    struct safetensors *file;
    int rc = safetensors_open(fuzz_file(data, size), &file, &err);
    if (rc != 0) {
        fuzz_expect_error(rc, &err);
        return 0;
    }
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const struct safetensor *tensor = safetensors_at(file, i);
        const uint8_t *bytes = tensor->data;
        unsigned sum = 0;
        for (size_t k = 0; k < tensor->bytes; k++)
            sum += bytes[k];
        fuzz_expect(sum <= 255 * tensor->bytes);
        fuzz_expect(safetensors_find(file, tensor->name) == tensor);
    }
    safetensors_close(file);
    return 0;
}
