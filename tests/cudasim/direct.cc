/* direct.cc: the smallest libcudart that the libraries' own tests need: up to eight devices whose
 * memory is the host's, streams that run what is enqueued as soon as it can. No delays, no checks:
 * those are the simulated runtime's.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "tests/cudasim/core.hpp"

namespace sim
{

using Operation = std::function<bool()>; /* says whether it is done */

struct Stream {
    int device;
    std::list<Operation> waiting;
};

struct Block {
    size_t bytes;
    int device;
};

static const int devices = 8;
static thread_local int device;

static struct {
    std::recursive_mutex mutex;
    std::list<Stream *> streams;
    Stream standard[devices];
    std::map<uintptr_t, Block> blocks;
    bool running, again;
    std::vector<std::string> findings;
} runtime;

using Lock = std::lock_guard<std::recursive_mutex>;

static Stream *stream_of(cudaStream_t stream)
{
    return stream ? reinterpret_cast<Stream *>(stream) : &runtime.standard[device];
}

static void advance(Stream *stream)
{
    while (!stream->waiting.empty() && stream->waiting.front()()) {
        stream->waiting.pop_front();
        runtime.again = true;
    }
}

void core_retry()
{
    Lock lock(runtime.mutex);
    runtime.again = true;
    if (runtime.running)
        return;
    runtime.running = true;
    while (runtime.again) {
        runtime.again = false;
        for (Stream *stream : runtime.streams)
            advance(stream);
        for (Stream &stream : runtime.standard)
            advance(&stream);
    }
    runtime.running = false;
}

cudaError_t core_enqueue(const char *, cudaStream_t stream, const std::vector<Access> &accesses,
                         std::function<bool(Memory)> done)
{
    std::vector<void *> memory;
    for (const Access &access : accesses)
        memory.push_back(const_cast<void *>(access.data));
    {
        Lock lock(runtime.mutex);
        stream_of(stream)->waiting.push_back([=] { return done(memory.data()); });
    }
    core_retry();
    return cudaSuccess;
}

void core_report(const char *sentence)
{
    Lock lock(runtime.mutex);
    fprintf(stderr, "cudasim: %s\n", sentence);
    runtime.findings.push_back(sentence);
}

std::vector<std::string> core_take_findings()
{
    Lock lock(runtime.mutex);
    return std::move(runtime.findings);
}

/* CUDASIM_FAULT=KIND:N is the N-th call of that kind. */
bool core_fault(const char *kind)
{
    static std::map<std::string, int> calls;
    const char *fault = getenv("CUDASIM_FAULT");
    Lock lock(runtime.mutex);
    return fault && std::string(kind) + ":" + std::to_string(++calls[kind]) == fault;
}

/* Until the stream is empty; others' threads bring what it waits for. */
static cudaError_t wait(Stream *stream)
{
    for (;;) {
        {
            Lock lock(runtime.mutex);
            if (stream->waiting.empty())
                return cudaSuccess;
        }
        std::this_thread::yield();
    }
}

} // namespace sim

using namespace sim;

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = devices;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int wanted)
{
    if (wanted < 0 || wanted >= devices)
        return cudaErrorInvalidDevice;
    device = wanted;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *found)
{
    *found = device;
    return cudaSuccess;
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *found)
{
    *found = stream ? stream_of(stream)->device : device;
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *data)
{
    Lock lock(runtime.mutex);
    auto above = runtime.blocks.upper_bound(uintptr_t(data));
    *attributes = {};
    attributes->type = cudaMemoryTypeUnregistered;
    if (above == runtime.blocks.begin())
        return cudaSuccess;
    auto &block = *--above;
    if (uintptr_t(data) >= block.first + block.second.bytes)
        return cudaSuccess;
    attributes->type = cudaMemoryTypeDevice;
    attributes->device = block.second.device;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    size_t whole = (bytes + 255) / 256 * 256;
    *memory = aligned_alloc(256, whole ? whole : 256);
    memset(*memory, 0xff, whole);
    Lock lock(runtime.mutex);
    runtime.blocks[uintptr_t(*memory)] = {bytes, device};
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    Lock lock(runtime.mutex);
    runtime.blocks.erase(uintptr_t(memory));
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind)
{
    memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned)
{
    Stream *made = new Stream{device, {}};
    Lock lock(runtime.mutex);
    runtime.streams.push_back(made);
    *stream = reinterpret_cast<cudaStream_t>(made);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    Lock lock(runtime.mutex);
    runtime.streams.remove(stream_of(stream));
    delete stream_of(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    return wait(stream_of(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    Lock lock(runtime.mutex);
    return stream_of(stream)->waiting.empty() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaDeviceSynchronize()
{
    std::list<Stream *> all;
    {
        Lock lock(runtime.mutex);
        all = runtime.streams;
    }
    for (Stream *stream : all)
        if (stream->device == device)
            wait(stream);
    return wait(&runtime.standard[device]);
}

/* An event is the streams' order at one time: a stream that waits for it waits for nothing that
 * runs at once. */
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    *event = nullptr;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t)
{
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned)
{
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t)
{
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaSuccess ? "no error" : "an error";
}
