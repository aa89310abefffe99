/* check_nccl.cc: collectives, send and receive over simulated devices: values to the bit, what is
 * refused, what is reported, and that a collective that never completes can be aborted. */
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nccl.h>
#include <thread>

#include "tests/cudasim/library_test.hpp"

using namespace sim;

/* Ranks 0 … n - 1 on devices of these numbers, driven by one thread. */
struct Ranks {
    std::vector<ncclComm_t> comms;
    std::vector<cudaStream_t> streams;

    explicit Ranks(int n) : comms(size_t(n)), streams(size_t(n))
    {
        EXPECT_OK(ncclCommInitAll(comms.data(), n, nullptr));
        for (int r = 0; r < n; r++) {
            EXPECT_OK(cudaSetDevice(r));
            EXPECT_OK(cudaStreamCreateWithFlags(&streams[size_t(r)], cudaStreamNonBlocking));
        }
    }
    ~Ranks()
    {
        for (size_t r = 0; r < comms.size(); r++) {
            cudaSetDevice(int(r));
            cudaStreamSynchronize(streams[r]);
            if (comms[r])
                ncclCommDestroy(comms[r]);
            cudaStreamDestroy(streams[r]);
        }
        cudaSetDevice(0);
    }
    int count() const
    {
        return int(comms.size());
    }

    /* Calls one(rank, communicator, stream) for each rank within a group. */
    template <typename One> void group(One one)
    {
        EXPECT_OK(ncclGroupStart());
        for (int r = 0; r < count(); r++)
            EXPECT_OK(one(r, comms[size_t(r)], streams[size_t(r)]));
        EXPECT_OK(ncclGroupEnd());
    }
};

/* One buffer a rank, on its device. */
struct Buffers {
    std::vector<std::unique_ptr<Buffer>> all;

    template <typename Values> Buffers(int n, const View &view, Values values)
    {
        for (int r = 0; r < n; r++) {
            EXPECT_OK(cudaSetDevice(r));
            all.push_back(std::make_unique<Buffer>(view, values(r)));
        }
    }
    Buffers(int n, const View &view)
    {
        for (int r = 0; r < n; r++) {
            EXPECT_OK(cudaSetDevice(r));
            all.push_back(std::make_unique<Buffer>(view));
        }
    }
    void *at(int r) const
    {
        return all[size_t(r)]->get();
    }
    doubles read(int r) const
    {
        EXPECT_OK(cudaSetDevice(r));
        return all[size_t(r)]->read();
    }
};

static const int sizes[] = {1, 2, 3, 8};
static const int64_t count = 5;

static double value(int rank, int64_t i)
{
    return double(float(1 + rank) / float(3 + i));
}

static doubles values(int rank, int64_t n)
{
    doubles all;
    for (int64_t i = 0; i < n; i++)
        all.push_back(value(rank, i));
    return all;
}

/* Neighbours in pairs, pairs in pairs, in float. */
static double tree_sum(int ranks, int64_t i)
{
    std::vector<float> sums;
    for (int r = 0; r < ranks; r++)
        sums.push_back(float(value(r, i)));
    for (size_t step = 1; step < sums.size(); step *= 2)
        for (size_t r = 0; r + step < sums.size(); r += 2 * step)
            sums[r] += sums[r + step];
    return double(sums[0]);
}

static void expect_equal(const doubles &found, const doubles &wanted)
{
    ck_assert(found == wanted);
}

START_TEST(all_reduce_adds_in_a_tree)
{
    for (int n : sizes) {
        Ranks ranks(n);
        Buffers in(n, floats({count}), [](int r) { return values(r, count); }),
            out(n, floats({count}));
        doubles wanted;
        for (int64_t i = 0; i < count; i++)
            wanted.push_back(tree_sum(n, i));
        ranks.group([&](int r, ncclComm_t comm, cudaStream_t stream) {
            return ncclAllReduce(in.at(r), out.at(r), count, ncclFloat32, ncclSum, comm, stream);
        });
        ranks.group([&](int r, ncclComm_t comm, cudaStream_t stream) { /* in place */
                                                                       return ncclAllReduce(
                                                                           in.at(r), in.at(r),
                                                                           count, ncclFloat32,
                                                                           ncclSum, comm, stream);
        });
        for (int r = 0; r < n; r++) {
            expect_equal(out.read(r), wanted);
            expect_equal(in.read(r), wanted);
        }
    }
}
END_TEST

START_TEST(scatter_and_gather)
{
    for (int n : sizes) {
        Ranks ranks(n);
        Buffers in(n, floats({count * n}), [=](int r) { return values(r, count * n); });
        Buffers part(n, floats({count})), whole(n, floats({count * n}));
        doubles wanted;
        for (int64_t i = 0; i < count * n; i++)
            wanted.push_back(tree_sum(n, i));
        ranks.group([&](int r, ncclComm_t comm, cudaStream_t stream) {
            return ncclReduceScatter(in.at(r), part.at(r), count, ncclFloat32, ncclSum, comm,
                                     stream);
        });
        ranks.group([&](int r, ncclComm_t comm, cudaStream_t stream) {
            return ncclAllGather(part.at(r), whole.at(r), count, ncclFloat32, comm, stream);
        });
        for (int r = 0; r < n; r++)
            expect_equal(whole.read(r), wanted);
    }
}
END_TEST

