# bench: programs that measure; built by name (make bench/onednn), never by default.
EXTRA_PROGRAMS += bench/onednn
bench_onednn_SOURCES = bench/onednn.c
bench_onednn_LDADD = engine/libengine.a proto/libproto.a $(JANSSON_LIBS) $(DNNL_LIBS) $(GOMP_LIBS) $(MATH_LIBS)
CLEANFILES += bench/onednn
