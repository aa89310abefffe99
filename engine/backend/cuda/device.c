/* device.c: a GPU as a device: opened, its memory, and the step that its kernels read. */
#include "engine/backend/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/backend/cuda/launchers.h"

static int open_streams(struct device *device, struct err *err)
{
    cudaStream_t *const streams[] = {&device->compute, &device->communication, &device->in,
                                     &device->out};
    cudaEvent_t *const events[] = {&device->reached, &device->staging.done[0],
                                   &device->staging.done[1]};
    for (int i = 0; i < 4; i++)
        CUDA_TRY(cudaStreamCreateWithFlags(streams[i], cudaStreamNonBlocking), "a stream");
    for (int i = 0; i < 3; i++)
        CUDA_TRY(cudaEventCreateWithFlags(events[i], cudaEventDisableTiming), "an event");
    return 0;
}

static int open_memory(struct device *device, struct err *err)
{
    for (int i = 0; i < 2; i++)
        CUDA_TRY(cudaMallocHost(&device->staging.half[i], STAGING_BYTES), "pinned memory");
    CUDA_TRY(cudaMallocHost((void **)&device->fault_on_host, sizeof *device->fault_on_host),
             "pinned memory");
    *device->fault_on_host = (struct device_fault){FAULT_NONE};
    CUDA_TRY(cudaMalloc(&device->product_workspace, PRODUCT_WORKSPACE_BYTES),
             "the workspace of matrix products");
    CUDA_TRY(cudaMalloc((void **)&device->step, sizeof *device->step), "the step's numbers");
    CUDA_TRY(cudaMalloc((void **)&device->fault, sizeof *device->fault), "the record of faults");
    CUDA_TRY(cudaMemsetAsync(device->fault, 0, sizeof *device->fault, device->compute),
             "the record of faults");
    return 0;
}

static int open_libraries(struct device *device, struct err *err)
{
    int rc = status_cublas(cublasLtCreate(&device->products), "start", err);
    if (rc == 0)
        rc = status_cudnn(cudnnCreate(&device->cudnn), "start", err);
    if (rc == 0)
        rc = status_cudnn(cudnnSetStream(device->cudnn, device->compute), "start", err);
    return rc;
}

static int open_all(struct device *device, struct err *err)
{
    CUDA_TRY(cudaSetDevice(device->index), "start");
    int rc = open_streams(device, err);
    if (rc == 0)
        rc = open_memory(device, err);
    return rc == 0 ? open_libraries(device, err) : rc;
}

int cuda_device_open(const struct device_config *config, struct device **ret_device,
                     struct err *err)
{
    struct device *device = calloc(1, sizeof *device);
    if (!device)
        return err_set(err, ERR_NOMEM, "no memory for the device %s", config->name);
    device->index = config->index;
    snprintf(device->name, sizeof device->name, "%s", config->name);
    int rc = open_all(device, err);
    if (rc) {
        cuda_device_close(device);
        return err_context(err, "%s", config->name);
    }
    *ret_device = device;
    return 0;
}

/* What is still enqueued is waited for: nothing may be freed below it. */
void cuda_device_close(struct device *device)
{
    if (!device)
        return;
    cudaSetDevice(device->index);
    cudaStream_t const streams[] = {device->compute, device->communication, device->in,
                                    device->out};
    cudaEvent_t const events[] = {device->reached, device->staging.done[0],
                                  device->staging.done[1]};
    for (int i = 0; i < 4; i++)
        if (streams[i])
            cudaStreamSynchronize(streams[i]);
    if (device->cudnn)
        cudnnDestroy(device->cudnn);
    if (device->products)
        cublasLtDestroy(device->products);
    cudaFree(device->fault);
    cudaFree(device->step);
    cudaFree(device->product_workspace);
    cudaFreeHost(device->fault_on_host);
    for (int i = 0; i < 2; i++)
        cudaFreeHost(device->staging.half[i]);
    for (int i = 0; i < 3; i++)
        if (events[i])
            cudaEventDestroy(events[i]);
    for (int i = 0; i < LIMIT_DEVICES; i++)
        if (device->left[i])
            cudaEventDestroy(device->left[i]);
    for (int i = 0; i < 4; i++)
        if (streams[i])
            cudaStreamDestroy(streams[i]);
    free(device);
}

void *cuda_alloc(struct device *device, size_t bytes)
{
    void *memory;
    if (cudaSetDevice(device->index) != cudaSuccess)
        return NULL;
    if (cudaMalloc(&memory, bytes > 0 ? bytes : 1) != cudaSuccess) {
        cudaGetLastError(); /* what is out of memory is said by who asked */
        return NULL;
    }
    if (cudaMemsetAsync(memory, 0, bytes, device->compute) == cudaSuccess)
        return memory;
    cudaFree(memory);
    return NULL;
}

void cuda_free(struct device *device, void *memory, size_t bytes)
{
    (void)bytes;
    cudaSetDevice(device->index);
    cudaStreamSynchronize(device->compute);
    cudaFree(memory);
}

/* The driver maps pages of 2 MiB; what is smaller shares one. */
size_t cuda_alloc_bytes(size_t bytes)
{
    size_t page = bytes >= 1 << 20 ? 2 << 20 : 512;
    return (bytes + page - 1) / page * page;
}

int64_t cuda_free_bytes(struct device *device)
{
    size_t free_bytes, all_bytes;
    cudaSetDevice(device->index);
    return cudaMemGetInfo(&free_bytes, &all_bytes) == cudaSuccess ? (int64_t)free_bytes : 0;
}

int cuda_set_step(struct device *device, const struct step *step, struct err *err)
{
    const struct device_step value = {
        .seed = step->seed,
        .number = step->number,
        .first_sample = step->first_sample,
        .loss_divisor = step->loss_divisor,
        .gradient_scale = step->gradient_scale,
        .lr = step->lr,
        .record = step->record,
    };
    CUDA_TRY(cudaSetDevice(device->index), "the step's numbers");
    CUDA_TRY(launch_set_step(device->step, &value, device->compute), "the step's numbers");
    return 0;
}
