# tests/golden: the engine against PyTorch's own steps; generate.py makes the files.
GOLDEN_CHECKS = \
	tests/golden/check_autocast \
	tests/golden/check_bilstm \
	tests/golden/check_curves \
	tests/golden/check_golden \
	tests/golden/check_learning \
	tests/golden/check_mnist \
	tests/golden/check_none \
	tests/golden/check_observe \
	tests/golden/check_ops \
	tests/golden/check_ops_bf16 \
	tests/golden/check_resnet_training \
	tests/golden/check_resnets
check_PROGRAMS += $(GOLDEN_CHECKS)
TESTS += $(GOLDEN_CHECKS)
check_LIBRARIES += tests/golden/libgolden.a
tests_golden_libgolden_a_SOURCES = tests/golden/golden.c tests/golden/golden.h
tests_golden_check_autocast_SOURCES = tests/golden/check_autocast.c tests/engine/low_on.c
EXTRA_DIST += tests/golden/generate_autocast.py tests/golden/autocast.json
EXTRA_DIST += tests/golden/generate_learning.py
EXTRA_DIST += \
	tests/golden/learning.json tests/golden/learning.safetensors \
	tests/golden/learning-mlp-initial.safetensors tests/golden/learning-norm-initial.safetensors \
	tests/golden/learning-rows.idx tests/golden/learning-steps.idx \
	tests/golden/learning-labels.idx tests/golden/learning-step-labels.idx tests/golden/learning-values.idx
EXTRA_DIST += tests/golden/generate_none.py tests/golden/none.json tests/golden/none.safetensors
EXTRA_DIST += tests/golden/generate.py
EXTRA_DIST += \
	tests/golden/mlp-inputs.idx tests/golden/mlp-targets.idx tests/golden/mlp-initial.safetensors \
	tests/golden/cnn-inputs.idx tests/golden/cnn-targets.idx tests/golden/cnn-initial.safetensors
EXTRA_DIST += \
	tests/golden/mlp-plain.json tests/golden/mlp-plain-1-final.safetensors tests/golden/mlp-plain-2-final.safetensors \
	tests/golden/mlp-momentum.json tests/golden/mlp-momentum-1-final.safetensors tests/golden/mlp-momentum-2-final.safetensors \
	tests/golden/mlp-nesterov.json tests/golden/mlp-nesterov-1-final.safetensors tests/golden/mlp-nesterov-2-final.safetensors \
	tests/golden/mlp-mse.json tests/golden/mlp-mse-1-final.safetensors tests/golden/mlp-mse-2-final.safetensors \
	tests/golden/cnn-plain.json tests/golden/cnn-plain-1-final.safetensors tests/golden/cnn-plain-2-final.safetensors \
	tests/golden/cnn-momentum.json tests/golden/cnn-momentum-1-final.safetensors tests/golden/cnn-momentum-2-final.safetensors \
	tests/golden/cnn-nesterov.json tests/golden/cnn-nesterov-1-final.safetensors tests/golden/cnn-nesterov-2-final.safetensors
EXTRA_DIST += tests/golden/generate_layers.py
EXTRA_DIST += \
	tests/golden/activations-inputs.idx tests/golden/activations-targets.idx tests/golden/activations-initial.safetensors \
	tests/golden/activations.json tests/golden/activations-1-final.safetensors tests/golden/activations-2-final.safetensors \
	tests/golden/planes-inputs.idx tests/golden/planes-targets.idx tests/golden/planes-initial.safetensors \
	tests/golden/planes.json tests/golden/planes-1-final.safetensors tests/golden/planes-2-final.safetensors \
	tests/golden/same-inputs.idx tests/golden/same-targets.idx tests/golden/same-initial.safetensors \
	tests/golden/same.json tests/golden/same-1-final.safetensors tests/golden/same-2-final.safetensors \
	tests/golden/tokens-inputs.idx tests/golden/tokens-targets.idx tests/golden/tokens-lengths.idx tests/golden/tokens-initial.safetensors \
	tests/golden/tokens.json tests/golden/tokens-1-final.safetensors tests/golden/tokens-2-final.safetensors \
	tests/golden/attention-inputs.idx tests/golden/attention-targets.idx tests/golden/attention-initial.safetensors \
	tests/golden/attention.json tests/golden/attention-1-final.safetensors tests/golden/attention-2-final.safetensors
EXTRA_DIST += tests/golden/generate_recurrent.py
EXTRA_DIST += \
	tests/golden/recurrent-inputs.idx tests/golden/recurrent-targets.idx tests/golden/recurrent-initial.safetensors \
	tests/golden/recurrent.json tests/golden/recurrent-1-final.safetensors tests/golden/recurrent-2-final.safetensors \
	tests/golden/packed-inputs.idx tests/golden/packed-targets.idx tests/golden/packed-lengths.idx tests/golden/packed-initial.safetensors \
	tests/golden/packed.json tests/golden/packed-1-final.safetensors tests/golden/packed-2-final.safetensors \
	tests/golden/lstm-inputs.idx tests/golden/lstm-targets.idx tests/golden/lstm-lengths.idx tests/golden/lstm-initial.safetensors \
	tests/golden/lstm.json tests/golden/lstm-1-final.safetensors tests/golden/lstm-2-final.safetensors
EXTRA_DIST += \
	tests/golden/generate_stages.py tests/golden/stages.json tests/golden/stages-final.safetensors
EXTRA_DIST += tests/golden/generate_spectral.py
EXTRA_DIST += \
	tests/golden/spectral-inputs.idx tests/golden/spectral-targets.idx tests/golden/spectral-initial.safetensors \
	tests/golden/spectral.json tests/golden/spectral-1-final.safetensors tests/golden/spectral-2-final.safetensors \
	tests/golden/spectral-tokens-inputs.idx tests/golden/spectral-tokens-targets.idx tests/golden/spectral-tokens-lengths.idx tests/golden/spectral-tokens-initial.safetensors \
	tests/golden/spectral-tokens.json tests/golden/spectral-tokens-1-final.safetensors tests/golden/spectral-tokens-2-final.safetensors

# The ResNets: names and shapes, and single steps; generate_resnets.py makes the files.
EXTRA_DIST += tests/golden/generate_resnets.py tests/golden/resnet.py \
	tests/golden/resnet18.txt tests/golden/resnet18-steps.safetensors \
	tests/golden/resnet50.txt tests/golden/resnet50-steps.safetensors

# Whole models as users train them; generate_curves.py makes the files.
EXTRA_DIST += tests/golden/generate_curves.py tests/golden/README.md tests/golden/curves.json tests/golden/mnist.json \
	tests/golden/curves-mnist-images.gz tests/golden/curves-mnist-labels.gz tests/golden/curves-digits.csv.gz tests/golden/curves-text.txt

# PyTorch's own case of a recurrent DataParallel; generate_bilstm.py makes the file.
EXTRA_DIST += tests/golden/generate_bilstm.py tests/golden/bilstm.json

# What is seen of each replica; generate_observe.py makes the file.
EXTRA_DIST += tests/golden/generate_observe.py tests/golden/observe.json

# Every op; generate_ops.py makes the file.
tests_golden_check_ops_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
tests_golden_check_ops_bf16_SOURCES = tests/golden/check_ops.c tests/engine/low_on.c
tests_golden_check_ops_bf16_LDFLAGS = $(AM_LDFLAGS) $(OOM_FLAGS)
EXTRA_DIST += tests/golden/generate_ops.py tests/golden/ops.safetensors

# The ResNets at their full width, against PyTorch where it is installed.
EXTRA_DIST += tests/golden/train_resnet.py
