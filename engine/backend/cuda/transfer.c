/* transfer.c: copies between the host and a GPU, and between GPUs.
 *
 * A copy from the host is enqueued behind what kernels read before it and ahead of what they read
 * next, and the host goes on as soon as its memory is in a pinned half. A copy to the host is what
 * the host waits for; it is also where it hears of what kernels found wrong (struct device_fault).
 */
#include "engine/backend/cuda/cuda.h"

#include <string.h>

static const char to_device[] = "the copy to the device", to_host[] = "the device's work";

int cuda_order(struct device *device, cudaStream_t earlier, cudaStream_t later, const char *what,
               struct err *err)
{
    CUDA_TRY(cudaEventRecord(device->reached, earlier), what);
    CUDA_TRY(cudaStreamWaitEvent(later, device->reached, 0), what);
    return 0;
}

static size_t piece(size_t left)
{
    return left < STAGING_BYTES ? left : STAGING_BYTES;
}

/* The half that the device has copied longest ago. */
static int take_half(struct staging *staging, int *ret_half, struct err *err)
{
    int half = staging->next;
    CUDA_TRY(cudaEventSynchronize(staging->done[half]), to_device);
    staging->next = 1 - half;
    *ret_half = half;
    return 0;
}

static int write_piece(struct device *device, char *to, const char *from, size_t bytes,
                       struct err *err)
{
    int half, rc = take_half(&device->staging, &half, err);
    if (rc)
        return rc;
    void *pinned = device->staging.half[half];
    memcpy(pinned, from, bytes);
    CUDA_TRY(cudaMemcpyAsync(to, pinned, bytes, cudaMemcpyHostToDevice, device->in), to_device);
    CUDA_TRY(cudaEventRecord(device->staging.done[half], device->in), to_device);
    return 0;
}

int cuda_write(struct device *device, void *to, const void *from, size_t bytes, struct err *err)
{
    CUDA_TRY(cudaSetDevice(device->index), to_device);
    int rc = cuda_order(device, device->compute, device->in, to_device, err);
    for (size_t at = 0, n; rc == 0 && at < bytes; at += n) {
        n = piece(bytes - at);
        rc = write_piece(device, (char *)to + at, (const char *)from + at, n, err);
    }
    return rc == 0 ? cuda_order(device, device->in, device->compute, to_device, err) : rc;
}

/* The sentences are the CPU kernels'. */
static int check_fault(const struct device_fault *fault, struct err *err)
{
    static const char *const formats[] = {
        [FAULT_CLASS] = "sample %lld of the batch has the label %lld, and there are %lld classes",
        [FAULT_INDEX] =
            "sample %lld of the epoch has the integer %lld, and there are %lld embeddings",
        [FAULT_LENGTH] = "sample %lld of the epoch has the length %lld, and there are %lld steps",
    };
    if (fault->kind == FAULT_NONE)
        return 0;
    return err_set(err, ERR_DATA_INVALID, formats[fault->kind], (long long)fault->sample,
                   (long long)fault->value, (long long)fault->limit);
}

static int read_piece(struct device *device, void *to, const void *from, size_t bytes,
                      struct err *err)
{
    int half, rc = take_half(&device->staging, &half, err);
    if (rc)
        return rc;
    void *pinned = device->staging.half[half];
    CUDA_TRY(cudaMemcpyAsync(pinned, from, bytes, cudaMemcpyDeviceToHost, device->out), to_host);
    CUDA_TRY(cudaStreamSynchronize(device->out), to_host);
    memcpy(to, pinned, bytes);
    return 0;
}

int cuda_read(struct device *device, void *to, const void *from, size_t bytes, struct err *err)
{
    int rc = cuda_wait(device, err);
    for (size_t at = 0, n; rc == 0 && at < bytes; at += n) {
        n = piece(bytes - at);
        rc = read_piece(device, (char *)to + at, (const char *)from + at, n, err);
    }
    return rc;
}

int cuda_wait(struct device *device, struct err *err)
{
    CUDA_TRY(cudaSetDevice(device->index), to_host);
    int rc = cuda_order(device, device->compute, device->out, to_host, err);
    if (rc)
        return rc;
    CUDA_TRY(cudaMemcpyAsync(device->fault_on_host, device->fault, sizeof *device->fault,
                             cudaMemcpyDeviceToHost, device->out),
             to_host);
    CUDA_TRY(cudaStreamSynchronize(device->out), to_host);
    return check_fault(device->fault_on_host, err);
}

static const char between[] = "the copy from another device";

/* Work that is enqueued on `in` from here on begins when the other device has done what it was
 * given. */
static int await_other(struct device *device, const struct device *other, struct err *err)
{
    cudaEvent_t *left = &device->left[other->index];
    if (!*left) {
        CUDA_TRY(cudaSetDevice(other->index), between); /* whose event it will be */
        CUDA_TRY(cudaEventCreateWithFlags(left, cudaEventDisableTiming), between);
        CUDA_TRY(cudaSetDevice(device->index), between);
    }
    CUDA_TRY(cudaEventRecord(*left, other->compute), between);
    CUDA_TRY(cudaStreamWaitEvent(device->in, *left, 0), between);
    return 0;
}

int cuda_copy(struct device *device, void *to, const struct device *from_device, const void *from,
              size_t bytes, struct err *err)
{
    CUDA_TRY(cudaSetDevice(device->index), between);
    int rc = cuda_order(device, device->compute, device->in, between, err);
    if (rc == 0)
        rc = await_other(device, from_device, err);
    if (rc)
        return rc;
    CUDA_TRY(cudaMemcpyPeerAsync(to, device->index, from, from_device->index, bytes, device->in),
             between);
    CUDA_TRY(cudaStreamSynchronize(device->in), between);
    return 0;
}
