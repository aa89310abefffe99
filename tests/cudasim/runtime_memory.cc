/* runtime_memory.cc: device memory, copies, and what operations touch. */
#include "tests/cudasim/runtime.hpp"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace sim
{

Block *block_of(const void *pointer)
{
    auto above = runtime().blocks.upper_bound(uintptr_t(pointer));
    if (above == runtime().blocks.begin())
        return nullptr;
    Block &block = std::prev(above)->second;
    return static_cast<const char *>(pointer) < block.pointer + block.bytes ? &block : nullptr;
}

/* The same memory twice: once for the host's pointer, which nothing may go through, once to work
 * with. */
static bool map_twice(Block *block)
{
    int file = memfd_create("cudasim", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, off_t(block->mapped)) != 0)
        return false;
    void *closed = mmap(nullptr, block->mapped, PROT_NONE, MAP_SHARED, file, 0);
    void *open = mmap(nullptr, block->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    block->pointer = static_cast<char *>(closed);
    block->memory = static_cast<char *>(open);
    return closed != MAP_FAILED && open != MAP_FAILED;
}

static std::string where(const void *pointer)
{
    char text[32];
    snprintf(text, sizeof text, "%p", pointer);
    return text;
}

bool touch(const char *name, const Stream *stream, const Op &op, const Access &access)
{
    if (access.spans.empty())
        return true;
    Block *block = block_of(access.data);
    if (!block) {
        finding(std::string(name) + ": " + where(access.data) +
                " is no device memory (or no longer)");
        return false;
    }
    if (block->device != stream->device)
        finding(std::string(name) + ": on device " + std::to_string(stream->device) +
                ", touches memory of device " + std::to_string(block->device));
    size_t offset = size_t(static_cast<const char *>(access.data) - block->pointer);
    Stamp stamp = {op->name, stream->component, &op->clock};
    std::string wrong;
    for (const Span &span : access.spans) {
        if (offset + span.end > block->bytes) {
            finding(std::string(name) + ": touches " + std::to_string(offset + span.end) +
                    " bytes of " + std::to_string(block->bytes));
            return false;
        }
        if (access.reads && wrong.empty())
            wrong = block->shadow->read(offset + span.begin, offset + span.end, stamp);
        if (access.writes) {
            std::string bad = block->shadow->write(offset + span.begin, offset + span.end, stamp);
            wrong = wrong.empty() ? bad : wrong;
        }
    }
    if (!wrong.empty())
        finding(std::string(name) + " " + wrong.substr(0, wrong.find('\n')));
    return true;
}

/* One side of a copy: device memory, or the host's as it is. */
static void *usable(const void *pointer)
{
    const Block *block = block_of(pointer);
    return block ? block->memory + (static_cast<const char *>(pointer) - block->pointer)
                 : const_cast<void *>(pointer);
}

static void note(const char *name, Stream *stream, const Op &op, const void *pointer, size_t bytes,
                 bool reads)
{
    if (block_of(pointer))
        touch(name, stream, op, {pointer, {{0, bytes}}, reads, !reads});
}

} // namespace sim

using namespace sim;

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    Lock lock(runtime().mutex);
    int device = thread_device();
    Block block = {};
    block.bytes = bytes;
    block.mapped = (bytes + 4095) / 4096 * 4096 + 4096; /* a page behind it is fence */
    block.device = device;
    bool fits = runtime().used_bytes[device] + bytes <= runtime().limit_bytes;
    if (bytes == 0) {
        *memory = nullptr;
        return cudaSuccess;
    }
    if (!fits || core_fault("malloc") || !map_twice(&block))
        return cudaErrorMemoryAllocation;
    memset(block.memory, 0xff, bytes);
    block.shadow = std::make_unique<Shadow>(bytes);
    runtime().used_bytes[device] += bytes;
    *memory = block.pointer;
    runtime().blocks[uintptr_t(block.pointer)] = std::move(block);
    return cudaSuccess;
}

/* Waits for the device, as the real one. */
cudaError_t cudaFree(void *memory)
{
    if (!memory)
        return cudaSuccess;
    Lock lock(runtime().mutex);
    auto found = runtime().blocks.find(uintptr_t(memory));
    if (found == runtime().blocks.end())
        return cudaErrorInvalidValue;
    std::vector<Op> ends;
    for (Stream *stream : runtime().streams)
        if (stream->device == found->second.device)
            ends.push_back(stream->last);
    for (const Op &op : ends)
        wait_for(op, &lock);
    found = runtime().blocks.find(uintptr_t(memory));
    runtime().used_bytes[found->second.device] -= found->second.bytes;
    munmap(found->second.memory, found->second.mapped);
    munmap(found->second.pointer, found->second.mapped);
    runtime().blocks.erase(found);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t handle)
{
    if (bytes == 0)
        return cudaSuccess;
    Lock lock(runtime().mutex);
    Stream *stream = stream_of(handle);
    void *target = usable(to), *source = usable(from);
    Op op = enqueue(stream, "cudaMemcpyAsync", [=] {
        memmove(target, source, bytes);
        return true;
    });
    note("cudaMemcpyAsync", stream, op, from, bytes, true);
    note("cudaMemcpyAsync", stream, op, to, bytes, false);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
    return error == cudaSuccess ? cudaStreamSynchronize(nullptr) : error;
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t handle)
{
    if (bytes == 0)
        return cudaSuccess;
    Lock lock(runtime().mutex);
    Stream *stream = stream_of(handle);
    void *target = usable(memory);
    Op op = enqueue(stream, "cudaMemsetAsync", [=] {
        memset(target, value, bytes);
        return true;
    });
    note("cudaMemsetAsync", stream, op, memory, bytes, false);
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer)
{
    Lock lock(runtime().mutex);
    const Block *block = block_of(pointer);
    *attributes = {};
    attributes->type = block ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
    attributes->device = block ? block->device : -1;
    attributes->devicePointer = block ? const_cast<void *>(pointer) : nullptr;
    return cudaSuccess;
}
