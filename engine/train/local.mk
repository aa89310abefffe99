engine_libengine_a_SOURCES += \
	%D%/checkpoint.h \
	%D%/init.h \
	%D%/safetensors.h \
	%D%/trainer.h
