/* backend.h: a kind of device, and the kernels that run ops on it.
 *
 * A device is anything with memory and an ordered queue of work. A backend has one table of
 * kernels, a row an op: query → create → run → destroy. "Supported" is query() == 0. query touches
 * no device, so a job can be planned anywhere; it names the layouts it wants and the planner
 * reorders where they differ. run allocates nothing and creates nothing.
 *
 * Threads: query, create, run and destroy of a device's kernels are called on that device's thread
 * (the team's size is part of what a kernel is made for); a planner sets team_set_size first.
 */
#ifndef ENGINE_BACKEND_BACKEND_H
#define ENGINE_BACKEND_BACKEND_H

#include "engine/backend/collective.h"
#include "engine/base/arena.h"
#include "engine/graph/graph.h"

struct layout; /* how a tensor lies in memory; the backend's own, immutable, in an arena */
struct device; /* the backend's own */

/* What of a step is neither tensor nor attribute. */
struct step {
    uint64_t seed;         /* train.seed */
    int64_t number;        /* the optimizer step, from 1 */
    int64_t epoch;         /* from 0 */
    int64_t first_sample;  /* position in the epoch's order of this chunk's first sample */
    double loss_divisor;   /* of the whole batch, see graph_loss_divisor */
    double gradient_scale; /* of a window of several batches: 1 / what their mean divides by */
    double lr;
    bool record; /* the statistics of what train.record names are wanted */
};

struct kernel_choice {
    const struct layout *in[NODE_MAX_IN];   /* as the kernel wants them */
    const struct layout *out[NODE_MAX_OUT]; /* as it leaves them */
    size_t scratch_bytes;
    int inplace[NODE_MAX_OUT]; /* out[i] may take the memory of in[inplace[i]] if that dies here; -1
                                */
    char impl[64];             /* the library's implementation: "jit:avx512_core", "own" */
};

struct kernel_args {
    void *const *in;
    void *const *out;
    void *scratch;
    const struct step *step;
    struct collective *collective; /* NULL with one replica */
    struct collective *stages;     /* NULL with one stage; every stage takes part */
};

struct kernel {
    const char *op;
    /* in[i]: the layout in which input i lies now (NULL: absent). Variables (parameters, gradients
     * …) and data are always plain. A `reorder` finds the layout that its output shall have in
     * in[1]. ret_choice is filled whole; its layouts are in `arena`, or those of `in`. Errors:
     * ERR_DEVICE_FAILED: this backend cannot run that node, or only with a reference
     * implementation, and says why. */
    int (*query)(const struct node *node, const struct layout *const *in, struct arena *arena,
                 struct kernel_choice *ret_choice, struct err *err);
    /* `node` and `choice` are borrowed and outlive the kernel. */
    int (*create)(struct device *device, const struct node *node,
                  const struct kernel_choice *choice, void **ret_state, struct err *err);
    int (*run)(void *state, const struct kernel_args *args, struct err *err);
    void (*destroy)(void *state); /* NULL is fine */
};

struct device_config {
    const char *name; /* "cpu:0" */
    int index;        /* among the devices of its kind */
    const int *cores; /* CPU: the cores it may use */
    size_t n_cores;
    int n_threads;
    int64_t memory_bytes; /* that it has, alone or with others; 0: not known */
};

struct backend {
    const char *name;   /* "cpu" */
    bool shares_memory; /* all devices have one: what a config says of it is the whole */
    const struct kernel *const *kernels;
    size_t n_kernels;

    /* Whether this machine's devices compute in it. Errors: ERR_JOB_UNSUPPORTED at
     * /train/precision, saying what they lack. */
    int (*check_precision)(enum precision precision, struct err *err);

    const struct layout *(*layout_plain)(struct arena *arena, const struct shape *shape,
                                         enum dtype dtype); /* NULL without memory */
    size_t (*layout_bytes)(const struct layout *layout);
    bool (*layout_equal)(const struct layout *a, const struct layout *b);
    const char *(*layout_name)(const struct layout *layout, char buf[static 64]);

    int (*device_open)(const struct device_config *config, struct device **ret_device,
                       struct err *err);
    void (*device_close)(struct device *device);
    /* Zeroed, aligned to a cache line or more. NULL without memory. */
    void *(*alloc)(struct device *device, size_t bytes);
    void (*free)(struct device *device, void *memory, size_t bytes);
    /* What alloc takes of the device's memory for so many: whole pages. */
    size_t (*alloc_bytes)(size_t bytes);
    int64_t (*free_bytes)(
        struct device *device); /* of its memory, that nobody has; NULL: not known */
    /* Between host and device; done on return. */
    int (*write)(struct device *device, void *to, const void *from, size_t bytes, struct err *err);
    int (*read)(struct device *device, void *to, const void *from, size_t bytes, struct err *err);
    /* From another device of this backend, or the same; done on return. On `device`'s thread. */
    int (*copy)(struct device *device, void *to, const struct device *from_device, const void *from,
                size_t bytes, struct err *err);

    /* Where `run` only enqueues; NULL: what it is given is done on return, and kernels read
     * args->step. What kernels that are enqueued from here on find in the step: */
    int (*set_step)(struct device *device, const struct step *step, struct err *err);
    /* Returns when all that was enqueued is done. Errors: those of that work. */
    int (*wait)(struct device *device, struct err *err);
    const struct backend_collectives *collectives; /* NULL: the host can read all devices' memory */
};

const struct kernel *backend_kernel(const struct backend *backend, const char *op); /* or NULL */

extern const struct backend backend_cpu;

#endif
