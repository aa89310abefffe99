/* check_faults.c: a device that fails at any place of a step, or hangs there: the job ends in time
 * and says which, no file has anything of that step, and the same job goes on as if nothing had
 * been.
 *
 * The faulty backend is the real one, but each of its kernels counts its runs on device 1 first.
 */
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/graph/op.h"
#include "engine/parallel/crew.h"
#include "engine/train/prepare.h"
#include "tests/engine/run_job.h"
#include "tests/lib/checks.h"

enum fault { FAULT_ERROR, FAULT_MEMORY, FAULT_HANG };

static struct {
    atomic_long runs_left; /* of kernels on device 1 before the fault; below 0: none comes */
    atomic_long runs;
    enum fault fault;
    sem_t never;
} plan;

/* A kernel's state, with the kernel that it is of, and where. */
struct wrapped {
    const struct kernel *kernel;
    void *state;
    bool counted;
};

static _Atomic(struct device *) second;

static int faulty_query(const struct node *node, const struct layout *const *in,
                        struct arena *arena, struct kernel_choice *ret_choice, struct err *err)
{
    return backend_kernel(&backend_cpu, node->op->name)->query(node, in, arena, ret_choice, err);
}

static int faulty_create(struct device *device, const struct node *node,
                         const struct kernel_choice *choice, void **ret_state, struct err *err)
{
    struct wrapped *wrapped = calloc(1, sizeof *wrapped);
    ck_assert_ptr_nonnull(wrapped);
    wrapped->kernel = backend_kernel(&backend_cpu, node->op->name);
    wrapped->counted = device == second;
    int rc = wrapped->kernel->create(device, node, choice, &wrapped->state, err);
    if (rc == 0)
        *ret_state = wrapped;
    else
        free(wrapped);
    return rc;
}

static int break_down(struct err *err)
{
    if (plan.fault == FAULT_HANG)
        sem_wait(&plan.never);
    return plan.fault == FAULT_MEMORY ? err_set(err, ERR_NOMEM, "no memory left")
                                      : err_set(err, ERR_DEVICE_FAILED, "it broke");
}

static int faulty_run(void *state, const struct kernel_args *args, struct err *err)
{
    const struct wrapped *wrapped = state;
    if (wrapped->counted) {
        atomic_fetch_add(&plan.runs, 1);
        if (atomic_fetch_sub(&plan.runs_left, 1) == 0)
            return break_down(err);
    }
    return wrapped->kernel->run(wrapped->state, args, err);
}

static void faulty_destroy(void *state)
{
    struct wrapped *wrapped = state;
    if (wrapped == NULL)
        return;
    wrapped->kernel->destroy(wrapped->state);
    free(wrapped);
}

/* Devices open side by side; the one of that name counts. */
static int faulty_open(const struct device_config *config, struct device **ret_device,
                       struct err *err)
{
    int rc = backend_cpu.device_open(config, ret_device, err);
    if (rc == 0 && strcmp(config->name, "cpu:1") == 0)
        second = *ret_device;
    return rc;
}

static struct backend faulty_backend(void)
{
    static struct kernel kernels[128];
    static const struct kernel *rows[128];
    struct backend backend = backend_cpu;
    second = NULL;
    ck_assert_uint_le(backend.n_kernels, 128);
    for (size_t i = 0; i < backend.n_kernels; i++) {
        kernels[i] = (struct kernel){backend.kernels[i]->op, faulty_query, faulty_create,
                                     faulty_run, faulty_destroy};
        rows[i] = &kernels[i];
    }
    backend.kernels = rows;
    backend.device_open = faulty_open;
    return backend;
}

struct place {
    char path[512];
};

static struct place place(const char *name, long number)
{
    struct place place;
    snprintf(place.path, sizeof place.path, "%s/%s-%ld", checks_scratch(), name, number);
    return place;
}

static const char *const patches[] = {
    "{'parallel': {'mode': 'replicate', 'devices': 2}, 'checkpoint': {'every': '1 step'}}",
    "{'parallel': {'mode': 'replicate', 'devices': 2, 'batch_norm': 'synchronized',"
    " 'shard_optimizer': true}, 'checkpoint': {'every': '1 step'}}",
    "{'parallel': {'mode': 'replicate', 'devices': 2, 'shards': 4},"
    " 'train': {'accumulate': 2}, 'checkpoint': {'every': '1 step'}}",
};

/* Device 1 fails after that many kernels' runs; -1: never. */
static void run_until(const char *patch, const char *output, long runs, enum fault fault,
                      struct run_job *ret_run)
{
    struct backend backend = faulty_backend();
    struct job *job = run_job_parse(patch);
    struct trainer_config config = run_job_config(job, 2, output);
    config.backend = &backend;
    plan.fault = fault;
    atomic_store(&plan.runs, 0);
    atomic_store(&plan.runs_left, runs);
    run_job_with(&config, 0, ret_run);
    job_free(job);
}

