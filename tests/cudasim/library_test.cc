/* library_test.cc: golden.txt, buffers. */
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>

#include "tests/cudasim/library_test.hpp"

namespace sim
{

static std::map<std::string, doubles> load()
{
    std::map<std::string, doubles> all;
    const char *source = getenv("TRAIND_TEST_SOURCE");
    std::ifstream file(std::string(source ? source : ".") + "/tests/cudasim/golden.txt");
    std::string name;
    for (size_t count; file >> name >> count;) {
        doubles values(count);
        for (double &value : values)
            file >> value;
        all[name] = values;
    }
    return all;
}

const doubles &golden(const std::string &name)
{
    static const std::map<std::string, doubles> all = load();
    auto found = all.find(name);
    ck_assert_msg(found != all.end(), "golden.txt has no %s", name.c_str());
    return found->second;
}

Buffer::Buffer(const View &shape) : view(shape)
{
    EXPECT_OK(cudaMalloc(&memory, view_bytes(view)));
}

/* What the view does not touch stays as allocated. */
Buffer::Buffer(const View &shape, const doubles &values) : Buffer(shape)
{
    std::vector<char> bytes(view_bytes(view));
    ck_assert_uint_eq(values.size(), size_t(view_count(view)));
    view_store(view, bytes.data(), values);
    for (Span span : view_spans(view))
        EXPECT_OK(cudaMemcpy(static_cast<char *>(memory) + span.begin, bytes.data() + span.begin,
                             span.end - span.begin, cudaMemcpyHostToDevice));
}

Buffer::~Buffer()
{
    cudaFree(memory);
}

doubles Buffer::read() const
{
    std::vector<char> bytes(view_bytes(view));
    EXPECT_OK(cudaDeviceSynchronize());
    for (Span span : view_spans(view))
        EXPECT_OK(cudaMemcpy(bytes.data() + span.begin, static_cast<char *>(memory) + span.begin,
                             span.end - span.begin, cudaMemcpyDeviceToHost));
    return view_load(view, bytes.data());
}

View floats(const std::vector<int64_t> &dim)
{
    return view_packed(Type::f32, dim);
}

void expect_finding(const char *part)
{
    std::vector<std::string> findings = core_take_findings();
    ck_assert_msg(findings.size() == 1, "%zu findings, should be one: %s", findings.size(), part);
    ck_assert_msg(strstr(findings[0].c_str(), part), "found: %s", findings[0].c_str());
}

void expect_no_finding()
{
    std::vector<std::string> findings = core_take_findings();
    ck_assert_msg(findings.empty(), "found: %s", findings.empty() ? "" : findings[0].c_str());
}

void expect_near(const doubles &found, const doubles &wanted, const char *what, double tolerance)
{
    ck_assert_uint_eq(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); i++)
        ck_assert_msg(std::fabs(found[i] - wanted[i]) <= tolerance * (1 + std::fabs(wanted[i])),
                      "%s[%zu] is %.9g, should be %.9g", what, i, found[i], wanted[i]);
}

int run_suite(const char *name, std::initializer_list<const TTest *> tests)
{
    Suite *suite = suite_create(name);
    TCase *tcase = checks_case(suite, name, 60);
    for (const TTest *test : tests)
        tcase_add_test(tcase, test);
    return checks_run(suite);
}

} // namespace sim
