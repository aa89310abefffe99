/* check_runtime.cc: streams, events and memory, on several seeds: what is ordered has its value,
 * what is not is reported, whatever the order that the seed draws. */
#include <cmath>
#include <cstdlib>
#include <cublas_v2.h>

#include "tests/cudasim/library_test.hpp"

using namespace sim;

static const int seeds = 12;

/* A loop test's number is its seed; before the first call, in the test's own process. */
static void use_seed(int seed)
{
    setenv("CUDASIM_SEED", std::to_string(seed + 1).c_str(), 1);
}

struct Streams {
    cudaStream_t a, b;
    cudaEvent_t event;
    Streams()
    {
        EXPECT_OK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
        EXPECT_OK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
        EXPECT_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    }
    ~Streams()
    {
        cudaStreamDestroy(a);
        cudaStreamDestroy(b);
        cudaEventDestroy(event);
    }
};

static const float one = 1, zero = 0;

/* c = 2x2 products a b, on a stream of its own. */
static void product(cublasHandle_t handle, cudaStream_t stream, const Buffer &a, const Buffer &b,
                    const Buffer &c)
{
    EXPECT_OK(cublasSetStream(handle, stream));
    EXPECT_OK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, (float *)a.get(), 2,
                          (float *)b.get(), 2, &zero, (float *)c.get(), 2));
}

/* Twice around: a chain of products that changes its stream each time. */
static doubles chain(bool waits)
{
    Streams s;
    cublasHandle_t handle;
    EXPECT_OK(cublasCreate(&handle));
    Buffer twist(floats({2, 2}), {0, 1, 1, 1}), x(floats({2, 2}), {1, 0, 0, 1}), y(floats({2, 2}));
    for (int i = 0; i < 4; i++) {
        cudaStream_t here = i % 2 ? s.b : s.a, next = i % 2 ? s.a : s.b;
        product(handle, here, i % 2 ? y : x, twist, i % 2 ? x : y);
        EXPECT_OK(cudaEventRecord(s.event, here));
        if (waits)
            EXPECT_OK(cudaStreamWaitEvent(next, s.event, 0));
    }
    doubles result = x.read();
    EXPECT_OK(cublasDestroy(handle));
    return result;
}

START_TEST(events_order_streams)
{
    use_seed(_i);
    ck_assert(chain(true) == doubles({2, 3, 3, 5}));
    expect_no_finding();
}
END_TEST

START_TEST(missing_waits_are_found)
{
    use_seed(_i);
    chain(false);
    std::vector<std::string> findings = core_take_findings();
    ck_assert(!findings.empty());
    /* by the seed the reader came first: then nobody had written */
    ck_assert_msg(findings[0].find("in no order with") != std::string::npos ||
                      findings[0].find("reads what nobody wrote") != std::string::npos,
                  "%s", findings[0].c_str());
}
END_TEST

/* Two streams write one number in no order: both outcomes come about. */
START_TEST(order_is_drawn)
{
    use_seed(_i);
    Streams s;
    Buffer x(floats({1}));
    int zeros = 0;
    for (int i = 0; i < 40; i++) {
        EXPECT_OK(cudaMemsetAsync(x.get(), 0, 4, s.a));
        EXPECT_OK(cudaMemsetAsync(x.get(), 1, 4, s.b));
        zeros += x.read()[0] == 0;
    }
    ck_assert_int_gt(zeros, 5);
    ck_assert_int_lt(zeros, 35);
    ck_assert_uint_eq(core_take_findings().size(), 40);
}
END_TEST

START_TEST(unwritten_memory_is_found)
{
    Buffer x(floats({4})), y(floats({4}));
    EXPECT_OK(cudaMemcpy(y.get(), x.get(), 16, cudaMemcpyDeviceToDevice));
    expect_finding("reads what nobody wrote");
    ck_assert(std::isnan(y.read()[0])); /* poison */
}
END_TEST

START_TEST(memory_has_ends)
{
    Buffer x(floats({4}), {1, 2, 3, 4});
    EXPECT_OK(cudaMemsetAsync(x.get(), 0, 20, nullptr));
    EXPECT_OK(cudaDeviceSynchronize());
    expect_finding("touches 20 bytes of 16");
    void *gone;
    EXPECT_OK(cudaMalloc(&gone, 64));
    EXPECT_OK(cudaFree(gone));
    cublasHandle_t handle;
    EXPECT_OK(cublasCreate(&handle));
    EXPECT_OK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, (float *)x.get(), 2,
                          (float *)x.get(), 2, &zero, (float *)gone, 2));
    EXPECT_OK(cudaDeviceSynchronize());
    expect_finding("no device memory");
    EXPECT(cudaFree(gone), cudaErrorInvalidValue);
    EXPECT_OK(cublasDestroy(handle));
}
END_TEST

