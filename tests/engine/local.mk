# tests/engine
ENGINE_CHECKS = \
	tests/engine/check_accumulate \
	tests/engine/check_augment \
	tests/engine/check_autograd \
	tests/engine/check_balance \
	tests/engine/check_base \
	tests/engine/check_bf16 \
	tests/engine/check_checkpoint \
	tests/engine/check_choices \
	tests/engine/check_choose \
	tests/engine/check_chunk \
	tests/engine/check_comm \
	tests/engine/check_compile_oom \
	tests/engine/check_cpu \
	tests/engine/check_crew \
	tests/engine/check_csv \
	tests/engine/check_data_jobs \
	tests/engine/check_data_parallel \
	tests/engine/check_dataset \
	tests/engine/check_devices \
	tests/engine/check_devices_bf16 \
	tests/engine/check_document \
	tests/engine/check_early_stop \
	tests/engine/check_example \
	tests/engine/check_executor \
	tests/engine/check_faults \
	tests/engine/check_file \
	tests/engine/check_formats \
	tests/engine/check_fuse \
	tests/engine/check_gemm_bf16 \
	tests/engine/check_graph \
	tests/engine/check_hash \
	tests/engine/check_idx \
	tests/engine/check_images \
	tests/engine/check_inference \
	tests/engine/check_init \
	tests/engine/check_inputs \
	tests/engine/check_kernels \
	tests/engine/check_kernels_bf16 \
	tests/engine/check_layers \
	tests/engine/check_layers_bf16 \
	tests/engine/check_liveness \
	tests/engine/check_loader \
	tests/engine/check_loops \
	tests/engine/check_loops_bf16 \
	tests/engine/check_losses \
	tests/engine/check_machine \
	tests/engine/check_metrics \
	tests/engine/check_microbatch \
	tests/engine/check_model \
	tests/engine/check_npy \
	tests/engine/check_order \
	tests/engine/check_peak_memory \
	tests/engine/check_pieces \
	tests/engine/check_plan \
	tests/engine/check_precision \
	tests/engine/check_recompute \
	tests/engine/check_record \
	tests/engine/check_recurrent \
	tests/engine/check_ref \
	tests/engine/check_reporter \
	tests/engine/check_resume \
	tests/engine/check_rng \
	tests/engine/check_safetensors \
	tests/engine/check_schedule \
	tests/engine/check_sections \
	tests/engine/check_sequences \
	tests/engine/check_sequences_bf16 \
	tests/engine/check_shapes \
	tests/engine/check_shard_optimizer \
	tests/engine/check_shards \
	tests/engine/check_spectral \
	tests/engine/check_stage_graph \
	tests/engine/check_stage_steps \
	tests/engine/check_stages \
	tests/engine/check_statistics \
	tests/engine/check_strategy \
	tests/engine/check_synchronized \
	tests/engine/check_synchronized_kernels \
	tests/engine/check_timetable \
	tests/engine/check_trainer \
	tests/engine/check_trainer_memory \
	tests/engine/check_tuning \
	tests/engine/check_updates \
	tests/engine/check_weights_file
check_PROGRAMS += $(ENGINE_CHECKS)
TESTS += $(ENGINE_CHECKS)

# What they share. An archive gives only what is used of it; low_on.c stands in for its low_off.c.
check_LIBRARIES += tests/engine/libengine_tests.a
tests_engine_libengine_tests_a_SOURCES = \
	tests/engine/data_test.c \
	tests/engine/data_test.h \
	tests/engine/idx_files.c \
	tests/engine/idx_files.h \
	tests/engine/image_files.c \
	tests/engine/image_files.h \
	tests/engine/kernel_test.c \
	tests/engine/kernel_test.h \
	tests/engine/low.h \
	tests/engine/low_off.c \
	tests/engine/test_backend.h \
	tests/engine/test_backend_cpu.c \
	tests/engine/test_device.c \
	tests/engine/test_device.h \
	tests/engine/models.c \
	tests/engine/models.h \
	tests/engine/paper.c \
	tests/engine/paper.h \
	tests/engine/run_job.c \
	tests/engine/run_job.h \
	tests/engine/shaky.c \
	tests/engine/shaky.h \
	tests/engine/staged.c \
	tests/engine/staged.h \
	tests/engine/stages_case.c \
	tests/engine/stages_case.h

