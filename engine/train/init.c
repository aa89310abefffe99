/* init.c: see init.h. */
#include "engine/train/init.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/base/rng.h"

static void fill_one(const struct variable *variable, int64_t count, void *ret_elements)
{
    for (int64_t i = 0; i < count; i++)
        if (variable->dtype == DTYPE_I64)
            ((int64_t *)ret_elements)[i] = 1;
        else
            ((float *)ret_elements)[i] = 1;
}

/* U(-bound, bound): torch.nn.init.uniform_, to which the default kaiming_uniform_ of weights comes
 * down. */
static void fill_uniform(const struct variable *variable, int64_t count, uint64_t seed,
                         float *ret_elements)
{
    uint64_t stream = hash64(variable->name, strlen(variable->name), 0);
    struct rng_key key = rng_key(seed, RNG_INIT, stream);
    double bound = variable->init.bound;
    for (int64_t i = 0; i < count; i += 4) {
        uint32_t word[4];
        rng_block(key, 0, (uint64_t)i / 4, word);
        for (int64_t j = 0; j < 4 && i + j < count; j++)
            ret_elements[i + j] = (float)((2.0 * rng_uniform(word[j]) - 1.0) * bound);
    }
}

void init_variable(const struct variable *variable, uint64_t seed, void *ret_elements)
{
    int64_t count = shape_count(&variable->shape);
    assert(variable->dtype == DTYPE_F32 || variable->init.kind != INIT_UNIFORM);
    memset(ret_elements, 0, (size_t)count * dtype_size(variable->dtype));
    if (variable->init.kind == INIT_ONE)
        fill_one(variable, count, ret_elements);
    else if (variable->init.kind == INIT_UNIFORM)
        fill_uniform(variable, count, seed, ret_elements);
}

int init_all(struct strategy *strategy, const struct model *model, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < model->n_variables && rc == 0; i++) {
        const struct variable *variable = &model->variables[i];
        void *elements =
            malloc((size_t)shape_count(&variable->shape) * dtype_size(variable->dtype) + 1);
        if (elements == NULL)
            return err_set(err, ERR_NOMEM, "no memory to initialise %s", variable->name);
        init_variable(variable, (uint64_t)model->job->model.init.seed, elements);
        rc = strategy_write(strategy, (int)i, elements, err);
        free(elements);
    }
    return rc;
}
