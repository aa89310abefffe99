/* nccl.hpp: what the files of the simulated NCCL share.
 *
 * A clique is what one unique id joins; a communicator is one rank of it. A call becomes a Task;
 * the tasks of one group on one communicator and stream make one Work, which is one operation on
 * that stream. When the stream comes to it, its tasks are posted to the clique; a task is done when
 * every rank has posted its own of the same number (a collective), or when its peer has posted the
 * other end (send, receive). What ranks post must fit; where it does not, both calls are reported,
 * and the works never end, as on a real device. Abort ends them.
 */
#ifndef TESTS_CUDASIM_NCCL_HPP
#define TESTS_CUDASIM_NCCL_HPP

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <nccl.h>
#include <string>
#include <thread>

#include "tests/cudasim/library.hpp"

namespace sim
{

struct TaskKind;

struct Task {
    const TaskKind *kind;
    const void *send;
    void *receive;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    int root; /* of a rooted collective; of send and receive the peer */
};

/* Bytes of a task as one rank sees it. */
struct TaskBytes {
    size_t in, out;
};

/* A task that its rank has reached, with usable memory. */
struct Posted {
    Task task;
    const void *in;
    void *out;
    bool done;
};

struct Work {
    std::vector<Task> tasks;
    std::vector<std::shared_ptr<Posted>> posted; /* empty until the stream comes to it */
};

struct TaskKind {
    const char *name;
    bool collective, reduces, rooted;
    TaskBytes (*bytes)(const Task &task, int ranks, int rank);
    /* all[r]: what rank r posted; everything is checked */
    void (*move)(const std::vector<Posted *> &all);
};
extern const TaskKind all_reduce, reduce_scatter, all_gather, broadcast, reduce, send, receive;

size_t nccl_type_bytes(ncclDataType_t type); /* 0: not simulated */
std::string task_text(const Task &task, int rank);

struct Clique {
    std::mutex mutex;
    std::condition_variable joined;
    int ranks;
    std::vector<int> devices; /* -1: that rank has not come yet */
    bool refused;             /* ranks do not fit */
    bool broken;              /* a rank is gone: what it takes part in never ends */
    std::vector<std::deque<std::shared_ptr<Posted>>> waiting; /* collectives, by rank */
    std::map<std::pair<int, int>, std::deque<std::shared_ptr<Posted>>> sends,
        receives;                              /* from, to */
    std::map<size_t, std::thread::id> callers; /* of collectives outside of groups, by number */

    bool complete() const;
};

/* Puts a work's tasks where their counterparts find them. Clique's mutex held. */
void clique_post(Clique *clique, int rank, Work *work, Memory memory);

/* Moves what has come together. Clique's mutex held. True: something moved. */
bool clique_match(Clique *clique);

} // namespace sim

struct ncclComm {
    std::shared_ptr<sim::Clique> clique;
    int rank, device;
    bool blocking, aborted, finalized;
    size_t collectives;  /* called so far */
    cudaStream_t stream; /* of the last work; NULL: none yet */
    std::string error;
};

namespace sim
{

/* Communicators outlive their handles while works are on their way. */
using Comm = std::shared_ptr<ncclComm>;
Comm comm_find(ncclComm_t handle); /* NULL: no communicator */

/* Keeps the sentence for ncclGetLastError; returns the result. */
ncclResult_t nccl_refuse(ncclResult_t result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#define REFUSE_IF(condition, result, ...)                                                          \
    do {                                                                                           \
        if (condition)                                                                             \
            return sim::nccl_refuse(result, __VA_ARGS__);                                          \
    } while (0)

/* Whether a group is open in this thread; then what is given is kept until its end. */
bool group_is_open();
void group_add(const Comm &comm, cudaStream_t stream, const Task &task);

/* Enqueues a communicator's work on a stream. */
ncclResult_t work_enqueue(const Comm &comm, cudaStream_t stream, std::vector<Task> tasks);

} // namespace sim

#endif
