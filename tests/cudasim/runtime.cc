/* runtime.cc: devices, streams, events, and the executor. */
#include "tests/cudasim/runtime.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace sim
{

static thread_local int current;
static thread_local cudaError_t last_error;

static long long setting(const char *name, long long otherwise)
{
    const char *value = getenv(name);
    return value ? atoll(value) : otherwise;
}

Runtime::Runtime() : random(uint64_t(setting("CUDASIM_SEED", 1)))
{
    devices = int(std::min<long long>(setting("CUDASIM_DEVICES", device_max), device_max));
    limit_bytes = size_t(setting("CUDASIM_MEMORY", 1ll << 30));
    for (int i = 0; i < device_max; i++) {
        used_bytes[i] = 0;
        standard[i] = new Stream{i, true, true, components++, {}, nullptr, {}};
        streams.push_back(standard[i]);
    }
}

/* Findings that nobody took make the process fail. */
Runtime::~Runtime()
{
    if (findings.empty())
        return;
    fprintf(stderr, "cudasim: %zu findings\n", findings.size());
    fflush(nullptr);
    _exit(86);
}

Runtime &runtime()
{
    static Runtime all;
    return all;
}

int thread_device()
{
    return current;
}

void finding(const std::string &sentence)
{
    Lock lock(runtime().mutex);
    fprintf(stderr, "cudasim: %s\n", sentence.c_str());
    runtime().findings.push_back(sentence);
}

Stream *stream_of(cudaStream_t stream)
{
    bool standard = !stream || stream == cudaStreamLegacy;
    return standard ? runtime().standard[current] : reinterpret_cast<Stream *>(stream);
}

Stream *stream_new(int device, bool legacy, bool blocking)
{
    Lock lock(runtime().mutex);
    Stream *stream = new Stream{device, legacy, blocking, runtime().components++, {}, nullptr, {}};
    runtime().streams.push_back(stream);
    return stream;
}

/* The default stream and blocking ones of a device keep order with each other. */
static void follow_legacy(Stream *stream, Operation *op)
{
    for (Stream *other : runtime().streams) {
        bool ordered = other != stream && other->device == stream->device && stream->blocking &&
                       other->blocking && (stream->legacy || other->legacy);
        if (!ordered || !other->last)
            continue;
        op->after.push_back(other->last);
        clock_join(&op->clock, other->clock);
    }
}

Op enqueue(Stream *stream, const char *name, std::function<bool()> attempt)
{
    Op op = std::make_shared<Operation>(
        Operation{name, std::move(attempt), {}, stream->clock, false, false});
    clock_join(&op->clock, runtime().host);
    follow_legacy(stream, op.get());
    if (op->clock.size() <= stream->component)
        op->clock.resize(stream->component + 1);
    op->clock[stream->component]++;
    stream->clock = op->clock;
    stream->queue.push_back(op);
    stream->last = op;
    runtime().changed.notify_all();
    return op;
}

static bool is_ready(const Stream *stream)
{
    if (stream->queue.empty() || stream->queue.front()->tried)
        return false;
    auto &after = stream->queue.front()->after;
    return std::all_of(after.begin(), after.end(), [](const Op &op) { return op->done; });
}

/* One operation whose turn it is, drawn by the seed. False: there is none. */
static bool step()
{
    std::vector<Stream *> ready;
    for (Stream *stream : runtime().streams)
        if (is_ready(stream))
            ready.push_back(stream);
    if (ready.empty())
        return false;
    Stream *stream = ready[runtime().random() % ready.size()];
    Op op = stream->queue.front();
    op->tried = true; /* before: what it does may say that others are worth another try */
    op->done = op->attempt();
    if (op->done) {
        stream->queue.pop_front();
        op->after.clear();
        op->attempt = nullptr;
        runtime().changed.notify_all();
    }
    return true;
}

void run_one()
{
    Lock lock(runtime().mutex);
    step();
}

void wait_for(const Op &op, Lock *lock)
{
    if (!op)
        return;
    while (!op->done)
        if (!step() && !op->done)
            runtime().changed.wait(*lock);
    clock_join(&runtime().host, op->clock);
}

void core_retry()
{
    Lock lock(runtime().mutex);
    for (Stream *stream : runtime().streams)
        if (!stream->queue.empty())
            stream->queue.front()->tried = false;
    runtime().changed.notify_all();
}

cudaError_t core_enqueue(const char *name, cudaStream_t handle, const std::vector<Access> &accesses,
                         std::function<bool(Memory)> done)
{
    Lock lock(runtime().mutex);
    Stream *stream = stream_of(handle);
    if (stream->device != current && strncmp(name, "nccl", 4) != 0)
        return cudaErrorInvalidResourceHandle;
    std::vector<void *> memory;
    for (const Access &access : accesses) {
        const Block *block = block_of(access.data);
        bool lies = block && access.data;
        if (lies && block->device >= 0 && block->device != stream->device)
            finding(std::string(name) + ": on device " + std::to_string(stream->device) +
                    ", touches memory of device " + std::to_string(block->device));
        memory.push_back(lies ? block->memory +
                                    (static_cast<const char *>(access.data) - block->pointer)
                              : nullptr);
    }
    Op op = enqueue(stream, name, nullptr);
    std::weak_ptr<Operation> itself = op;
    bool noted = false, inside = true;
    op->attempt = [=]() mutable {
        for (size_t i = 0; !noted && i < accesses.size(); i++)
            inside = touch(name, stream, itself.lock(), accesses[i]) && inside;
        noted = true;
        return !inside || done(memory.data());
    };
    return cudaSuccess;
}

void core_report(const char *sentence)
{
    finding(sentence);
}

std::vector<std::string> core_take_findings()
{
    Lock lock(runtime().mutex);
    return std::move(runtime().findings);
}

/* CUDASIM_FAULT=KIND:N is the N-th call of that kind. */
bool core_fault(const char *kind)
{
    const char *fault = getenv("CUDASIM_FAULT");
    Lock lock(runtime().mutex);
    int call = ++runtime().calls[kind];
    return fault && std::string(kind) + ":" + std::to_string(call) == fault;
}

cudaError_t fail(cudaError_t error)
{
    last_error = error;
    return error;
}

/* Whether it is done, after a step: who polls makes time go on. */
static cudaError_t query(const Op &op)
{
    run_one();
    Lock lock(runtime().mutex);
    if (op && !op->done)
        return cudaErrorNotReady;
    if (op)
        clock_join(&runtime().host, op->clock);
    return cudaSuccess;
}

} // namespace sim

