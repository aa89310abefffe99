/* cuda.h: what the CUDA backend's files share: a device as its streams and its libraries' handles.
 *
 * Kernels are enqueued on `compute`, in order, what is summed with other devices on
 * `communication`. Copies from the host go through pinned memory on `in`, copies to it on `out`;
 * events order them with `compute`, so that the host waits only for what it reads. All calls on the
 * device's thread.
 */
#ifndef ENGINE_BACKEND_CUDA_CUDA_H
#define ENGINE_BACKEND_CUDA_CUDA_H

#include "engine/backend/cuda/status.h"
#include "engine/backend/cuda/step.h"
#include "engine/backend/module.h"

enum { STAGING_BYTES = 4 << 20, PRODUCT_WORKSPACE_BYTES = 32 << 20 };

/* Two halves of pinned memory: one is copied by the device while the host fills or empties the
 * other. */
struct staging {
    void *half[2];
    cudaEvent_t done[2]; /* the device has copied that half */
    int next;
};

struct device {
    int index;
    char name[32];
    cudaStream_t compute, communication, in, out;
    cudaEvent_t reached;             /* a point of one stream that another waits for */
    cudaEvent_t left[LIMIT_DEVICES]; /* by another device's index: a point of its `compute`; NULL:
                                        no copy has come from there yet */
    struct staging staging;
    cublasLtHandle_t products;
    void *product_workspace; /* one a stream: results do not depend on what else runs */
    cudnnHandle_t cudnn;
    struct device_step *step;           /* in the device's memory */
    struct device_fault *fault;         /* in the device's memory */
    struct device_fault *fault_on_host; /* pinned: as of the last read */
};

/* For struct backend. */
int cuda_device_open(const struct device_config *config, struct device **ret_device,
                     struct err *err);
void cuda_device_close(struct device *device);
void *cuda_alloc(struct device *device, size_t bytes);
void cuda_free(struct device *device, void *memory, size_t bytes);
size_t cuda_alloc_bytes(size_t bytes);
int64_t cuda_free_bytes(struct device *device);
int cuda_set_step(struct device *device, const struct step *step, struct err *err);
int cuda_wait(struct device *device, struct err *err);
int cuda_write(struct device *device, void *to, const void *from, size_t bytes, struct err *err);
int cuda_read(struct device *device, void *to, const void *from, size_t bytes, struct err *err);
int cuda_copy(struct device *device, void *to, const struct device *from_device, const void *from,
              size_t bytes, struct err *err);

/* Work that is enqueued on `later` from here on begins when what is enqueued on `earlier` is done.
 */
int cuda_order(struct device *device, cudaStream_t earlier, cudaStream_t later, const char *what,
               struct err *err);

extern const struct backend_collectives cuda_collectives;

int cuda_probe(struct gpu *ret_gpus, size_t *ret_n, struct err *err); /* struct backend_module's */

#define KERNEL(op) extern const struct kernel kernel_##op;
#include "engine/backend/cuda/kernels.def"
#undef KERNEL

#endif
