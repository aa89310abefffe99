/* nccl_move.cc: the kinds of tasks, how ranks' tasks find each other, and what then moves.
 *
 * Sums are added in one fixed tree whatever the order of arrival: neighbours in pairs, pairs in
 * pairs, each sum rounded to the type, so that every rank has the same bits, run after run.
 */
#include <algorithm>
#include <cstring>

#include "tests/cudasim/nccl.hpp"

namespace sim
{

static const struct {
    ncclDataType_t data_type;
    Type type;
    const char *name;
} types[] = {
    {ncclInt8, Type::i8, "int8"},           {ncclUint8, Type::u8, "uint8"},
    {ncclInt32, Type::i32, "int32"},        {ncclUint32, Type::u32, "uint32"},
    {ncclInt64, Type::i64, "int64"},        {ncclUint64, Type::u64, "uint64"},
    {ncclFloat32, Type::f32, "float32"},    {ncclFloat64, Type::f64, "float64"},
    {ncclBfloat16, Type::bf16, "bfloat16"},
};

static Type type_of(ncclDataType_t data_type)
{
    for (auto &row : types)
        if (row.data_type == data_type)
            return row.type;
    return Type::none;
}

size_t nccl_type_bytes(ncclDataType_t data_type)
{
    Type type = type_of(data_type);
    return type == Type::none ? 0 : type_bytes(type);
}

static size_t bytes_of(const Task &task)
{
    return task.count * nccl_type_bytes(task.type);
}

static const char *const op_names[] = {"sum", "prod", "max", "min", "avg"};

std::string task_text(const Task &task, int rank)
{
    std::string text = "rank " + std::to_string(rank) + ": " + task.kind->name + "(count " +
                       std::to_string(task.count) + ", type " + std::to_string(task.type);
    if (task.kind->reduces)
        text += std::string(", ") + op_names[task.op];
    if (task.kind->rooted)
        text += ", root " + std::to_string(task.root);
    if (!task.kind->collective)
        text += ", peer " + std::to_string(task.root);
    return text + ")";
}

static const struct {
    double (*join)(double a, double b);
} ops[] = {
    {[](double a, double b) { return a + b; }},
    {[](double a, double b) { return a * b; }},
    {[](double a, double b) { return std::max(a, b); }},
    {[](double a, double b) { return std::min(a, b); }},
    {[](double a, double b) { return a + b; }}, /* the average: divided at the end */
};

/* One element over all ranks. Whole numbers beyond 2^53 would lose bits on the way. */
static double join_element(const Task &task, Type type, const std::vector<Posted *> &all, int64_t i)
{
    doubles values;
    for (Posted *posted : all)
        values.push_back(number_load(type, posted->in, i));
    char rounded[8];
    for (size_t step = 1; step < values.size(); step *= 2)
        for (size_t r = 0; r + step < values.size(); r += 2 * step) {
            number_store(type, rounded, 0, ops[task.op].join(values[r], values[r + step]));
            values[r] = number_load(type, rounded, 0);
        }
    return task.op == ncclAvg ? values[0] / double(values.size()) : values[0];
}

/* All elements, joined, in bytes of the task's type. */
static std::vector<char> join(const std::vector<Posted *> &all, size_t count)
{
    const Task &task = all[0]->task;
    Type type = type_of(task.type);
    std::vector<char> joined(count * type_bytes(type));
    for (size_t i = 0; i < count; i++)
        number_store(type, joined.data(), int64_t(i), join_element(task, type, all, int64_t(i)));
    return joined;
}

/* memmove of what may be nothing */
static void copy(void *to, const void *from, size_t bytes)
{
    if (bytes)
        memmove(to, from, bytes);
}

static void move_all_reduce(const std::vector<Posted *> &all)
{
    std::vector<char> joined = join(all, all[0]->task.count);
    for (Posted *posted : all)
        copy(posted->out, joined.data(), joined.size());
}

static void move_reduce(const std::vector<Posted *> &all)
{
    std::vector<char> joined = join(all, all[0]->task.count);
    copy(all[size_t(all[0]->task.root)]->out, joined.data(), joined.size());
}

static void move_reduce_scatter(const std::vector<Posted *> &all)
{
    std::vector<char> joined = join(all, all[0]->task.count * all.size());
    size_t bytes = bytes_of(all[0]->task);
    for (size_t r = 0; r < all.size(); r++)
        copy(all[r]->out, joined.data() + r * bytes, bytes);
}

static void move_all_gather(const std::vector<Posted *> &all)
{
    size_t bytes = bytes_of(all[0]->task);
    std::vector<char> gathered(bytes * all.size());
    for (size_t r = 0; r < all.size(); r++)
        copy(gathered.data() + r * bytes, all[r]->in, bytes);
    for (Posted *posted : all)
        copy(posted->out, gathered.data(), gathered.size());
}

static void move_broadcast(const std::vector<Posted *> &all)
{
    const Posted *root = all[size_t(all[0]->task.root)];
    std::vector<char> value(bytes_of(root->task));
    copy(value.data(), root->in, value.size());
    for (Posted *posted : all)
        copy(posted->out, value.data(), value.size());
}

/* all: the send and the receive */
static void move_pair(const std::vector<Posted *> &all)
{
    copy(all[1]->out, all[0]->in, bytes_of(all[0]->task));
}

const TaskKind all_reduce = {"ncclAllReduce",
                             true,
                             true,
                             false,
                             [](const Task &t, int, int) {
                                 return TaskBytes{bytes_of(t), bytes_of(t)};
                             },
                             move_all_reduce};
const TaskKind reduce_scatter = {"ncclReduceScatter",
                                 true,
                                 true,
                                 false,
                                 [](const Task &t, int ranks, int) {
                                     return TaskBytes{bytes_of(t) * size_t(ranks), bytes_of(t)};
                                 },
                                 move_reduce_scatter};
const TaskKind all_gather = {"ncclAllGather",
                             true,
                             false,
                             false,
                             [](const Task &t, int ranks, int) {
                                 return TaskBytes{bytes_of(t), bytes_of(t) * size_t(ranks)};
                             },
                             move_all_gather};
const TaskKind broadcast = {"ncclBroadcast",
                            true,
                            false,
                            true,
                            [](const Task &t, int, int rank) {
                                return TaskBytes{rank == t.root ? bytes_of(t) : 0, bytes_of(t)};
                            },
                            move_broadcast};
const TaskKind reduce = {"ncclReduce",
                         true,
                         true,
                         true,
                         [](const Task &t, int, int rank) {
                             return TaskBytes{bytes_of(t), rank == t.root ? bytes_of(t) : 0};
                         },
                         move_reduce};
const TaskKind send = {"ncclSend",
                       false,
                       false,
                       false,
                       [](const Task &t, int, int) { return TaskBytes{bytes_of(t), 0}; },
                       move_pair};
const TaskKind receive = {"ncclRecv",
                          false,
                          false,
                          false,
                          [](const Task &t, int, int) { return TaskBytes{0, bytes_of(t)}; },
                          move_pair};

bool Clique::complete() const
{
    return std::find(devices.begin(), devices.end(), -1) == devices.end();
}

void clique_post(Clique *clique, int rank, Work *work, Memory memory)
{
    for (size_t i = 0; i < work->tasks.size(); i++) {
        const Task &task = work->tasks[i];
        auto posted =
            std::make_shared<Posted>(Posted{task, memory[2 * i], memory[2 * i + 1], false});
        work->posted.push_back(posted);
        if (task.kind->collective)
            clique->waiting[size_t(rank)].push_back(posted);
        else if (task.kind == &send)
            clique->sends[{rank, task.root}].push_back(posted);
        else
            clique->receives[{task.root, rank}].push_back(posted);
    }
}

static bool fit(const Task &a, const Task &b)
{
    return a.kind == b.kind && a.count == b.count && a.type == b.type &&
           (!a.kind->reduces || a.op == b.op) && (!a.kind->rooted || a.root == b.root);
}

/* The collective that every rank has come to. */
static bool match_collective(Clique *clique)
{
    std::vector<Posted *> all;
    for (auto &queue : clique->waiting) {
        if (queue.empty())
            return false;
        all.push_back(queue.front().get());
    }
    for (size_t r = 1; r < all.size(); r++)
        if (!fit(all[0]->task, all[r]->task)) {
            if (!clique->refused)
                report("nccl: ranks differ: %s; %s", task_text(all[0]->task, 0).c_str(),
                       task_text(all[r]->task, int(r)).c_str());
            clique->refused = true;
            return false;
        }
    all[0]->task.kind->move(all);
    for (auto &queue : clique->waiting) {
        queue.front()->done = true;
        queue.pop_front();
    }
    return true;
}

static bool match_pair(Clique *clique)
{
    for (auto &pair : clique->sends) {
        auto &sends = pair.second, &receives = clique->receives[pair.first];
        if (sends.empty() || receives.empty())
            continue;
        Posted *from = sends.front().get(), *to = receives.front().get();
        if (from->task.count != to->task.count || from->task.type != to->task.type) {
            if (!clique->refused)
                report("nccl: ends differ: %s; %s", task_text(from->task, pair.first.first).c_str(),
                       task_text(to->task, pair.first.second).c_str());
            clique->refused = true;
            continue;
        }
        send.move({from, to});
        from->done = to->done = true;
        sends.pop_front();
        receives.pop_front();
        return true;
    }
    return false;
}

bool clique_match(Clique *clique)
{
    bool moved = false;
    while (!clique->broken && (match_collective(clique) || match_pair(clique)))
        moved = true;
    return moved;
}

} // namespace sim
