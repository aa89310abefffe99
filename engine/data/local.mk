engine_libengine_a_SOURCES += \
	%D%/dataset.h \
	%D%/loader.h \
	%D%/order.h
