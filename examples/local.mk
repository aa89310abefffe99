# examples: jobs to submit from the top folder, and the data that they read.
EXTRA_DIST += \
	%D%/data/README.md \
	%D%/data/digits-test-images.gz \
	%D%/data/digits-test-labels.gz \
	%D%/data/digits-train-images.gz \
	%D%/data/digits-train-labels.gz \
	%D%/data/make-digits.py \
	%D%/digits-cnn.json \
	%D%/digits-stages.json \
	%D%/pth_to_safetensors.py
