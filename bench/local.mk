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

EXTRA_PROGRAMS += bench/steps
bench_steps_SOURCES = bench/steps.c
bench_steps_LDADD = $(bench_model_parallel_LDADD)
CLEANFILES += bench/steps
EXTRA_DIST += bench/NOTES.md bench/RESULTS.md bench/run bench/torch_models.py bench/torch_steps.py \
	bench/jobs/cnn.json bench/jobs/gpt.json bench/jobs/gpt_12.json bench/jobs/lstm.json bench/jobs/mlp.json \
	bench/jobs/resnet18.json bench/jobs/resnet50_b120.json bench/jobs/resnet50_b20.json bench/jobs/resnet50_bf16.json
