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

/* False: outside of memory. The host's is anybody's. */
static bool note(const char *name, Stream *stream, const Op &op, const void *pointer, size_t bytes,
                 bool reads)
{
    return !block_of(pointer) || touch(name, stream, op, {pointer, {{0, bytes}}, reads, !reads});
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
        return fail(cudaErrorMemoryAllocation);
    memset(block.memory, 0xff, bytes);
    block.shadow = std::make_unique<Shadow>(bytes, nullptr);
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
    if (found == runtime().blocks.end() || found->second.device == -1)
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

cudaError_t cudaMallocHost(void **memory, size_t bytes)
{
    Lock lock(runtime().mutex);
    if (core_fault("malloc_host"))
        return cudaErrorMemoryAllocation;
    Block block = {};
    block.pointer = block.memory =
        static_cast<char *>(aligned_alloc(4096, (bytes + 4095) / 4096 * 4096));
    if (!block.pointer)
        return cudaErrorMemoryAllocation;
    block.bytes = bytes;
    block.device = -1;
    block.shadow = std::make_unique<Shadow>(bytes, "the host"); /* whose accesses are not seen */
    *memory = block.pointer;
    runtime().blocks[uintptr_t(block.pointer)] = std::move(block);
    return cudaSuccess;
}

/* Waits for everything: a copy may be on its way. */
cudaError_t cudaFreeHost(void *memory)
{
    if (!memory)
        return cudaSuccess;
    Lock lock(runtime().mutex);
    auto found = runtime().blocks.find(uintptr_t(memory));
    if (found == runtime().blocks.end() || found->second.device != -1)
        return cudaErrorInvalidValue;
    for (Stream *stream : runtime().streams)
        wait_for(stream->last, &lock);
    free(memory);
    runtime().blocks.erase(uintptr_t(memory));
    return cudaSuccess;
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t bytes, cudaStream_t stream)
{
    const void *const ends[] = {to, from};
    const int devices[] = {to_device, from_device};
    for (int i = 0; i < 2; i++) {
        Lock lock(runtime().mutex);
        const Block *block = block_of(ends[i]);
        if (bytes > 0 && (!block || block->device != devices[i]))
            return cudaErrorInvalidValue;
    }
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t handle)
{
    if (bytes == 0)
        return cudaSuccess;
    Lock lock(runtime().mutex);
    Stream *stream = stream_of(handle);
    if (stream->device != thread_device())
        return cudaErrorInvalidResourceHandle;
    void *target = usable(to), *source = usable(from);
    std::vector<char> staged; /* what comes from pageable memory is read at once */
    if (!block_of(from))
        staged.assign(static_cast<const char *>(from), static_cast<const char *>(from) + bytes);
    Op op = enqueue(stream, "cudaMemcpyAsync", nullptr);
    std::weak_ptr<Operation> itself = op;
    op->attempt = [=] {
        if (note("cudaMemcpyAsync", stream, itself.lock(), from, bytes, true) &&
            note("cudaMemcpyAsync", stream, itself.lock(), to, bytes, false))
            memmove(target, staged.empty() ? source : staged.data(), bytes);
        return true;
    };
    if (!block_of(to)) /* pageable memory is there when the call returns */
        wait_for(op, &lock);
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
    Op op = enqueue(stream, "cudaMemsetAsync", nullptr);
    std::weak_ptr<Operation> itself = op;
    op->attempt = [=] {
        if (note("cudaMemsetAsync", stream, itself.lock(), memory, bytes, false))
            memset(target, value, bytes);
        return true;
    };
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes, const void *pointer)
{
    Lock lock(runtime().mutex);
    const Block *block = block_of(pointer);
    *attributes = {};
    attributes->type = !block              ? cudaMemoryTypeUnregistered
                       : block->device < 0 ? cudaMemoryTypeHost
                                           : cudaMemoryTypeDevice;
    attributes->device = block ? block->device : -1;
    attributes->devicePointer = block ? const_cast<void *>(pointer) : nullptr;
    return cudaSuccess;
}
