/* kernels.hpp: kernels on the host. */
#ifndef TESTS_CUDASIM_KERNELS_HPP
#define TESTS_CUDASIM_KERNELS_HPP

#include <cstddef>
#include <functional>
#include <vector_types.h>

namespace sim
{

/* A module's stub and the kernel's mangled name. */
void kernels_register(const void *stub, const char *name);
/* NULL: no kernel of that name was compiled for the host. */
const void *kernels_find(const void *stub);
const char *kernels_name(const void *kernel); /* mangled, of static storage */
/* Returns how many arguments it takes. */
size_t kernels_arguments(const void *kernel, const size_t **ret_sizes, const bool **ret_pointers);

/* Told of every access that a kernel makes, to whatever memory, before it does. */
using KernelTouch = std::function<void(void *at, size_t bytes, bool writes)>;

/* All blocks, one after another; arguments[i] points to the i-th, as the kernel gets it. */
void kernels_run(const void *kernel, dim3 grid, dim3 block, void *const *arguments,
                 const KernelTouch &touch);

} // namespace sim

#endif
