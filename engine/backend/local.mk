engine_libengine_a_SOURCES += \
	%D%/backend.c \
	%D%/backend.h
include engine/backend/cpu/local.mk
