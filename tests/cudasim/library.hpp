/* library.hpp: what every simulated library does to put one operation on a stream.
 *
 * A call checks its arguments, names each operand with exactly the bytes that it reads or writes,
 * and hands over a closure. The core runs it when the stream's turn comes (again and again where
 * the stream is captured into a graph) with each operand's memory in the order of naming.
 * Descriptors are copied into the closure: a caller may change or destroy them at once, as with the
 * real libraries.
 */
#ifndef TESTS_CUDASIM_LIBRARY_HPP
#define TESTS_CUDASIM_LIBRARY_HPP

#include "tests/cudasim/core.hpp"

namespace sim
{

class Launch
{
  public:
    Launch(const char *call, cudaStream_t on) : name(call), stream(on)
    {
    }

    /* Each gives the operand's index. NULL is an operand of no bytes. */
    int in(const void *data, const View &view);
    int out(void *data, const View &view, bool also_read = false);
    int in(const void *data, std::vector<Span> spans);
    int out(void *data, std::vector<Span> spans, bool also_read = false);
    int scratch(void *data, size_t bytes); /* written, and worth nothing afterwards */

    /* What is written may overlap another operand not at all, or only by being the same bytes (in
     * place: unless said otherwise), or as the call's own rules have it. Else it is reported. */
    enum class Overlap { none, same, any };
    void allow(Overlap overlap);

    cudaError_t enqueue(std::function<void(Memory)> run);

    /* An operation that waits for others: at its turn it is tried, and again whenever core_retry
     * was called, until it says that it is done. */
    cudaError_t enqueue_until(std::function<bool(Memory)> done);

  private:
    int add(const void *data, std::vector<Span> spans, bool reads, bool writes);
    void check_overlap() const;

    Overlap allowed = Overlap::same;
    const char *name;
    cudaStream_t stream;
    std::vector<Access> operands;
};

/* Makes values differ in the last bit from call to call: what adds in the order in which its blocks
 * come. */
void unsettle(doubles *values);

/* A finding: what the real library would not have noticed, and should not have been done. */
void report(const char *format, ...) __attribute__((format(printf, 1, 2)));

bool aligned(const void *data, size_t bytes);
int current_device();
int stream_device(cudaStream_t stream);
int pointer_device(const void *data); /* whose memory it lies in; -1: no device's */

} // namespace sim

#endif
