/* runtime_kernel.cc: what nvcc's code calls to start a kernel.
 *
 * A kernel's accesses are known when it runs, not when it is enqueued; its clock is fixed all the
 * same, so that what is found does not depend on when that is.
 */
#include "tests/cudasim/kernels.hpp"
#include "tests/cudasim/runtime.hpp"

#include <cstring>

namespace sim
{

static thread_local struct {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
} pushed;

/* Whose view an address lies in; NULL: it is none of a device's. last: where the access before was,
 * as most are, in the same run of a kernel. */
static Block *block_of_view(const void *view, Block *last)
{
    const char *at = static_cast<const char *>(view);
    if (last && at >= last->memory && at < last->memory + last->mapped)
        return last;
    for (auto &entry : runtime().blocks)
        if (at >= entry.second.memory && at < entry.second.memory + entry.second.mapped)
            return &entry.second;
    return nullptr;
}

/* The views' ranges, so that a kernel's own variables are told from memory at a glance. */
static std::pair<char *, char *> all_views()
{
    std::pair<char *, char *> range(nullptr, nullptr);
    for (auto &entry : runtime().blocks) {
        char *begin = entry.second.memory, *end = begin + entry.second.mapped;
        range.first = range.first && range.first < begin ? range.first : begin;
        range.second = range.second > end ? range.second : end;
    }
    return range;
}

struct Launched {
    const void *kernel;
    dim3 grid, block;
    std::vector<std::vector<char>> arguments;
};

static void run(const Launched &launched, Stream *stream, const Op &op)
{
    const size_t *sizes;
    const bool *pointers;
    auto arguments = launched.arguments;
    std::vector<void *> usable;
    size_t n = kernels_arguments(launched.kernel, &sizes, &pointers);
    for (size_t i = 0; i < n; i++) {
        char *pointer;
        memcpy(&pointer, arguments[i].data(), pointers[i] ? sizeof pointer : 0);
        const Block *block = pointers[i] ? block_of(pointer) : nullptr;
        if (block) {
            pointer = block->memory + (pointer - block->pointer);
            memcpy(arguments[i].data(), &pointer, sizeof pointer);
        }
        usable.push_back(arguments[i].data());
    }
    auto views = all_views();
    Block *last = nullptr;
    kernels_run(launched.kernel, launched.grid, launched.block, usable.data(),
                [&](void *at, size_t bytes, bool writes) {
                    Block *block =
                        at >= views.first && at < views.second ? block_of_view(at, last) : nullptr;
                    last = block ? block : last;
                    if (block)
                        touch(op->name, stream, op,
                              {block->pointer + (static_cast<char *>(at) - block->memory),
                               {{0, bytes}},
                               !writes,
                               writes});
                });
}

} // namespace sim

using namespace sim;

extern "C" {

void **__cudaRegisterFatBinary(void *binary)
{
    return new void *(binary);
}

void __cudaRegisterFatBinaryEnd(void **)
{
}

void __cudaUnregisterFatBinary(void **handle)
{
    delete handle;
}

void __cudaRegisterFunction(void **, const char *stub, char *, const char *name, int, uint3 *,
                            uint3 *, dim3 *, dim3 *, int *)
{
    kernels_register(stub, name);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, cudaStream_t stream)
{
    pushed = {grid, block, shared, stream};
    return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, void *stream)
{
    *grid = pushed.grid;
    *block = pushed.block;
    *shared = pushed.shared;
    *static_cast<cudaStream_t *>(stream) = pushed.stream;
    return cudaSuccess;
}

cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *stub)
{
    Lock lock(runtime().mutex);
    *kernel = static_cast<cudaKernel_t>(const_cast<void *>(kernels_find(stub)));
    return *kernel ? cudaSuccess : fail(cudaErrorInvalidDeviceFunction);
}

/* Arguments are copied, as they are on the real device. */
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t,
                               cudaStream_t handle)
{
    const size_t *sizes;
    const bool *pointers;
    Lock lock(runtime().mutex);
    Stream *stream = stream_of(handle);
    size_t threads = size_t(block.x) * block.y * block.z;
    if (threads == 0 || threads > 1024 || size_t(grid.x) * grid.y * grid.z == 0 ||
        core_fault("launch"))
        return fail(cudaErrorInvalidConfiguration);
    if (stream->device != thread_device())
        return fail(cudaErrorInvalidResourceHandle);
    Launched launched = {kernel, grid, block, {}};
    size_t n = kernels_arguments(kernel, &sizes, &pointers);
    for (size_t i = 0; i < n; i++) {
        const char *from = static_cast<const char *>(arguments[i]);
        launched.arguments.emplace_back(from, from + sizes[i]);
    }
    Op op = enqueue(stream, kernels_name(kernel), nullptr);
    std::weak_ptr<Operation> itself = op;
    op->attempt = [=] {
        run(launched, stream, itself.lock());
        return true;
    };
    return cudaSuccess;
}
}
