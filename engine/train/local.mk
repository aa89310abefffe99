engine_libengine_a_SOURCES += \
	%D%/checkpoint.h \
	%D%/init.c \
	%D%/init.h \
	%D%/safetensors.c \
	%D%/safetensors.h \
	%D%/safetensors_write.c \
	%D%/trainer.h
