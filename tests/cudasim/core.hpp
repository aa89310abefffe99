/* core.hpp: what the simulated libraries ask of the simulated runtime, beside its CUDA calls. */
#ifndef TESTS_CUDASIM_CORE_HPP
#define TESTS_CUDASIM_CORE_HPP

#include <cuda_runtime_api.h>
#include <functional>
#include <string>

#include "tests/cudasim/number.hpp"

namespace sim
{

/* Device memory that an operation touches: spans count from `data`; no spans where that is NULL. */
struct Access {
    const void *data;
    std::vector<Span> spans;
    bool reads, writes;
};

/* What an operation gets: memory[i] is access i's `data`, usable on the host. */
using Memory = void *const *;

/* Appends an operation to a stream; its name is of static storage. When its turn comes it is tried,
 * and again after each core_retry, until it says that it is done. */
cudaError_t core_enqueue(const char *name, cudaStream_t stream, const std::vector<Access> &accesses,
                         std::function<bool(Memory)> done);

/* Tries once more what is at its turn and was not done. */
void core_retry();

/* A finding: makes the run fail, and tells why. */
void core_report(const char *sentence);

/* The findings since the last call; they are forgotten: for tests that provoke them. */
std::vector<std::string> core_take_findings();

/* Whether the run asked for a fault of this kind, here and now (each call counts). */
bool core_fault(const char *kind);

} // namespace sim

#endif