START_TEST(devices_keep_their_memory)
{
    Buffer x(floats({2, 2}), {1, 2, 3, 4});
    EXPECT_OK(cudaSetDevice(1));
    cublasHandle_t handle;
    EXPECT_OK(cublasCreate(&handle));
    Buffer y(floats({2, 2}));
    product(handle, nullptr, x, x, y);
    std::vector<std::string> findings = core_take_findings();
    ck_assert(!findings.empty());
    ck_assert(findings[0].find("on device 1, touches memory of device 0") != std::string::npos);
    EXPECT_OK(cudaSetDevice(0)); /* a handle of the other device */
    EXPECT(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, (float *)x.get(), 2,
                       (float *)x.get(), 2, &zero, (float *)x.get(), 2),
           CUBLAS_STATUS_EXECUTION_FAILED);
    EXPECT_OK(cublasDestroy(handle));
}
END_TEST

START_TEST(memory_runs_out)
{
    setenv("CUDASIM_MEMORY", "1000", 1);
    void *first, *second;
    EXPECT_OK(cudaMalloc(&first, 600));
    EXPECT(cudaMalloc(&second, 600), cudaErrorMemoryAllocation);
    EXPECT_OK(cudaFree(first));
    EXPECT_OK(cudaMalloc(&second, 600));
    EXPECT_OK(cudaFree(second));
}
END_TEST

/* Through pinned memory: what two streams copy to and fro is in order, or found. */
START_TEST(pinned_memory_is_watched)
{
    use_seed(_i);
    Streams s;
    float *pinned;
    EXPECT_OK(cudaMallocHost(reinterpret_cast<void **>(&pinned), 16));
    Buffer x(floats({4}), {1, 2, 3, 4}), y(floats({4}));
    for (bool waits : {true, false}) {
        EXPECT_OK(cudaMemcpyAsync(pinned, x.get(), 16, cudaMemcpyDeviceToHost, s.a));
        EXPECT_OK(cudaEventRecord(s.event, s.a));
        if (waits)
            EXPECT_OK(cudaStreamWaitEvent(s.b, s.event, 0));
        EXPECT_OK(cudaMemcpyAsync(y.get(), pinned, 16, cudaMemcpyHostToDevice, s.b));
        EXPECT_OK(cudaStreamSynchronize(s.a));
        EXPECT_OK(cudaStreamSynchronize(s.b));
        if (waits)
            expect_no_finding();
        else
            expect_finding("in no order with a"); /* read or write, whichever came first */
    }
    EXPECT_OK(cudaFreeHost(pinned));
}
END_TEST

START_TEST(devices_tell_of_themselves)
{
    int count, can;
    char id[16], other[16];
    cudaDeviceProp properties;
    size_t free_bytes, all_bytes;
    setenv("CUDASIM_DEVICES", "3", 1);
    EXPECT_OK(cudaGetDeviceCount(&count));
    ck_assert_int_eq(count, 3);
    EXPECT_OK(cudaGetDeviceProperties(&properties, 2));
    EXPECT(cudaGetDeviceProperties(&properties, 3), cudaErrorInvalidDevice);
    EXPECT(cudaSetDevice(3), cudaErrorInvalidDevice);
    EXPECT_OK(cudaDeviceGetPCIBusId(id, sizeof id, 0));
    EXPECT_OK(cudaDeviceGetPCIBusId(other, sizeof other, 1));
    ck_assert_str_ne(id, other);
    EXPECT_OK(cudaDeviceCanAccessPeer(&can, 0, 1));
    ck_assert_int_eq(can, 1);
    Buffer x(floats({256}));
    EXPECT_OK(cudaMemGetInfo(&free_bytes, &all_bytes));
    ck_assert_uint_eq(all_bytes - free_bytes, 1024);
}
END_TEST

START_TEST(peers_copy)
{
    Buffer x(floats({2}), {1, 2});
    EXPECT_OK(cudaSetDevice(1));
    Buffer y(floats({2}));
    EXPECT_OK(cudaMemcpyPeerAsync(y.get(), 1, x.get(), 0, 8, nullptr));
    ck_assert(y.read() == doubles({1, 2}));
    EXPECT(cudaMemcpyPeerAsync(y.get(), 0, x.get(), 0, 8, nullptr), cudaErrorInvalidValue);
    expect_no_finding();
}
END_TEST

int main()
{
    Suite *suite = suite_create("runtime");
    TCase *tcase = checks_case(suite, "runtime", 60);
    tcase_add_loop_test(tcase, events_order_streams, 0, seeds);
    tcase_add_loop_test(tcase, missing_waits_are_found, 0, seeds);
    tcase_add_loop_test(tcase, order_is_drawn, 0, seeds);
    tcase_add_test(tcase, unwritten_memory_is_found);
    tcase_add_test(tcase, memory_has_ends);
    tcase_add_test(tcase, devices_keep_their_memory);
    tcase_add_test(tcase, memory_runs_out);
    tcase_add_loop_test(tcase, pinned_memory_is_watched, 0, seeds);
    tcase_add_test(tcase, devices_tell_of_themselves);
    tcase_add_test(tcase, peers_copy);
    return checks_run(suite);
}
