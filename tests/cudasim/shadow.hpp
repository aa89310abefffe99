/* shadow.hpp: who last wrote and read each byte of an allocation, and whether that was in order.
 *
 * Time is a vector clock, a component a stream: what happened on stream s before an operation is at
 * most clock[s]. Clocks are fixed when an operation is enqueued, so what is found depends on no
 * delay and on no luck.
 */
#ifndef TESTS_CUDASIM_SHADOW_HPP
#define TESTS_CUDASIM_SHADOW_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sim
{

using Clock = std::vector<uint64_t>;

void clock_join(Clock *clock, const Clock &other);

/* One operation as the shadow knows it. */
struct Stamp {
    const char *name;
    size_t stream;
    const Clock *clock; /* its own component counts the operation itself */
};

class Shadow
{
  public:
    /* `writer`: who wrote all of it before any operation; NULL: nobody. */
    Shadow(size_t bytes, const char *writer);

    /* Notes an access to [begin, end). Returns what is wrong with it, a clause a line; "" if
     * nothing. */
    std::string read(size_t begin, size_t end, const Stamp &stamp);
    std::string write(size_t begin, size_t end, const Stamp &stamp);

  private:
    struct Point { /* of time; name NULL: never */
        const char *name;
        size_t stream;
        uint64_t time;
    };
    struct Cell {
        size_t end;
        Point writer;
        std::vector<Point> readers; /* since then, the last of each stream */
    };
    using Cells = std::map<size_t, Cell>; /* by begin; they cover all bytes */

    Cells::iterator split(size_t at);
    static bool before(const Point &point, const Stamp &stamp);

    Cells cells;
};

} // namespace sim

#endif
