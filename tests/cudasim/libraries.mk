# The simulated libraries on top of the simulated runtime: their sonames and version nodes are the real ones', so that the
# module runs over either. check_same asks both what needs no device.
CUDASIM_CXXFLAGS = $(AM_CXXFLAGS) -std=gnu++17 -fPIC -fno-sanitize=enum
check_LIBRARIES += tests/cudasim/libloops.a
tests_cudasim_libloops_a_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
tests_cudasim_libloops_a_CXXFLAGS = $(CUDASIM_CXXFLAGS)
tests_cudasim_libloops_a_SOURCES = \
	tests/cudasim/library.cc \
	tests/cudasim/library.hpp \
	tests/cudasim/loops.hpp \
	tests/cudasim/loops_conv.cc \
	tests/cudasim/loops_gemm.cc \
	tests/cudasim/loops_norm.cc \
	tests/cudasim/loops_pool.cc \
	tests/cudasim/loops_rnn.cc \
	tests/cudasim/loops_softmax.cc \
	tests/cudasim/number.cc \
	tests/cudasim/number.hpp
