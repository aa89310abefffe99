/* nccl.cc: NCCL's calls: communicators, groups, collectives, send and receive. */
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "tests/cudasim/nccl.hpp"

namespace sim
{

static thread_local char last_error[512];

ncclResult_t nccl_refuse(ncclResult_t result, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(last_error, sizeof last_error, format, arguments);
    va_end(arguments);
    return result;
}

/* All of the process. */
static struct {
    std::mutex mutex;
    uint64_t ids;
    std::map<uint64_t, std::shared_ptr<Clique>> cliques; /* that not every rank has joined */
    std::map<ncclComm_t, Comm> comms;
} world;

Comm comm_find(ncclComm_t handle)
{
    std::lock_guard<std::mutex> lock(world.mutex);
    auto found = world.comms.find(handle);
    return found == world.comms.end() ? nullptr : found->second;
}

/* Groups. What is called in one is kept by thread, and put on the streams at its end. */
struct Batch {
    Comm comm;
    cudaStream_t stream;
    std::vector<Task> tasks;
};
static thread_local int group_depth;
static thread_local std::vector<Batch> group_batches;
static thread_local std::vector<Comm> group_joins;

bool group_is_open()
{
    return group_depth > 0;
}

void group_add(const Comm &comm, cudaStream_t stream, const Task &task)
{
    for (Batch &batch : group_batches)
        if (batch.comm == comm && batch.stream == stream)
            return batch.tasks.push_back(task);
    group_batches.push_back({comm, stream, {task}});
}

/* Until every rank has come, or someone gave up. */
static ncclResult_t wait_for_ranks(const Comm &comm)
{
    Clique &clique = *comm->clique;
    std::unique_lock<std::mutex> lock(clique.mutex);
    clique.joined.wait(lock, [&] { return clique.complete() || clique.refused || comm->aborted; });
    REFUSE_IF(clique.refused || comm->aborted, ncclInvalidUsage,
              "rank %d: two ranks on one device, or of one number (or aborted)", comm->rank);
    return ncclSuccess;
}

/* What a rank brings to its clique, checked. */
static ncclResult_t join(Clique *clique, int ranks, int rank, int device)
{
    std::lock_guard<std::mutex> lock(clique->mutex);
    bool twice =
        std::find(clique->devices.begin(), clique->devices.end(), device) != clique->devices.end();
    if (twice || clique->ranks != ranks || clique->devices[size_t(rank)] >= 0)
        clique->refused = true;
    clique->devices[size_t(rank)] = device;
    clique->joined.notify_all();
    REFUSE_IF(twice, ncclInvalidUsage, "rank %d: another rank uses device %d", rank, device);
    REFUSE_IF(clique->refused, ncclInvalidArgument, "rank %d of %d has come twice, or ranks differ",
              rank, ranks);
    return ncclSuccess;
}

static std::shared_ptr<Clique> clique_of(uint64_t id, int ranks)
{
    std::lock_guard<std::mutex> lock(world.mutex);
    auto &clique = world.cliques[id];
    if (!clique) {
        clique = std::make_shared<Clique>();
        clique->ranks = ranks;
        clique->devices.assign(size_t(ranks), -1);
        clique->waiting.resize(size_t(ranks));
    }
    return clique;
}

static ncclResult_t init_rank(ncclComm_t *handle, int ranks, const ncclUniqueId &unique, int rank,
                              bool blocking)
{
    uint64_t id;
    memcpy(&id, unique.internal, sizeof id);
    REFUSE_IF(!handle || ranks < 1 || rank < 0 || rank >= ranks || id == 0, ncclInvalidArgument,
              "rank %d of %d, or no id", rank, ranks);
    std::shared_ptr<Clique> clique = clique_of(id, ranks);
    ncclResult_t result = join(clique.get(), ranks, rank, current_device());
    if (result != ncclSuccess)
        return result;
    auto comm = std::make_shared<ncclComm>(
        ncclComm{clique, rank, current_device(), blocking, false, false, 0, nullptr, {}});
    {
        std::lock_guard<std::mutex> lock(world.mutex);
        world.comms[comm.get()] = comm;
    }
    *handle = comm.get();
    if (group_is_open()) {
        group_joins.push_back(comm);
        return ncclSuccess;
    }
    if (!blocking)
        return clique->complete() ? ncclSuccess : ncclInProgress;
    return wait_for_ranks(comm);
}

/* NCCL keeps one communicator's works in the order of calls also over streams. */
static cudaError_t follow(const Comm &comm, cudaStream_t stream)
{
    if (!comm->stream || comm->stream == stream)
        return cudaSuccess;
    cudaEvent_t event;
    cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (error == cudaSuccess)
        error = cudaEventRecord(event, comm->stream);
    if (error == cudaSuccess)
        error = cudaStreamWaitEvent(stream, event, 0);
    cudaEventDestroy(event);
    return error;
}

/* Posts the work when it is first tried; says whether all of it is done. */
static bool attempt(const Comm &comm, const std::shared_ptr<Work> &work, bool hangs, Memory memory)
{
    Clique &clique = *comm->clique;
    std::lock_guard<std::mutex> lock(clique.mutex);
    if (comm->aborted)
        return true;
    if (hangs)
        return false;
    if (work->posted.empty())
        clique_post(&clique, comm->rank, work.get(), memory);
    if (clique_match(&clique))
        core_retry();
    bool done =
        std::all_of(work->posted.begin(), work->posted.end(), [](auto &p) { return p->done; });
    if (done)
        work->posted.clear(); /* a graph runs it again */
    return done;
}

ncclResult_t work_enqueue(const Comm &comm, cudaStream_t stream, std::vector<Task> tasks)
{
    REFUSE_IF(stream_device(stream) != comm->device, ncclInvalidUsage,
              "%s: the stream is of device %d, the communicator of %d", tasks[0].kind->name,
              stream_device(stream), comm->device);
    REFUSE_IF(follow(comm, stream) != cudaSuccess, ncclUnhandledCudaError,
              "no order between streams");
    Launch launch(tasks[0].kind->name, stream);
    for (const Task &task : tasks) {
        TaskBytes bytes = task.kind->bytes(task, comm->clique->ranks, comm->rank);
        launch.in(bytes.in ? task.send : nullptr, std::vector<Span>{{0, bytes.in}});
        launch.out(bytes.out ? task.receive : nullptr, std::vector<Span>{{0, bytes.out}});
    }
    launch.allow(Launch::Overlap::any); /* check_pointers knows the rules */
    auto work = std::make_shared<Work>(Work{std::move(tasks), {}});
    bool hangs = core_fault("collective");
    cudaError_t error =
        launch.enqueue_until([=](Memory memory) { return attempt(comm, work, hangs, memory); });
    comm->stream = stream;
    REFUSE_IF(error != cudaSuccess, ncclUnhandledCudaError, "%s", cudaGetErrorString(error));
    return ncclSuccess;
}

/* Whether this thread calls a collective for a second rank. */
static bool calls_twice(const Comm &comm, size_t number)
{
    Clique &clique = *comm->clique;
    std::lock_guard<std::mutex> lock(clique.mutex);
    auto caller = clique.callers.find(number);
    std::thread::id self = std::this_thread::get_id();
    bool twice = caller != clique.callers.end() && caller->second == self;
    clique.callers[number] = self;
    if (number > 64) /* long past */
        clique.callers.erase(number - 64);
    return twice;
}

/* One thread that serves several ranks needs a group: without one the first rank's call may wait
 * for the second's. */
static void check_group(const Comm &comm)
{
    size_t number = comm->collectives++;
    if (!group_is_open() && calls_twice(comm, number))
        report("nccl: one thread calls collective %zu for two ranks without a group", number);
}

/* In place is where NCCL's guide says so: of a gathered or scattered whole the rank's own part. */
static bool overlaps(const Comm &comm, const Task &task, TaskBytes bytes)
{
    uintptr_t in = uintptr_t(task.send), out = uintptr_t(task.receive);
    size_t rank = size_t(comm->rank);
    if (!bytes.in || !bytes.out || in >= out + bytes.out || out >= in + bytes.in)
        return false;
    return bytes.in < bytes.out ? in != out + rank * bytes.in
                                : out != in + (bytes.in - bytes.out ? rank * bytes.out : 0);
}

static ncclResult_t check_pointers(const Comm &comm, const Task &task)
{
    TaskBytes bytes = task.kind->bytes(task, comm->clique->ranks, comm->rank);
    if (overlaps(comm, task, bytes))
        report("%s: its buffers overlap otherwise than in place",
               task_text(task, comm->rank).c_str());
    const void *pointers[] = {bytes.in ? task.send : nullptr, bytes.out ? task.receive : nullptr};
    REFUSE_IF((bytes.in && !task.send) || (bytes.out && !task.receive), ncclInvalidArgument,
              "%s: a buffer is NULL", task.kind->name);
    for (const void *pointer : pointers)
        REFUSE_IF(pointer && pointer_device(pointer) != comm->device, ncclInvalidArgument,
                  "%s: %p is not memory of device %d", task.kind->name, pointer, comm->device);
    return ncclSuccess;
}

static ncclResult_t call(ncclComm_t handle, cudaStream_t stream, const Task &task)
{
    Comm comm = comm_find(handle);
    const char *name = task.kind->name;
    REFUSE_IF(!comm, ncclInvalidArgument, "%s: no communicator", name);
    REFUSE_IF(comm->finalized, ncclInvalidUsage, "%s: the communicator is finalized", name);
    REFUSE_IF(!comm->clique->complete(), ncclInvalidUsage, "%s: not every rank has joined", name);
    REFUSE_IF(nccl_type_bytes(task.type) == 0, ncclInvalidArgument,
              "%s: type %d (or not simulated)", name, task.type);
    REFUSE_IF(task.kind->reduces && unsigned(task.op) >= ncclNumOps, ncclInvalidArgument,
              "%s: operation %d", name, task.op);
    bool needs_root = task.kind->rooted || !task.kind->collective;
    REFUSE_IF(needs_root && (task.root < 0 || task.root >= comm->clique->ranks),
              ncclInvalidArgument, "%s: root or peer %d of %d ranks", name, task.root,
              comm->clique->ranks);
    ncclResult_t result = check_pointers(comm, task);
    if (result != ncclSuccess)
        return result;
    if (task.kind->collective)
        check_group(comm);
    if (!group_is_open())
        return work_enqueue(comm, stream, {task});
    group_add(comm, stream, task);
    return ncclSuccess;
}

} // namespace sim

