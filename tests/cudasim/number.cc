/* number.cc: conversions, and walks over strided tensors. */
#include "tests/cudasim/number.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace sim
{

template <typename T> static double load_as(const void *data, int64_t index)
{
    T value;
    memcpy(&value, static_cast<const char *>(data) + index * int64_t(sizeof value), sizeof value);
    return double(value);
}

template <typename T> static void store_as(void *data, int64_t index, double number)
{
    T value = T(number);
    memcpy(static_cast<char *>(data) + index * int64_t(sizeof value), &value, sizeof value);
}

static double load_bf16(const void *data, int64_t index)
{
    uint32_t bits = uint32_t(static_cast<const uint16_t *>(data)[index]) << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return double(value);
}

/* To odd on the way through float, so that the second rounding cannot meet a tie that the first one
 * made. */
static uint32_t float_bits_to_odd(double number)
{
    float value = float(number);
    bool inexact = std::isfinite(value) && double(value) != number;
    if (inexact && std::fabs(double(value)) > std::fabs(number))
        value = std::nextafter(value, 0.0f);
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return inexact ? bits | 1 : bits;
}

static void store_bf16(void *data, int64_t index, double number)
{
    uint32_t bits = float_bits_to_odd(number);
    uint32_t rounded =
        std::isnan(number) ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    static_cast<uint16_t *>(data)[index] = uint16_t(rounded);
}

static const struct {
    const char *name;
    size_t bytes;
    double (*load)(const void *data, int64_t index);
    void (*store)(void *data, int64_t index, double number);
} types[] = {
    {"f32", 4, load_as<float>, store_as<float>},
    {"f64", 8, load_as<double>, store_as<double>},
    {"bf16", 2, load_bf16, store_bf16},
    {"i8", 1, load_as<int8_t>, store_as<int8_t>},
    {"u8", 1, load_as<uint8_t>, store_as<uint8_t>},
    {"i32", 4, load_as<int32_t>, store_as<int32_t>},
    {"u32", 4, load_as<uint32_t>, store_as<uint32_t>},
    {"i64", 8, load_as<int64_t>, store_as<int64_t>},
    {"u64", 8, load_as<uint64_t>, store_as<uint64_t>},
};

size_t type_bytes(Type type)
{
    return types[int(type)].bytes;
}

const char *type_name(Type type)
{
    return types[int(type)].name;
}

double number_load(Type type, const void *data, int64_t index)
{
    return types[int(type)].load(data, index);
}

void number_store(Type type, void *data, int64_t index, double value)
{
    types[int(type)].store(data, index, value);
}

View view_packed(Type type, const std::vector<int64_t> &dim)
{
    View view;
    view.type = type;
    view.rank = int(dim.size());
    int64_t stride = 1;
    for (int i = view.rank - 1; i >= 0; i--) {
        view.dim[i] = dim[size_t(i)];
        view.stride[i] = stride;
        stride *= view.dim[i];
    }
    return view;
}

int64_t view_count(const View &view)
{
    int64_t count = 1;
    for (int i = 0; i < view.rank; i++)
        count *= view.dim[i];
    return count;
}

bool view_same_dims(const View &a, const View &b)
{
    return a.rank == b.rank && std::equal(a.dim, a.dim + a.rank, b.dim);
}

bool view_same(const View &a, const View &b)
{
    return view_same_dims(a, b) && a.type == b.type &&
           std::equal(a.stride, a.stride + a.rank, b.stride);
}

size_t view_bytes(const View &view)
{
    int64_t last = 0;
    for (int i = 0; i < view.rank; i++)
        last += (view.dim[i] - 1) * view.stride[i];
    return view_count(view) == 0 ? 0 : size_t(last + 1) * type_bytes(view.type);
}

/* Calls visit(offset in elements) for each element, the last dimension fastest. */
template <typename Visit> static void view_each(const View &view, Visit visit)
{
    int64_t index[view_rank_max] = {}, offset = 0;
    for (int64_t left = view_count(view); left > 0; left--) {
        visit(offset);
        for (int i = view.rank - 1; i >= 0; i--) {
            offset += view.stride[i];
            if (++index[i] < view.dim[i])
                break;
            offset -= view.stride[i] * view.dim[i];
            index[i] = 0;
        }
    }
}

/* The dimensions with more than one element, by rising stride: what lies side by side then follows
 * in order. */
static std::vector<int> dims_by_stride(const View &view)
{
    std::vector<int> order;
    for (int i = 0; i < view.rank; i++)
        if (view.dim[i] != 1)
            order.push_back(i);
    std::sort(order.begin(), order.end(),
              [&](int a, int b) { return view.stride[a] < view.stride[b]; });
    return order;
}

std::vector<Span> view_spans(const View &view)
{
    if (view_count(view) == 0)
        return {};
    int64_t run = 1; /* elements side by side */
    View outer;      /* the dimensions that make gaps, widest first */
    for (int i : dims_by_stride(view)) {
        if (outer.rank == 0 && view.stride[i] <= run) { /* joins, or a repeat (stride 0) */
            run = std::max(run, (view.dim[i] - 1) * view.stride[i] + run);
            continue;
        }
        std::copy_backward(outer.dim, outer.dim + outer.rank, outer.dim + outer.rank + 1);
        std::copy_backward(outer.stride, outer.stride + outer.rank, outer.stride + outer.rank + 1);
        outer.dim[0] = view.dim[i], outer.stride[0] = view.stride[i];
        outer.rank++;
    }
    std::vector<Span> spans;
    size_t size = type_bytes(view.type);
    view_each(outer, [&](int64_t offset) {
        spans.push_back({size_t(offset) * size, size_t(offset + run) * size});
    });
    return spans;
}

doubles view_load(const View &view, const void *data)
{
    auto load = types[int(view.type)].load;
    doubles values;
    values.reserve(size_t(view_count(view)));
    view_each(view, [&](int64_t offset) { values.push_back(load(data, offset)); });
    return values;
}

void view_store(const View &view, void *data, const doubles &values, double alpha, double beta)
{
    auto type = types[int(view.type)];
    size_t i = 0;
    view_each(view, [&](int64_t offset) {
        double old = beta == 0 ? 0 : beta * type.load(data, offset);
        type.store(data, offset, alpha * values[i++] + old);
    });
}

} // namespace sim
