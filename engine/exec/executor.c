/* executor.c: see executor.h. A run walks the plan's steps, turns each buffer (space, offset) into
 * a pointer and calls the kernel; it fails at the first kernel that fails. */
#include "engine/exec/executor.h"

#include <stdlib.h>

#include "engine/graph/op.h"

struct executor {
    struct device *device;
    const struct plan *plan;
    void *state[]; /* of each step's kernel */
};

static int node_error(const struct node *node, struct err *err)
{
    if (node->layer < 0)
        return err_context(err, "%s", node->op->name);
    return err_context(err, "%s of layer \"%s\"", node->op->name, node->name);
}

int executor_new(struct device *device, const struct plan *plan, struct executor **ret_executor,
                 struct err *err)
{
    struct executor *executor =
        calloc(1, sizeof *executor + plan->n_steps * sizeof executor->state[0]);
    if (executor == NULL)
        return err_set(err, ERR_NOMEM, "out of memory");
    executor->device = device;
    executor->plan = plan;
    for (size_t i = 0; i < plan->n_steps; i++) {
        const struct plan_step *step = &plan->steps[i];
        int rc = step->kernel->create(device, step->node, &step->choice, &executor->state[i], err);
        if (rc != 0) {
            executor_free(executor);
            return node_error(step->node, err);
        }
    }
    *ret_executor = executor;
    return 0;
}

void executor_free(struct executor *executor)
{
    if (executor == NULL)
        return;
    for (size_t i = 0; i < executor->plan->n_steps; i++)
        executor->plan->steps[i].kernel->destroy(executor->state[i]);
    free(executor);
}

static void *resolve(void *const *base, const struct plan_buffer *buffer)
{
    return buffer->space == SPACE_NONE ? NULL : (char *)base[buffer->space] + buffer->offset;
}

static int run_step(struct executor *executor, size_t i, const struct run *run, struct err *err)
{
    const struct plan_step *step = &executor->plan->steps[i];
    void *in[NODE_MAX_IN], *out[NODE_MAX_OUT];
    for (int k = 0; k < step->node->n_in; k++)
        in[k] = resolve(run->base, &step->in[k]);
    for (int k = 0; k < step->node->n_out; k++)
        out[k] = resolve(run->base, &step->out[k]);
    struct kernel_args args = {.in = in,
                               .out = out,
                               .step = run->step,
                               .collective = run->collective,
                               .stages = run->stages};
    if (step->choice.scratch_bytes > 0)
        args.scratch = (char *)run->base[SPACE_ARENA] + step->scratch_offset;
    int rc = step->kernel->run(executor->state[i], &args, err);
    return rc == 0 ? 0 : node_error(step->node, err);
}

static int set_step(struct executor *executor, const struct run *run, struct err *err)
{
    const struct backend *backend = executor->plan->backend;
    return backend->set_step != NULL ? backend->set_step(executor->device, run->step, err) : 0;
}

static int wait(struct executor *executor, struct err *err)
{
    const struct backend *backend = executor->plan->backend;
    return backend->wait != NULL ? backend->wait(executor->device, err) : 0;
}

int executor_run_section(struct executor *executor, enum section section, const struct run *run,
                         struct err *err)
{
    const struct plan_steps *steps = &executor->plan->sections[section];
    int rc = set_step(executor, run, err);
    for (size_t i = steps->begin; rc == 0 && i < steps->end; i++)
        rc = run_step(executor, i, run, err);
    return rc;
}

int executor_run(struct executor *executor, const struct run *run, struct err *err)
{
    int rc = 0;
    for (int section = 0; rc == 0 && section < SECTION_COUNT; section++)
        rc = executor_run_section(executor, (enum section)section, run, err);
    return rc;
}

int executor_time(struct executor *executor, const struct run *run, double (*clock)(void),
                  double *ret_seconds, struct err *err)
{
    int rc = set_step(executor, run, err);
    for (size_t i = 0; rc == 0 && i < executor->plan->n_steps; i++) {
        double before = clock();
        rc = run_step(executor, i, run, err);
        if (rc == 0)
            rc = wait(executor, err);
        ret_seconds[i] = clock() - before;
    }
    return rc;
}