START_TEST(roots)
{
    const int n = 3, root = 2;
    Ranks ranks(n);
    Buffers in(n, floats({count}), [](int r) { return values(r, count); });
    Buffers sums(n, floats({count}), [](int) { return doubles(size_t(count), 7.0); });
    Buffers copies(n, floats({count}));
    ranks.group([&](int r, ncclComm_t comm, cudaStream_t stream) {
        return ncclReduce(in.at(r), sums.at(r), count, ncclFloat32, ncclSum, root, comm, stream);
    });
    ranks.group([&](int r, ncclComm_t comm, cudaStream_t stream) {
        return ncclBroadcast(in.at(r), copies.at(r), count, ncclFloat32, root, comm, stream);
    });
    doubles wanted;
    for (int64_t i = 0; i < count; i++)
        wanted.push_back(tree_sum(n, i));
    expect_equal(sums.read(root), wanted);
    expect_equal(sums.read(0), doubles(size_t(count), 7.0));
    for (int r = 0; r < n; r++)
        expect_equal(copies.read(r), values(root, count));
}
END_TEST

/* Each rank sends to the next and receives from the one before: in one group, else all wait for
 * all. */
START_TEST(ring)
{
    const int n = 3;
    Ranks ranks(n);
    Buffers in(n, floats({count}), [](int r) { return values(r, count); }), out(n, floats({count}));
    EXPECT_OK(ncclGroupStart());
    for (int r = 0; r < n; r++) {
        ncclComm_t comm = ranks.comms[size_t(r)];
        cudaStream_t stream = ranks.streams[size_t(r)];
        EXPECT_OK(ncclSend(in.at(r), count, ncclFloat32, (r + 1) % n, comm, stream));
        EXPECT_OK(ncclRecv(out.at(r), count, ncclFloat32, (r + n - 1) % n, comm, stream));
    }
    EXPECT_OK(ncclGroupEnd());
    for (int r = 0; r < n; r++)
        expect_equal(out.read(r), values((r + n - 1) % n, count));
}
END_TEST

START_TEST(other_types)
{
    const int n = 2;
    Ranks ranks(n);
    Buffers low(n, view_packed(Type::bf16, {2}), [](int r) { return doubles{256, double(r)}; });
    Buffers whole(n, view_packed(Type::i64, {2}), [](int r) { return doubles{double(r + 1), -3}; });
    ranks.group([&](int r, ncclComm_t comm, cudaStream_t stream) {
        return ncclAllReduce(low.at(r), low.at(r), 2, ncclBfloat16, ncclAvg, comm, stream);
    });
    ranks.group([&](int r, ncclComm_t comm, cudaStream_t stream) {
        return ncclAllReduce(whole.at(r), whole.at(r), 2, ncclInt64, ncclMax, comm, stream);
    });
    for (int r = 0; r < n; r++) {
        expect_equal(low.read(r), {256, 0.5});
        expect_equal(whole.read(r), {2, -3});
    }
}
END_TEST

/* A thread a rank, without groups, as the engine drives its devices. */
START_TEST(a_thread_a_rank)
{
    const int n = 4;
    ncclUniqueId id;
    EXPECT_OK(ncclGetUniqueId(&id));
    std::vector<doubles> found(n);
    std::vector<std::thread> threads;
    for (int r = 0; r < n; r++)
        threads.emplace_back([=, &found] {
            ncclComm_t comm;
            cudaStream_t stream;
            EXPECT_OK(cudaSetDevice(r));
            EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
            EXPECT_OK(ncclCommInitRank(&comm, n, id, r));
            Buffer buffer(floats({count}), values(r, count));
            for (int step = 0; step < 3; step++)
                EXPECT_OK(ncclAllReduce(buffer.get(), buffer.get(), count, ncclFloat32, ncclMax,
                                        comm, stream));
            EXPECT_OK(cudaStreamSynchronize(stream));
            found[size_t(r)] = buffer.read();
            EXPECT_OK(ncclCommDestroy(comm));
            EXPECT_OK(cudaStreamDestroy(stream));
        });
    for (auto &thread : threads)
        thread.join();
    for (auto &all : found)
        expect_equal(all, values(n - 1, count));
}
END_TEST

