engine_libengine_a_SOURCES +=
