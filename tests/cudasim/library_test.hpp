/* library_test.hpp: what the tests of the simulated libraries share: PyTorch's numbers, device
 * buffers, comparison. */
#ifndef TESTS_CUDASIM_LIBRARY_TEST_HPP
#define TESTS_CUDASIM_LIBRARY_TEST_HPP

#include <string>

#include "tests/cudasim/core.hpp"
extern "C" {
#include "tests/lib/checks.h"
}

namespace sim
{

/* The values of that name in golden.txt; the test fails where there are none. */
const doubles &golden(const std::string &name);

/* Device memory as a view describes it; poison where nothing was put. */
class Buffer
{
  public:
    explicit Buffer(const View &view);
    Buffer(const View &view, const doubles &values);
    Buffer(const Buffer &) = delete;
    ~Buffer();
    void *get() const
    {
        return memory;
    }
    doubles read() const; /* waits for the device */

  private:
    View view;
    void *memory;
};

View floats(const std::vector<int64_t> &dim);

/* What was reported since the last call is one finding with this in it. */
void expect_finding(const char *part);
void expect_no_finding();

void expect_near(const doubles &found, const doubles &wanted, const char *what,
                 double tolerance = 2e-6);

#define EXPECT_OK(call) ck_assert_msg((call) == 0, "%s", #call)
#define EXPECT(call, status) ck_assert_int_eq(int(call), int(status))

/* main of a check program. */
int run_suite(const char *name, std::initializer_list<const TTest *> tests);

} // namespace sim

#endif