START_TEST(nccl_refuses)
{
    ncclComm_t both[2];
    const int same[] = {0, 0};
    EXPECT(ncclCommInitAll(both, 2, same), ncclInvalidUsage);
    Ranks ranks(2);
    Buffers in(2, floats({count}), [](int r) { return values(r, count); });
    ncclComm_t comm = ranks.comms[0];
    cudaStream_t stream = ranks.streams[0];
    EXPECT(ncclAllReduce(nullptr, in.at(0), count, ncclFloat32, ncclSum, comm, stream),
           ncclInvalidArgument);
    EXPECT(ncclAllReduce(in.at(0), in.at(0), count, ncclNumTypes, ncclSum, comm, stream),
           ncclInvalidArgument);
    EXPECT(ncclAllReduce(in.at(0), in.at(0), count, ncclFloat32, ncclRedOp_t(9), comm, stream),
           ncclInvalidArgument);
    EXPECT(ncclAllReduce(in.at(1), in.at(0), count, ncclFloat32, ncclSum, comm, stream),
           ncclInvalidArgument);
    EXPECT(ncclBroadcast(in.at(0), in.at(0), count, ncclFloat32, 2, comm, stream),
           ncclInvalidArgument);
    EXPECT(ncclAllReduce(in.at(0), in.at(0), count, ncclFloat32, ncclSum, comm, ranks.streams[1]),
           ncclInvalidUsage);
    EXPECT(ncclAllReduce(in.at(0), in.at(0), count, ncclFloat32, ncclSum, nullptr, stream),
           ncclInvalidArgument);
    EXPECT(ncclGroupEnd(), ncclInvalidUsage);
}
END_TEST

/* Of ranks that call different things both are told; nothing moves until they give up. */
START_TEST(mismatches_are_reported)
{
    Ranks ranks(2);
    Buffers in(2, floats({count}), [](int r) { return values(r, count); });
    ranks.group([&](int r, ncclComm_t comm, cudaStream_t stream) {
        return ncclAllReduce(in.at(r), in.at(r), size_t(count - r), ncclFloat32, ncclSum, comm,
                             stream);
    });
    for (size_t i = 0; i < 8; i++) /* who polls runs what is ready */
        EXPECT(cudaStreamQuery(ranks.streams[i % 2]), cudaErrorNotReady);
    expect_finding("rank 0: ncclAllReduce(count 5, type 7, sum); rank 1: ncclAllReduce(count 4");
    for (ncclComm_t &comm : ranks.comms) {
        EXPECT_OK(ncclCommAbort(comm));
        comm = nullptr;
    }
    EXPECT_OK(cudaStreamSynchronize(ranks.streams[0]));
    expect_equal(in.read(0), values(0, count));
}
END_TEST

START_TEST(overlaps_are_reported)
{
    Ranks ranks(2);
    Buffers whole(2, floats({2 * count}), [](int r) { return values(r, 2 * count); });
    ranks.group([&](int r, ncclComm_t comm,
                    cudaStream_t stream) { /* in place */
                                           float *out = static_cast<float *>(whole.at(r));
                                           return ncclAllGather(out + r * count, out, count,
                                                                ncclFloat32, comm, stream);
    });
    whole.read(0);
    expect_no_finding();
    ranks.group([&](int r, ncclComm_t comm, cudaStream_t stream) {
        float *out = static_cast<float *>(whole.at(r));
        return ncclAllGather(out + (r == 0), out, count, ncclFloat32, comm, stream);
    });
    whole.read(0);
    std::vector<std::string> findings = core_take_findings();
    ck_assert_uint_eq(findings.size(), 2);
    ck_assert_ptr_nonnull(strstr(findings[0].c_str(), "overlap otherwise than in place"));
}
END_TEST

START_TEST(groups_are_asked_for)
{
    Ranks ranks(2);
    Buffers in(2, floats({count}), [](int r) { return values(r, count); });
    for (int r = 0; r < 2; r++)
        EXPECT_OK(ncclAllReduce(in.at(r), in.at(r), count, ncclFloat32, ncclSum,
                                ranks.comms[size_t(r)], ranks.streams[size_t(r)]));
    expect_finding("one thread calls collective 0 for two ranks without a group");
}
END_TEST

/* What never completes leaves its streams busy, and no error; abort ends it. */
START_TEST(abort_ends_what_hangs)
{
    setenv("CUDASIM_FAULT", "collective:1", 1);
    Ranks ranks(2);
    Buffers in(2, floats({count}), [](int r) { return values(r, count); });
    ranks.group([&](int r, ncclComm_t comm, cudaStream_t stream) {
        return ncclAllReduce(in.at(r), in.at(r), count, ncclFloat32, ncclSum, comm, stream);
    });
    ncclResult_t error;
    for (size_t r = 0; r < 2; r++) {
        EXPECT(cudaStreamQuery(ranks.streams[r]), cudaErrorNotReady);
        EXPECT_OK(ncclCommGetAsyncError(ranks.comms[r], &error));
        EXPECT(error, ncclSuccess);
    }
    for (size_t r = 0; r < 2; r++) {
        EXPECT_OK(ncclCommAbort(ranks.comms[r]));
        ranks.comms[r] = nullptr;
        EXPECT_OK(cudaStreamSynchronize(ranks.streams[r]));
    }
    unsetenv("CUDASIM_FAULT");
}
END_TEST

int main()
{
    return run_suite("nccl", {all_reduce_adds_in_a_tree, scatter_and_gather, roots, ring,
                              other_types, a_thread_a_rank, nccl_refuses, mismatches_are_reported,
                              overlaps_are_reported, groups_are_asked_for, abort_ends_what_hangs});
}