/* Every place of the first steps in turn. */
START_TEST(an_error_anywhere)
{
    static struct run_job run;
    const char *patch = patches[_i];
    struct place whole = place("whole", _i);
    run_until(patch, whole.path, -1, FAULT_ERROR, &run);
    ck_assert_msg(run.rc == 0, "%s", run.err.message);
    long all = atomic_load(&plan.runs);
    ck_assert_int_gt(all, 50);
    for (long n = 0; n < all; n += 1 + n / 8) {
        enum fault fault = n % 2 == 0 ? FAULT_ERROR : FAULT_MEMORY;
        struct place cut = place("cut", 1000 * _i + n);
        run_until(patch, cut.path, n, fault, &run);
        ck_assert_int_eq(run.rc, fault == FAULT_ERROR ? ERR_DEVICE_FAILED : ERR_NOMEM);
        ck_assert_msg(strncmp(run.err.message, "replica 1 on cpu:1: ", 20) == 0, "%ld: %s", n,
                      run.err.message);
        run_until(patch, cut.path, -1, fault, &run);
        ck_assert_msg(run.rc == 0, "after %ld: %s", n, run.err.message);
        run_job_same_file(whole.path, cut.path, "weights.safetensors");
    }
}
END_TEST

/* Memory that a device does not have: at each of its allocations. */

static atomic_int allocations_left;

static void *scarce_alloc(struct device *device, size_t bytes)
{
    if (device == second && atomic_fetch_sub(&allocations_left, 1) == 0)
        return NULL;
    return backend_cpu.alloc(device, bytes);
}

START_TEST(no_memory_anywhere)
{
    static struct run_job run;
    bool failed = true;
    int n = 0;
    for (; failed; n++) {
        struct backend backend = faulty_backend();
        struct job *job = run_job_parse(patches[_i]);
        struct place at = place("memory", 1000 * _i + n);
        struct trainer_config config = run_job_config(job, 2, at.path);
        backend.alloc = scarce_alloc;
        config.backend = &backend;
        atomic_store(&plan.runs_left, -1);
        atomic_store(&allocations_left, n);
        run_job_with(&config, 0, &run);
        failed = run.rc != 0;
        ck_assert(!failed || run.rc == ERR_NOMEM);
        ck_assert_msg(!failed || strstr(run.err.message, "cpu:1 has no memory") != NULL, "%s",
                      run.err.message);
        job_free(job);
    }
    ck_assert_int_gt(n, 3);
}
END_TEST

enum { HUNG = 7 };

static void on_hang(void *context, const struct err *err)
{
    const char *beginning = context;
    ck_assert_msg(strncmp(err->message, beginning, strlen(beginning)) == 0, "%s", err->message);
    _exit(HUNG);
}

/* A step stands still: the strategy gives it up, and the process ends. */
START_TEST(a_hanging_kernel)
{
    static const struct crew_patience patience = {
        .slice_ms = 10, .first = 500, .after = 20, .times = 4};
    struct backend backend = faulty_backend();
    struct job *job = run_job_parse(patches[0]);
    struct trainer_config config = run_job_config(job, 2, "unused");
    static struct prepared prepared;
    struct strategy *strategy;
    struct strategy_result result;
    struct err err = ERR_INIT;
    static float data[16 * 5];
    static int64_t targets[16];
    const struct batch batch = {16, {data}, targets};
    const struct step step = {.number = 1, .loss_divisor = 16, .lr = 0.1};
    config.backend = &backend;
    config.sink.hang = on_hang;
    config.sink.context = "replica 1 on cpu:1: no answer for ";
    ck_assert_msg(prepare(&config, &prepared, &err) == 0, "%s", err.message);
    prepared.strategy.patience = &patience;
    plan.fault = FAULT_HANG;
    atomic_store(&plan.runs_left, -1);
    ck_assert_msg(strategy_open(&prepared.strategy, &strategy, &err) == 0, "%s", err.message);
    ck_assert_int_eq(strategy_train(strategy, &batch, STEP_WHOLE, &step, &result, &err), 0);
    long a_step = atomic_load(&plan.runs);
    atomic_store(&plan.runs_left, a_step / 2);
    strategy_train(strategy, &batch, STEP_WHOLE, &step, &result, &err);
    ck_abort_msg("it came back: %s", err.message);
}
END_TEST

int main(void)
{
    checks_scratch(); /* one for all of the forked tests */
    sem_init(&plan.never, 0, 0);
    Suite *suite = suite_create("faults");
    TCase *tcase = checks_case(suite, "faults", 120);
    int n = (int)(sizeof patches / sizeof patches[0]);
    tcase_add_loop_test(tcase, an_error_anywhere, 0, n);
    tcase_add_loop_test(tcase, no_memory_anywhere, 0, n);
    tcase_add_exit_test(tcase, a_hanging_kernel, HUNG);
    int status = checks_run(suite);
    checks_scratch_remove();
    return status;
}
