/* kernels.cc: kernels on the host. nvcc's module registers a stub with a name; the function of that
 * name in libkernels.so, beside this library, is what runs, compiled from the same .cu file. It was
 * compiled for ThreadSanitizer, whose calls end here: so each access to a device's memory is known.
 */
#include "tests/cudasim/kernels.hpp"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <string>
#include <ucontext.h>
#include <vector>

#include "tests/cudasim/core.hpp"
#include "tests/cudasim/kernel.hpp"

thread_local uint3 threadIdx, blockIdx;
thread_local dim3 blockDim, gridDim;

namespace sim
{

static std::map<std::string, cudasim_kernel> &enrolled()
{
    static std::map<std::string, cudasim_kernel> kernels;
    return kernels;
}

static std::map<const void *, std::string> names; /* by stub */

void kernels_register(const void *stub, const char *name)
{
    names[stub] = name;
}

const void *kernels_find(const void *stub)
{
    static void *library;
    auto name = names.find(stub);
    if (!library) {
        Dl_info self;
        dladdr(reinterpret_cast<void *>(kernels_find), &self);
        std::string path = self.dli_fname;
        path.replace(path.rfind('/') + 1, std::string::npos, "libkernels.so");
        library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            core_report(dlerror());
            abort();
        }
    }
    if (name == names.end())
        return nullptr;
    auto kernel = enrolled().find(name->second);
    return kernel == enrolled().end() ? nullptr : &kernel->second;
}

/* ── A block: a thread that meets a barrier keeps its stack until all have met it ── */

static thread_local const KernelTouch *touched;

constexpr size_t stack_bytes = 64 << 10;

struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack{new char[stack_bytes]};
    unsigned thread;
    bool waits;
};

static thread_local struct {
    const std::function<void()> *body;
    ucontext_t scheduler;
    std::vector<std::unique_ptr<Fiber>> fibers; /* kept from block to block */
    size_t used;
    Fiber *now;
    unsigned next, n;
} block;

constexpr unsigned none = ~0u;

static uint3 thread_at(unsigned i)
{
    return {i % blockDim.x, i / blockDim.x % blockDim.y, i / (blockDim.x * blockDim.y)};
}

/* Thread by thread, until one waits. */
static void run_fiber()
{
    Fiber *self = block.now;
    while (block.next < block.n) {
        self->thread = block.next++;
        threadIdx = thread_at(self->thread);
        (*block.body)();
        if (self->waits) { /* it has been behind a barrier: others may be, too */
            self->waits = false;
            break;
        }
    }
    self->thread = none;
    swapcontext(&self->context, &block.scheduler);
}

static Fiber *new_fiber()
{
    if (block.used == block.fibers.size())
        block.fibers.push_back(std::make_unique<Fiber>());
    Fiber *fiber = block.fibers[block.used++].get();
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack.get();
    fiber->context.uc_stack.ss_size = stack_bytes;
    fiber->context.uc_link = nullptr;
    makecontext(&fiber->context, run_fiber, 0);
    fiber->waits = false;
    fiber->thread = none;
    return fiber;
}

static void resume(Fiber *fiber)
{
    block.now = fiber;
    if (fiber->thread != none)
        threadIdx = thread_at(fiber->thread);
    swapcontext(&block.scheduler, &fiber->context);
}

static unsigned count_waiting()
{
    unsigned n = 0;
    for (size_t i = 0; i < block.used; i++)
        n += block.fibers[i]->thread != none;
    return n;
}

/* All up to their first barrier or their end, then those that wait up to the next. */
static void run_block()
{
    unsigned expected = block.n;
    block.used = 0;
    block.next = 0;
    while (block.next < block.n)
        resume(new_fiber());
    for (unsigned waiting; (waiting = count_waiting()) > 0; expected = waiting) {
        if (waiting < expected)
            core_report("threads of a block wait at a barrier that others, which have ended, "
                        "never met");
        for (size_t i = 0; i < block.used; i++)
            if (block.fibers[i]->thread != none)
                resume(block.fibers[i].get());
    }
}

void kernels_run(const void *kernel, dim3 grid, dim3 size, void *const *arguments,
                 const KernelTouch &touch)
{
    const auto *found = static_cast<const cudasim_kernel *>(kernel);
    const std::function<void()> body = [&] { found->call(found->function, arguments); };
    touched = &touch;
    block.body = &body;
    gridDim = grid;
    blockDim = size;
    for (unsigned z = 0; z < grid.z; z++)
        for (unsigned y = 0; y < grid.y; y++)
            for (unsigned x = 0; x < grid.x; x++) {
                blockIdx = {x, y, z};
                block.n = size.x * size.y * size.z;
                run_block();
            }
    touched = nullptr;
}

const char *kernels_name(const void *kernel)
{
    Dl_info info;
    dladdr(static_cast<const cudasim_kernel *>(kernel)->function, &info);
    return info.dli_sname;
}

size_t kernels_arguments(const void *kernel, const size_t **ret_sizes, const bool **ret_pointers)
{
    const auto *found = static_cast<const cudasim_kernel *>(kernel);
    *ret_sizes = found->sizes;
    *ret_pointers = found->pointers;
    return found->n;
}

static void touch(void *at, size_t bytes, bool writes)
{
    if (touched)
        (*touched)(at, bytes, writes);
}

} // namespace sim

void cudasim_enroll(const cudasim_kernel &kernel)
{
    Dl_info info;
    if (dladdr(kernel.function, &info) && info.dli_sname)
        sim::enrolled()[info.dli_sname] = kernel;
}

void cudasim_barrier()
{
    sim::Fiber *self = sim::block.now;
    self->waits = true;
    swapcontext(&self->context, &sim::block.scheduler);
}

/* ThreadSanitizer's calls, from libkernels.so alone; as the compiler declares them where it builds
 * with a sanitizer. */
extern "C" {
#define TOUCHES(bytes)                                                                             \
    void __tsan_read##bytes(void *at)                                                              \
    {                                                                                              \
        sim::touch(at, bytes, false);                                                              \
    }                                                                                              \
    void __tsan_write##bytes(void *at)                                                             \
    {                                                                                              \
        sim::touch(at, bytes, true);                                                               \
    }                                                                                              \
    void __tsan_unaligned_read##bytes(void *at)                                                    \
    {                                                                                              \
        sim::touch(at, bytes, false);                                                              \
    }                                                                                              \
    void __tsan_unaligned_write##bytes(void *at)                                                   \
    {                                                                                              \
        sim::touch(at, bytes, true);                                                               \
    }
TOUCHES(1)
TOUCHES(2)
TOUCHES(4)
TOUCHES(8)
TOUCHES(16)
void __tsan_read_range(void *at, long bytes)
{
    sim::touch(at, size_t(bytes), false);
}
void __tsan_write_range(void *at, long bytes)
{
    sim::touch(at, size_t(bytes), true);
}
void __tsan_init()
{
}
void __tsan_func_entry(void *)
{
}
void __tsan_func_exit(void *)
{
}
void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
    sim::touch(const_cast<void *>(from), bytes, false);
    sim::touch(to, bytes, true);
    return memcpy(to, from, bytes);
}
void *__tsan_memset(void *to, int value, size_t bytes)
{
    sim::touch(to, bytes, true);
    return memset(to, value, bytes);
}
}