# What every check links whose rows say nothing else.
LDADD = tests/golden/libgolden.a tests/engine/libengine_tests.a tests/lib/liboom.a tests/ref/libref.a \
	engine/libengine.a proto/libproto.a $(TEST_LIBS) $(JANSSON_LIBS) $(DNNL_LIBS) $(GOMP_LIBS) \
	$(ZLIB_LIBS) $(JPEG_LIBS) $(PNG_LIBS) $(MATH_LIBS) -lpthread

tests_engine_check_balance_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_bf16_SOURCES = tests/engine/check_bf16.c tests/engine/low_on.c
tests_engine_check_choices_SOURCES = tests/engine/check_choices.c engine/worker/plan_profile.c
tests_engine_check_compile_oom_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS) \
	-Wl,--wrap=arena_alloc,--wrap=arena_array,--wrap=arena_grow,--wrap=arena_format
tests_engine_check_csv_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_dataset_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_devices_bf16_SOURCES = tests/engine/check_devices.c tests/engine/low_on.c
tests_engine_check_executor_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_formats_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_gemm_bf16_SOURCES = tests/engine/check_gemm_bf16.c tests/engine/low_on.c
tests_engine_check_images_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_kernels_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_kernels_bf16_SOURCES = tests/engine/check_kernels.c tests/engine/low_on.c
tests_engine_check_kernels_bf16_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_layers_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_layers_bf16_SOURCES = tests/engine/check_layers.c tests/engine/low_on.c
tests_engine_check_layers_bf16_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_loops_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_loops_bf16_SOURCES = tests/engine/check_loops.c tests/engine/low_on.c
tests_engine_check_loops_bf16_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_losses_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_resume_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=write,--wrap=fsync,--wrap=rename,--wrap=mkdir,--wrap=remove,--wrap=unlink,--wrap=ftruncate,--wrap=pthread_mutex_lock
tests_engine_check_safetensors_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_sequences_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_sequences_bf16_SOURCES = tests/engine/check_sequences.c tests/engine/low_on.c
tests_engine_check_sequences_bf16_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_statistics_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_strategy_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_synchronized_kernels_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_timetable_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_trainer_memory_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_updates_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)

# The tables of kernels once more, on GPUs: those of the machine, or simulated ones.
if HAVE_CUDA
CUDA_CHECKS = \
	tests/engine/check_kernels_cuda \
	tests/engine/check_layers_bf16_cuda \
	tests/engine/check_layers_cuda \
	tests/engine/check_loops_bf16_cuda \
	tests/engine/check_loops_cuda \
	tests/engine/check_losses_cuda \
	tests/engine/check_sequences_cuda \
	tests/engine/check_statistics_cuda \
	tests/engine/check_updates_cuda
check_PROGRAMS += $(CUDA_CHECKS)
TESTS += $(CUDA_CHECKS)
endif
ON_CUDA = tests/engine/test_backend_cuda.c engine/backend/cuda/layout.c
tests_engine_check_kernels_cuda_SOURCES = tests/engine/check_kernels.c $(ON_CUDA)
tests_engine_check_kernels_cuda_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_layers_cuda_SOURCES = tests/engine/check_layers.c $(ON_CUDA)
tests_engine_check_layers_cuda_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_loops_cuda_SOURCES = tests/engine/check_loops.c $(ON_CUDA)
tests_engine_check_loops_cuda_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_losses_cuda_SOURCES = tests/engine/check_losses.c $(ON_CUDA)
tests_engine_check_losses_cuda_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_sequences_cuda_SOURCES = tests/engine/check_sequences.c $(ON_CUDA)
tests_engine_check_sequences_cuda_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_statistics_cuda_SOURCES = tests/engine/check_statistics.c $(ON_CUDA)
tests_engine_check_statistics_cuda_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_updates_cuda_SOURCES = tests/engine/check_updates.c $(ON_CUDA)
tests_engine_check_updates_cuda_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_layers_bf16_cuda_SOURCES = tests/engine/check_layers.c tests/engine/low_on.c $(ON_CUDA)
tests_engine_check_layers_bf16_cuda_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_engine_check_loops_bf16_cuda_SOURCES = tests/engine/check_loops.c tests/engine/low_on.c $(ON_CUDA)
tests_engine_check_loops_bf16_cuda_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