using namespace sim;

ncclResult_t ncclGetVersion(int *version)
{
    REFUSE_IF(!version, ncclInvalidArgument, "ncclGetVersion: NULL");
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *unique)
{
    REFUSE_IF(!unique, ncclInvalidArgument, "ncclGetUniqueId: NULL");
    std::lock_guard<std::mutex> lock(world.mutex);
    uint64_t id = ++world.ids;
    memset(unique, 0, sizeof *unique);
    memcpy(unique->internal, &id, sizeof id);
    return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
    return init_rank(comm, ranks, id, rank, true);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    const ncclConfig_t standard = NCCL_CONFIG_INITIALIZER;
    REFUSE_IF(config && (config->size != standard.size || config->magic != standard.magic),
              ncclInvalidArgument, "the configuration was not made by NCCL_CONFIG_INITIALIZER");
    return init_rank(comm, ranks, id, rank, !config || config->blocking != 0);
}

ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *devices)
{
    ncclUniqueId id;
    REFUSE_IF(!comms || count < 1, ncclInvalidArgument, "ncclCommInitAll: NULL, or no devices");
    ncclGetUniqueId(&id);
    int before = current_device();
    ncclResult_t result = ncclSuccess;
    ncclGroupStart();
    for (int i = 0; i < count && result == ncclSuccess; i++) {
        bool set = cudaSetDevice(devices ? devices[i] : i) == cudaSuccess;
        result = set ? ncclCommInitRank(&comms[i], count, id, i) : ncclInvalidArgument;
    }
    if (result != ncclSuccess) /* the rest never comes */
        group_joins.clear();
    ncclResult_t ended = ncclGroupEnd();
    cudaSetDevice(before);
    return result != ncclSuccess ? result : ended;
}

