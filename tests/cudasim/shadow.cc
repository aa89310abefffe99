/* shadow.cc: see shadow.hpp. */
#include "tests/cudasim/shadow.hpp"

#include <algorithm>

namespace sim
{

void clock_join(Clock *clock, const Clock &other)
{
    if (clock->size() < other.size())
        clock->resize(other.size());
    for (size_t i = 0; i < other.size(); i++)
        (*clock)[i] = std::max((*clock)[i], other[i]);
}

Shadow::Shadow(size_t bytes, const char *writer)
{
    cells[0] = {bytes, {writer, 0, 0}, {}};
}

/* The cell that begins at `at`, made where none does. */
Shadow::Cells::iterator Shadow::split(size_t at)
{
    auto cell = std::prev(cells.upper_bound(at));
    if (cell->first == at || at >= cell->second.end)
        return cell->first == at ? cell : cells.end();
    Cell tail = cell->second;
    cell->second.end = at;
    return cells.emplace(at, tail).first;
}

bool Shadow::before(const Point &point, const Stamp &stamp)
{
    return !point.name || point.time == 0 ||
           (point.stream < stamp.clock->size() && point.time <= (*stamp.clock)[point.stream]);
}

static std::string clause(const char *what, const char *name)
{
    return std::string(what) + (name ? name : "") + "\n";
}

std::string Shadow::read(size_t begin, size_t end, const Stamp &stamp)
{
    std::string wrong;
    auto last = split(end);
    for (auto cell = split(begin); cell != last; ++cell) {
        Cell &c = cell->second;
        if (!c.writer.name)
            wrong += wrong.empty() ? clause("reads what nobody wrote", nullptr) : "";
        else if (!before(c.writer, stamp) && wrong.empty())
            wrong += clause("reads, in no order with a write by ", c.writer.name);
        auto same = std::find_if(c.readers.begin(), c.readers.end(),
                                 [&](const Point &p) { return p.stream == stamp.stream; });
        Point now = {stamp.name, stamp.stream, (*stamp.clock)[stamp.stream]};
        if (same == c.readers.end())
            c.readers.push_back(now);
        else
            *same = now;
    }
    return wrong;
}

std::string Shadow::write(size_t begin, size_t end, const Stamp &stamp)
{
    std::string wrong;
    auto last = split(end), first = split(begin);
    for (auto cell = first; cell != last && wrong.empty(); ++cell) {
        const Cell &c = cell->second;
        if (!before(c.writer, stamp))
            wrong += clause("writes, in no order with a write by ", c.writer.name);
        for (const Point &reader : c.readers)
            if (wrong.empty() && !before(reader, stamp))
                wrong += clause("writes, in no order with a read by ", reader.name);
    }
    cells.erase(first, last);
    cells[begin] = {end, {stamp.name, stamp.stream, (*stamp.clock)[stamp.stream]}, {}};
    return wrong;
}

} // namespace sim
