# bench: programs that measure; built by name (make bench/onednn), never by default.
EXTRA_PROGRAMS += bench/onednn
bench_onednn_SOURCES = bench/onednn.c
bench_onednn_LDADD = engine/libengine.a proto/libproto.a $(JANSSON_LIBS) $(DNNL_LIBS) $(GOMP_LIBS) $(MATH_LIBS)
CLEANFILES += bench/onednn

EXTRA_PROGRAMS += bench/model_parallel
bench_model_parallel_SOURCES = bench/model_parallel.c bench/way.c bench/way.h
bench_model_parallel_LDADD = engine/libengine.a proto/libproto.a $(JANSSON_LIBS) $(DNNL_LIBS) \
	$(GOMP_LIBS) $(ZLIB_LIBS) $(JPEG_LIBS) $(PNG_LIBS) $(MATH_LIBS) -lpthread
CLEANFILES += bench/model_parallel
EXTRA_DIST += bench/README.md
