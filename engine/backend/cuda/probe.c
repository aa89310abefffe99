/* probe.c: the GPUs that the driver shows this process. */
#include "engine/backend/cuda/cuda.h"

#include <stdio.h>
#include <string.h>

static void format_uuid(const cudaUUID_t *uuid, char *buf, size_t size)
{
    static const char dash_before[sizeof uuid->bytes] = {[4] = 1, [6] = 1, [8] = 1, [10] = 1};
    size_t used = (size_t)snprintf(buf, size, "GPU-");
    for (size_t i = 0; i < sizeof uuid->bytes; i++)
        used += (size_t)snprintf(buf + used, size - used, "%s%02x", dash_before[i] ? "-" : "",
                                 (unsigned)(unsigned char)uuid->bytes[i]);
}

static uint64_t find_peers(int index, int n)
{
    uint64_t peers = 0;
    for (int other = 0; other < n; other++) {
        int reaches = 0;
        if (other != index && cudaDeviceCanAccessPeer(&reaches, index, other) == cudaSuccess)
            peers |= (uint64_t)(reaches != 0) << other;
    }
    return peers;
}

static int describe(int index, int n, struct gpu *ret_gpu, struct err *err)
{
    struct cudaDeviceProp properties;
    CUDA_TRY(cudaGetDeviceProperties(&properties, index), "the GPU's properties");
    *ret_gpu = (struct gpu){
        .memory_bytes = (int64_t)properties.totalGlobalMem,
        .multiprocessors = properties.multiProcessorCount,
        .capability = {properties.major, properties.minor},
        .peers = find_peers(index, n),
    };
    snprintf(ret_gpu->model, sizeof ret_gpu->model, "%.*s", (int)sizeof ret_gpu->model - 1,
             properties.name);
    format_uuid(&properties.uuid, ret_gpu->uuid, sizeof ret_gpu->uuid);
    CUDA_TRY(cudaDeviceGetPCIBusId(ret_gpu->pci, sizeof ret_gpu->pci, index), "the GPU's address");
    return 0;
}

int cuda_probe(struct gpu *ret_gpus, size_t *ret_n, struct err *err)
{
    int n, rc = 0;
    CUDA_TRY(cudaGetDeviceCount(&n), "no GPU can be used");
    if (n > LIMIT_DEVICES)
        n = LIMIT_DEVICES;
    for (int i = 0; rc == 0 && i < n; i++)
        rc = describe(i, n, &ret_gpus[i], err);
    if (rc == 0)
        *ret_n = (size_t)n;
    return rc;
}
