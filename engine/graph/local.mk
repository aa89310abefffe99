engine_libengine_a_SOURCES += \
	%D%/graph.h \
	%D%/model.h \
	%D%/op.h