using namespace sim;

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = runtime().devices;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= runtime().devices)
        return fail(cudaErrorInvalidDevice);
    current = device;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    *device = current;
    return cudaSuccess;
}

cudaError_t cudaGetLastError()
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    *stream =
        reinterpret_cast<cudaStream_t>(stream_new(current, false, flags != cudaStreamNonBlocking));
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    Lock lock(runtime().mutex);
    wait_for(stream_of(stream)->last, &lock);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    Lock lock(runtime().mutex);
    wait_for(stream_of(stream)->last, &lock);
    runtime().streams.remove(stream_of(stream));
    delete stream_of(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *device)
{
    *device = stream_of(stream)->device;
    return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return query(stream_of(stream)->last);
}

cudaError_t cudaDeviceSynchronize()
{
    Lock lock(runtime().mutex);
    std::vector<Op> ends;
    for (Stream *stream : runtime().streams)
        if (stream->device == current)
            ends.push_back(stream->last);
    for (const Op &op : ends)
        wait_for(op, &lock);
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    *event = reinterpret_cast<cudaEvent_t>(new Event{});
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete reinterpret_cast<Event *>(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream)
{
    Lock lock(runtime().mutex);
    *reinterpret_cast<Event *>(handle) = {true, stream_of(stream)->last, stream_of(stream)->clock};
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned)
{
    Lock lock(runtime().mutex);
    const Event *event = reinterpret_cast<Event *>(event_handle);
    if (!event->op)
        return cudaSuccess;
    Stream *stream = stream_of(handle);
    Op op = enqueue(stream, "cudaStreamWaitEvent", [] { return true; });
    op->after.push_back(event->op);
    clock_join(&op->clock, event->clock);
    stream->clock = op->clock;
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return query(reinterpret_cast<Event *>(event)->op);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    Lock lock(runtime().mutex);
    wait_for(reinterpret_cast<Event *>(event)->op, &lock);
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error)
{
    static const struct {
        cudaError_t error;
        const char *text;
    } texts[] = {
        {cudaSuccess, "no error"},
        {cudaErrorInvalidValue, "invalid argument"},
        {cudaErrorMemoryAllocation, "out of memory"},
        {cudaErrorInvalidDevice, "invalid device ordinal"},
        {cudaErrorInvalidResourceHandle, "invalid resource handle"},
        {cudaErrorNotReady, "device not ready"},
    };
    for (auto &row : texts)
        if (row.error == error)
            return row.text;
    return "unrecognized error code";
}
