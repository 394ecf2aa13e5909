# Kotlin and Java: bindings/jvm.
#
#   jvm         build/jvm/holdfast.jar, which contains the library, holdfast-okhttp.jar and holdfast-kotlin.jar
#   test-jvm    its tests, and those of bindings/android, under -Xcheck:jni

.PHONY: jvm test-jvm

JVM_SOURCES := $(shell find bindings/jvm bindings/android -type f)

jvm: build/jvm/holdfast.jar

build/jvm/holdfast.jar: $(JVM_SOURCES) include/holdfast.h build/lib-bundled/libholdfast.so | .build/checked-jvm $(PYTHON)
	@bindings/jvm/build.sh build/lib-bundled build/jvm .build/jvm

# They start the local backend.
test-jvm: build/jvm/holdfast.jar | $(PYTHON)
	@bindings/jvm/tests/run.sh build/jvm .build/jvm
