/* runtime_device.cc: what a program asks of its devices. They are alike, but for their numbers. */
#include "tests/cudasim/runtime.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace sim;

static bool is_device(int device)
{
    return device >= 0 && device < runtime().devices;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device)
{
    if (!properties || !is_device(device))
        return cudaErrorInvalidDevice;
    *properties = {};
    snprintf(properties->name, sizeof properties->name, "Simulated GPU");
    memcpy(properties->uuid.bytes, "cudasim", 7);
    properties->uuid.bytes[15] = char(device);
    properties->totalGlobalMem = runtime().limit_bytes;
    properties->major = 9;
    properties->multiProcessorCount = 4;
    properties->warpSize = 32;
    properties->maxThreadsPerBlock = 1024;
    properties->sharedMemPerBlock = 48 << 10;
    properties->sharedMemPerBlockOptin = 227 << 10;
    properties->pciBusID = device + 1;
    properties->unifiedAddressing = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int bytes, int device)
{
    if (!id || !is_device(device))
        return cudaErrorInvalidDevice;
    int length = snprintf(id, size_t(bytes), "0000:%02X:00.0", unsigned(device + 1));
    return length < bytes ? cudaSuccess : cudaErrorInvalidValue;
}

/* CUDASIM_PEERS=0: no device reaches another's memory. */
cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    if (!can || !is_device(device) || !is_device(peer))
        return cudaErrorInvalidDevice;
    const char *peers = getenv("CUDASIM_PEERS");
    *can = device != peer && !(peers && atoi(peers) == 0);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *all_bytes)
{
    Lock lock(runtime().mutex);
    *all_bytes = runtime().limit_bytes;
    *free_bytes = runtime().limit_bytes - runtime().used_bytes[thread_device()];
    return cudaSuccess;
}
