engine_libengine_a_SOURCES += \
	%D%/backend.c \
	%D%/backend.h \
	%D%/collective.h \
	%D%/module.c \
	%D%/module.h
include engine/backend/cpu/local.mk
include engine/backend/cuda/local.mk
