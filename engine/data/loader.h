/* loader.h: the next batch, made ready on threads of its own while the devices work. */
#ifndef ENGINE_DATA_LOADER_H
#define ENGINE_DATA_LOADER_H

#include "engine/data/dataset.h"
#include "engine/parallel/strategy.h"

struct loader;

struct loader_config {
    const struct dataset *dataset; /* borrowed */
    int64_t batch_size;
    uint64_t seed;
    bool shuffle, drop_last;
    int64_t workers;     /* threads that make a batch; 0 is 1 */
    int64_t first_batch; /* batches to skip, counted from the start of epoch 0: a resume */
    int64_t n_batches;   /* ends after that many (counted from the same start) */
};

struct loader_batch {
    struct batch batch;
    int64_t epoch, index; /* from 0; index within the epoch */
    int64_t first_sample; /* index * batch_size */
};

/* What a loader of this configuration holds on the host: its batches, and the order of an epoch. */
size_t loader_bytes(const struct loader_config *config);

/* Errors: ERR_NOMEM. The thread takes no signals. */
int loader_start(const struct loader_config *config, struct loader **ret_loader, struct err *err);
/* At any time; NULL is fine. */
void loader_stop(struct loader *loader);
/* Waits for the next batch; valid until the next call. *ret_more false: all were given. Errors:
 * dataset_gather's, of the batch whose turn it is; the loader can then only be stopped. */
int loader_next(struct loader *loader, struct loader_batch *ret_batch, bool *ret_more,
                struct err *err);

#endif
