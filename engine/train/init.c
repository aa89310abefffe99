/* init.c: see init.h. */
#include "engine/train/init.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/hash.h"
#include "engine/base/rng.h"

/* A rule's elements i … i + 3 from the four words of their block. */
typedef void draw_fn(const struct init_rule *rule, const uint32_t word[4], double ret[4]);

/* torch.nn.init.uniform_, to which kaiming_uniform_ and xavier_uniform_ come down. */
static void draw_uniform(const struct init_rule *rule, const uint32_t word[4], double ret[4])
{
    for (int j = 0; j < 4; j++)
        ret[j] = rule->center + (2.0 * (double)rng_uniform(word[j]) - 1.0) * rule->bound;
}

/* torch.nn.init.normal_, and kaiming_normal_, xavier_normal_. */
static void draw_normal(const struct init_rule *rule, const uint32_t word[4], double ret[4])
{
    float normal[4];
    rng_normal(word[0], word[1], normal);
    rng_normal(word[2], word[3], normal + 2);
    for (int j = 0; j < 4; j++)
        ret[j] = rule->center + (double)normal[j] * rule->bound;
}

/* Before it is divided by its norm. */
static void draw_unscaled(const struct init_rule *rule, const uint32_t word[4], double ret[4])
{
    (void)rule;
    draw_normal(&(struct init_rule){.kind = INIT_NORMAL, .bound = 1}, word, ret);
}

static draw_fn *const draws[] = {
    [INIT_ZERO] = NULL,          [INIT_ONE] = NULL,
    [INIT_CONSTANT] = NULL,      [INIT_UNIFORM] = draw_uniform,
    [INIT_NORMAL] = draw_normal, [INIT_UNIT] = draw_unscaled,
};

/* What every element is under a rule that draws nothing. */
static double constant(const struct init_rule *rule)
{
    return rule->kind == INIT_ONE ? 1 : rule->kind == INIT_CONSTANT ? rule->center : 0;
}

static void store(enum dtype dtype, void *elements, int64_t i, double number)
{
    if (dtype == DTYPE_I64)
        ((int64_t *)elements)[i] = (int64_t)number;
    else
        ((float *)elements)[i] = (float)number;
}

static void fill_drawn(const struct variable *variable, int64_t count, uint64_t seed,
                       void *ret_elements)
{
    uint64_t stream = hash64(variable->name, strlen(variable->name), 0);
    struct rng_key key = rng_key(seed, RNG_INIT, stream);
    for (int64_t i = 0; i < count; i += 4) {
        uint32_t word[4];
        double number[4];
        rng_block(key, 0, (uint64_t)i / 4, word);
        draws[variable->init.kind](&variable->init, word, number);
        for (int64_t j = 0; j < 4 && i + j < count; j++)
            store(variable->dtype, ret_elements, i + j, number[j]);
    }
}

static void divide_by_norm(float *elements, int64_t count)
{
    double squares = 0;
    for (int64_t i = 0; i < count; i++)
        squares += (double)elements[i] * (double)elements[i];
    for (int64_t i = 0; i < count; i++)
        elements[i] = (float)((double)elements[i] / sqrt(squares));
}

/* Clears the row that stays zero whatever the rule. */
static void clear_padding(const struct variable *variable, void *elements)
{
    int64_t row = shape_count(&variable->shape) / variable->shape.dim[0];
    for (int64_t i = 0; i < row; i++)
        store(variable->dtype, elements, variable->padding_row * row + i, 0);
}

void init_variable(const struct variable *variable, uint64_t seed, void *ret_elements)
{
    int64_t count = shape_count(&variable->shape);
    double number = constant(&variable->init);
    if (draws[variable->init.kind] != NULL)
        fill_drawn(variable, count, seed, ret_elements);
    else
        for (int64_t i = 0; i < count; i++)
            store(variable->dtype, ret_elements, i, number);
    if (variable->init.kind == INIT_UNIT)
        divide_by_norm(ret_elements, count);
    if (variable->padded)
        clear_padding(variable, ret_elements);
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