/* Ends what waits; the handle is gone. */
static void leave(const Comm &comm, bool abort)
{
    {
        std::lock_guard<std::mutex> lock(comm->clique->mutex);
        comm->aborted = abort;
        comm->clique->broken |= abort;
        comm->clique->joined.notify_all();
    }
    {
        std::lock_guard<std::mutex> lock(world.mutex);
        world.comms.erase(comm.get());
    }
    core_retry();
}

ncclResult_t ncclCommFinalize(ncclComm_t handle)
{
    Comm comm = comm_find(handle);
    REFUSE_IF(!comm, ncclInvalidArgument, "ncclCommFinalize: no communicator");
    comm->finalized = true;
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t handle)
{
    Comm comm = comm_find(handle);
    REFUSE_IF(!comm, ncclInvalidArgument, "ncclCommDestroy: no communicator");
    leave(comm, false);
    return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t handle)
{
    Comm comm = comm_find(handle);
    REFUSE_IF(!comm, ncclInvalidArgument, "ncclCommAbort: no communicator");
    leave(comm, true);
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t *error)
{
    Comm comm = comm_find(handle);
    REFUSE_IF(!comm || !error, ncclInvalidArgument, "ncclCommGetAsyncError: NULL");
    std::lock_guard<std::mutex> lock(comm->clique->mutex);
    bool joining = !comm->clique->complete();
    *error = comm->clique->refused && joining ? ncclInvalidUsage
             : joining                        ? ncclInProgress
                                              : ncclSuccess;
    return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t handle, int *count)
{
    Comm comm = comm_find(handle);
    REFUSE_IF(!comm || !count, ncclInvalidArgument, "ncclCommCount: NULL");
    *count = comm->clique->ranks;
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t handle, int *rank)
{
    Comm comm = comm_find(handle);
    REFUSE_IF(!comm || !rank, ncclInvalidArgument, "ncclCommUserRank: NULL");
    *rank = comm->rank;
    return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t handle, int *device)
{
    Comm comm = comm_find(handle);
    REFUSE_IF(!comm || !device, ncclInvalidArgument, "ncclCommCuDevice: NULL");
    *device = comm->device;
    return ncclSuccess;
}

