/* library.cc: see library.hpp. */
#include "tests/cudasim/library.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace sim
{

int Launch::add(const void *data, std::vector<Span> spans, bool reads, bool writes)
{
    if (!data)
        spans.clear();
    operands.push_back({data, std::move(spans), reads, writes});
    return int(operands.size()) - 1;
}

/* A view of nothing is none. */
static std::vector<Span> spans_of(const void *data, const View &view)
{
    return data ? view_spans(view) : std::vector<Span>();
}

int Launch::in(const void *data, const View &view)
{
    return add(data, spans_of(data, view), true, false);
}

int Launch::in(const void *data, std::vector<Span> spans)
{
    return add(data, std::move(spans), true, false);
}

int Launch::out(void *data, const View &view, bool also_read)
{
    return add(data, spans_of(data, view), also_read, true);
}

int Launch::out(void *data, std::vector<Span> spans, bool also_read)
{
    return add(data, std::move(spans), also_read, true);
}

int Launch::scratch(void *data, size_t bytes)
{
    return add(data, {{0, bytes}}, false, true);
}

void Launch::allow(Overlap overlap)
{
    allowed = overlap;
}

/* Spans rise and do not touch, so a walk along both finds what they share. */
static bool share(uintptr_t a_base, const std::vector<Span> &a, uintptr_t b_base,
                  const std::vector<Span> &b)
{
    for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
        uintptr_t a_end = a_base + a[i].end, b_end = b_base + b[j].end;
        if (a_base + a[i].begin < b_end && b_base + b[j].begin < a_end)
            return true;
        a_end <= b_end ? i++ : j++;
    }
    return false;
}

static bool equal(const std::vector<Span> &a, const std::vector<Span> &b)
{
    auto same = [](const Span &x, const Span &y) { return x.begin == y.begin && x.end == y.end; };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), same);
}

void Launch::check_overlap() const
{
    for (size_t i = 0; i < operands.size() && allowed != Overlap::any; i++)
        for (size_t j = 0; j < i; j++) {
            const Access &a = operands[i], &b = operands[j];
            bool in_place = a.data == b.data && equal(a.spans, b.spans);
            if (!(a.writes || b.writes) || (in_place && allowed == Overlap::same) ||
                !share(uintptr_t(a.data), a.spans, uintptr_t(b.data), b.spans))
                continue;
            report("%s: operands %zu (%p) and %zu (%p) overlap, and one is written", name, j,
                   b.data, i, a.data);
        }
}

cudaError_t Launch::enqueue_until(std::function<bool(Memory)> done)
{
    check_overlap();
    return core_enqueue(name, stream, operands, std::move(done));
}

cudaError_t Launch::enqueue(std::function<void(Memory)> run)
{
    return enqueue_until([=](Memory memory) {
        run(memory);
        return true;
    });
}

void report(const char *format, ...)
{
    char sentence[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    core_report(sentence);
}

int current_device()
{
    int device = -1;
    cudaGetDevice(&device);
    return device;
}

int stream_device(cudaStream_t stream)
{
    int device = -1;
    cudaStreamGetDevice(stream, &device);
    return device;
}

int pointer_device(const void *data)
{
    cudaPointerAttributes attributes = {};
    bool known = cudaPointerGetAttributes(&attributes, data) == cudaSuccess;
    return known && attributes.type == cudaMemoryTypeDevice ? attributes.device : -1;
}

void unsettle(doubles *values)
{
    static std::atomic<uint64_t> calls;
    uint64_t state = ++calls * 0x9e3779b97f4a7c15u;
    for (double &value : *values) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        value *= 1 + std::ldexp(double(int64_t(state)), -63 - 23);
    }
}

bool aligned(const void *data, size_t bytes)
{
    return uintptr_t(data) % bytes == 0;
}

} // namespace sim
