/* job_parallel.h: the part of `struct job` (job.h) that says on what devices it runs. */
#ifndef PROTO_JOB_PARALLEL_H
#define PROTO_JOB_PARALLEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum parallel_mode { PARALLEL_SINGLE, PARALLEL_REPLICATE, PARALLEL_STAGES };
enum device_type { DEVICE_DEFAULT, DEVICE_CPU, DEVICE_CUDA };

enum batch_norm_statistics { STATISTICS_PER_REPLICA, STATISTICS_SYNCHRONIZED };

enum pipeline_schedule {
    PIPELINE_NONE,       /* one micro-batch: plain model parallelism */
    PIPELINE_GPIPE,      /* all forward, then all backward: Huang et al. 2019 */
    PIPELINE_1F1B,       /* one forward, one backward: Narayanan et al. 2021 */
    PIPELINE_ZERO_BUBBLE /* ZB-H1: Qi et al. 2023 */
};

/* "1f1b", and so on. */
const char *pipeline_schedule_name(enum pipeline_schedule schedule);

enum { MICROBATCHES_AUTO = -1 }; /* chosen by measurement */

/* A stage holds the layers from `begin` to the next one's. */
struct job_stage {
    char *begin;    /* a layer, or what its name starts with before a dot: "layer3" */
    char **devices; /* several: each takes its chunk of a micro-batch */
    size_t n_devices;
};

struct job_parallel {
    enum parallel_mode mode;
    int64_t n_devices; /* the count asked for; 0: "all" */
    char **devices;    /* the list in its order ("cpu:1", "cpu"), n_devices long, or NULL; those of
                          `stages` in a row where that is given */
    enum device_type device_type;
    /* Of replicate. */
    char *output_device; /* where outputs are gathered, one of `devices`; NULL: the first */
    enum batch_norm_statistics batch_norm;
    bool shard_optimizer; /* each replica has and updates its part of the optimizer's state */
    int64_t shards;       /* what a batch is cut in, whatever the devices; 0: one each */
    /* Of stages; at most one of split and stages, of split_size and microbatches, is given. */
    char **split; /* where the second and later stages begin, as job_stage's; NULL: by balance */
    size_t n_split;
    bool split_chosen, microbatches_chosen; /* not the document's, see engine/parallel/choose.h */
    struct job_stage *stages;
    size_t n_stages;
    int64_t split_size;   /* samples in a micro-batch, as Tensor.split; 0: not given */
    int64_t microbatches; /* as torch.chunk; MICROBATCHES_AUTO; 0: not given */
    enum pipeline_schedule schedule;
    int64_t replicas; /* pipelines; divides n_devices */
};

#endif
