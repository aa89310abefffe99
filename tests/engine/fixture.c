#include "tests/engine/fixture.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/rng.h"
#include "engine/ops/registry.h"

struct fixture fixture_open(const char *shape, const char *layers, const char *loss)
{
    char text[4096];
    struct fixture fixture;
    struct err err = ERR_INIT;
    int size = snprintf(text, sizeof text,
                        "{\"version\": 1, \"model\": {\"input\": {\"shape\": %s}, \"layers\": %s},"
                        "\"data\": {\"train\": {\"format\": \"random\", \"samples\": 100, "
                        "\"seed\": 1, \"classes\": 3}}, \"loss\": {\"type\": \"%s\"},"
                        "\"optimizer\": {\"type\": \"SGD\", \"lr\": 0.1, \"momentum\": 0.9},"
                        "\"train\": {\"epochs\": 1, \"batch_size\": 10, \"seed\": 1}}",
                        shape, layers, loss);
    ck_assert_int_lt(size, (int)sizeof text);
    ck_assert_msg(job_parse(text, (size_t)size, &fixture.job, &err) == 0, "%s: %s", err.path,
                  err.message);
    ck_assert_msg(model_build(fixture.job, &op_registry, &fixture.model, &err) == 0, "%s",
                  err.message);
    return fixture;
}

void fixture_close(struct fixture *fixture)
{
    model_free(fixture->model);
    job_free(fixture->job);
}

void fixture_fill(float *to, size_t n, uint64_t seed)
{
    struct rng_key key = rng_key(seed, RNG_DATA, 0);
    for (size_t i = 0; i < n; i++) {
        uint32_t word[4];
        rng_block(key, i, 0, word);
        to[i] = 2 * rng_uniform(word[0]) - 1;
    }
}
