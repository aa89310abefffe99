/* runtime.hpp: what the files of the simulated libcudart share.
 *
 * Nothing runs by itself. Calls append operations to streams; whoever waits for one, or asks
 * whether it is done, runs operations whose turn it is in an order drawn from CUDASIM_SEED. So a
 * seed gives one trace, and delays are free.
 */
#ifndef TESTS_CUDASIM_RUNTIME_HPP
#define TESTS_CUDASIM_RUNTIME_HPP

#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <random>

#include "tests/cudasim/core.hpp"
#include "tests/cudasim/shadow.hpp"

namespace sim
{

struct Operation {
    const char *name;              /* of static storage */
    std::function<bool()> attempt; /* says whether it is done */
    std::vector<std::shared_ptr<Operation>> after;
    Clock clock;
    bool done, tried; /* tried: nothing has changed since it was not done */
};
using Op = std::shared_ptr<Operation>;

struct Stream {
    int device;
    bool legacy,
        blocking; /* legacy: the device's default stream, which blocking ones keep in order with */
    size_t component; /* of clocks */
    std::deque<Op> queue;
    Op last;
    Clock clock;
};

struct Event {
    bool recorded;
    Op op; /* the last of the stream when it was recorded; NULL: the stream was empty */
    Clock clock;
};

/* Device memory. The host's pointer lies in memory that nobody may touch; operations get the other
 * view of it. Pinned memory of the host is device -1's, and one view for both. */
struct Block {
    char *pointer, *memory;
    size_t bytes, mapped;
    int device;
    std::unique_ptr<Shadow> shadow;
};

constexpr int device_max = 8;

struct Runtime {
    std::recursive_mutex mutex;
    std::condition_variable_any changed;
    std::mt19937_64 random;
    int devices;
    size_t limit_bytes; /* a device's memory */
    size_t used_bytes[device_max];
    std::list<Stream *> streams; /* the default ones too */
    Stream *standard[device_max];
    size_t components;
    Clock host; /* what any thread has waited for */
    std::map<uintptr_t, Block> blocks;
    std::vector<std::string> findings;
    std::map<std::string, int> calls; /* of core_fault, by kind */
    Runtime();
    ~Runtime();
};

using Lock = std::unique_lock<std::recursive_mutex>;

Runtime &runtime();
int thread_device();

Stream *stream_of(cudaStream_t stream);
Stream *stream_new(int device, bool legacy, bool blocking);

/* Appends an operation and fixes its clock. Mutex held. */
Op enqueue(Stream *stream, const char *name, std::function<bool()> attempt);

/* Runs operations until it is done (NULL: nothing to wait for). The mutex is held once. */
void wait_for(const Op &op, Lock *lock);

/* Runs at most one operation. */
void run_one();

/* The block of a pointer, or NULL. Mutex held. */
Block *block_of(const void *pointer);

/* Notes what an operation touches, when it runs: what a kernel touches is not known before. Reports
 * what is wrong. False: outside of memory, it must not run. */
bool touch(const char *name, const Stream *stream, const Op &op, const Access &access);

void finding(const std::string &sentence);

/* What cudaGetLastError will say. */
cudaError_t fail(cudaError_t error);

} // namespace sim

#endif
