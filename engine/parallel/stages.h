/* stages.h: a step in stages while it runs. Private to stages.c and stages_run.c. */
#ifndef ENGINE_PARALLEL_STAGES_H
#define ENGINE_PARALLEL_STAGES_H

#include "engine/comm/comm.h"
#include "engine/parallel/crew.h"
#include "engine/parallel/host_room.h"
#include "engine/parallel/observed.h"
#include "engine/parallel/progress.h"
#include "engine/parallel/station.h"
#include "engine/parallel/strategy_def.h"

struct stages;

/* All devices, to which each stage brings its number once. */
struct stage_sum {
    struct collective collective; /* first: the view of kernels */
    struct collective *all;
    bool brings;
};

/* A device's part of a call. */
struct runner {
    struct stages *stages;
    struct station station;
    struct collective *replicas; /* of the stage; NULL: it has one device */
    struct stage_sum sum;
    double loss_sum;
    struct strategy_times times;
};

struct stages {
    struct strategy strategy; /* first: the public view */
    struct strategy_config config;
    struct pipeline pipeline;
    struct progress *progress;
    struct comm *all;                     /* NULL with one stage */
    struct comm *replicas[LIMIT_DEVICES]; /* by stage; NULL: it has one device */
    struct crew *crew;
    struct host_room room;
    struct observed observed;
    bool buffers_differ; /* between devices of a stage, since a training step */
    int variable;        /* that read and write are about */
    void *read_to;
    const void *write_from;

    /* The batch that runs. */
    struct batch batch;
    bool training;
    enum step_part part;
    struct step step;
    struct runner runners[];
};

/* The counters of stages->progress. */
int stages_counters(int n_devices);
/* A crew_task: a device's part of the batch that runs. */
int stages_run(void *context, int device, struct err *err);

#endif
