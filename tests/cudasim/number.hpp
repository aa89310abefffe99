/* number.hpp: how the simulated libraries read and write numbers: as doubles, rounded once when
 * stored.
 *
 * A library call loads its tensors densely (`view_load`), works on doubles in row-major order
 * (loops.hpp), and stores the result by way of the descriptor's strides and type (`view_store`).
 * Layout and type are nowhere else.
 */
#ifndef TESTS_CUDASIM_NUMBER_HPP
#define TESTS_CUDASIM_NUMBER_HPP

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sim
{

using doubles = std::vector<double>;

enum class Type { f32, f64, bf16, i8, u8, i32, u32, i64, u64, none };

size_t type_bytes(Type type);
const char *type_name(Type type);
double number_load(Type type, const void *data, int64_t index);
void number_store(Type type, void *data, int64_t index, double value);

constexpr int view_rank_max = 8;

/* A tensor as a descriptor has it: strides in elements. Index order of `dim` is the logical one (N,
 * C, H, W). */
struct View {
    Type type = Type::none;
    int rank = 0;
    int64_t dim[view_rank_max] = {};
    int64_t stride[view_rank_max] = {};
};

View view_packed(Type type, const std::vector<int64_t> &dim); /* row-major */
int64_t view_count(const View &view);
bool view_same_dims(const View &a, const View &b);
bool view_same(const View &a, const View &b); /* the strides and the type too */

/* One past the last byte that the view touches, counted from its first. */
size_t view_bytes(const View &view);

struct Span { /* bytes from `begin` (inclusive) to `end` (exclusive), from the tensor's first */
    size_t begin, end;
};

/* Exactly the bytes the view touches, neighbours joined. */
std::vector<Span> view_spans(const View &view);

doubles view_load(const View &view, const void *data);

/* data = alpha * values + beta * data, in double, rounded once; with beta = 0 the old contents are
 * not read. */
void view_store(const View &view, void *data, const doubles &values, double alpha = 1,
                double beta = 0);

} // namespace sim

#endif