ncclResult_t ncclGroupStart()
{
    group_depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd()
{
    REFUSE_IF(group_depth == 0, ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
    if (--group_depth > 0)
        return ncclSuccess;
    ncclResult_t first = ncclSuccess;
    std::vector<Batch> batches = std::move(group_batches);
    std::vector<Comm> joins = std::move(group_joins);
    group_batches.clear();
    group_joins.clear();
    for (const Comm &comm : joins) {
        bool waits = comm->blocking;
        ncclResult_t result = waits ? wait_for_ranks(comm) : ncclSuccess;
        first = first == ncclSuccess ? result : first;
    }
    for (Batch &batch : batches) {
        ncclResult_t result = work_enqueue(batch.comm, batch.stream, std::move(batch.tasks));
        first = first == ncclSuccess ? result : first;
    }
    return first;
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return call(comm, stream, {&all_reduce, in, out, count, type, op, 0});
}

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
    return call(comm, stream, {&reduce_scatter, in, out, count, type, op, 0});
}

ncclResult_t ncclAllGather(const void *in, void *out, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream)
{
    return call(comm, stream, {&all_gather, in, out, count, type, ncclSum, 0});
}

ncclResult_t ncclBroadcast(const void *in, void *out, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream)
{
    return call(comm, stream, {&broadcast, in, out, count, type, ncclSum, root});
}

ncclResult_t ncclReduce(const void *in, void *out, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
    return call(comm, stream, {&reduce, in, out, count, type, op, root});
}

ncclResult_t ncclSend(const void *in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return call(comm, stream, {&send, in, nullptr, count, type, ncclSum, peer});
}

ncclResult_t ncclRecv(void *out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream)
{
    return call(comm, stream, {&receive, nullptr, out, count, type, ncclSum, peer});
}

const char *ncclGetErrorString(ncclResult_t result)
{
    static const char *const texts[] = {"no error",
                                        "unhandled cuda error",
                                        "unhandled system error",
                                        "internal error",
                                        "invalid argument",
                                        "invalid usage",
                                        "remote process exited or there was a network error",
                                        "NCCL operation in progress"};
    return unsigned(result) < std::size(texts) ? texts[result] : "unknown result code";
}

const char *ncclGetLastError(ncclComm_t)
{
    return last_error;
}
