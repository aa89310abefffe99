/* placement.c: see placement.h. */
#include "engine/parallel/placement.h"

int placement_build(const struct job *job, int n_devices, struct placement *ret_placement,
                    struct err *err)
{
    const struct job_parallel *parallel = &job->parallel;
    struct placement placement = {.n_pipelines = (int)parallel->replicas};
    size_t first[LIMIT_DEVICES];
    int n = (int)job_stage_begins(job, first), per_pipeline = n_devices / placement.n_pipelines;
    placement.split.n_stages = n;
    for (int s = 0; s < n; s++) {
        int devices = parallel->n_stages > 0 ? (int)parallel->stages[s].n_devices : 1;
        placement.split.first_layer[s] = (int)first[s];
        placement.first_worker[s + 1] = placement.first_worker[s] + devices;
    }
    placement.split.first_layer[n] = (int)job->model.n_layers;
    if (n == 0 || placement.n_pipelines * placement.first_worker[n] != n_devices)
        return err_at(err, ERR_JOB_INVALID, "/parallel/devices",
                      "%d devices a pipeline are not those of %d stages", per_pipeline, n);
    *ret_placement = placement;
    return 0;
}

int placement_workers(const struct placement *placement, int stage)
{
    return placement->first_worker[stage + 1] - placement->first_worker[stage];
}

struct worker placement_worker(const struct placement *placement, int device)
{
    int size = placement->first_worker[placement->split.n_stages];
    int within = device % size, stage = 0;
    while (placement->first_worker[stage + 1] <= within)
        stage++;
    return (struct worker){
        .pipeline = device / size,
        .stage = stage,
        .part = within - placement->first_worker[stage],
    };
}

int placement_device(const struct placement *placement, struct worker worker)
{
    return worker.pipeline * placement->first_worker[placement->split.n_stages] +
           placement->first_worker[worker.stage] + worker.part;
}
