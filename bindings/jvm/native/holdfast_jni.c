/*
 * holdfast_jni.c - the natives of org.holdfast.Handle: byte arrays in, byte arrays out.
 *
 * Requests and replies cross as UTF-8 in byte[], never as jstring: JNI's strings are modified
 * UTF-8. A reply is an array whose first byte is the status and whose rest is the JSON text, so
 * that a call takes one array for both. The natives are instance methods: the JVM keeps the object
 * for as long as a call of it runs, so that a collector cannot close a handle inside its last call.
 *
 * A handle is a token to the library (holdfast.h), so a stale one is safe. Kept here is one global
 * reference for each key store, until the library lets go of it.
 */
#include <holdfast.h>
#include <jni.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __ANDROID__
#include <android/log.h>
#endif

/* Zeroes memory that held a request; the compiler may not leave it out. */
static void wipe(char *memory, size_t length) {
  volatile char *at = memory;
  while (length-- > 0)
    *at++ = 0;
}

static void throw_new(JNIEnv *env, const char *class_name, const char *message) {
  jclass class = (*env)->FindClass(env, class_name);
  if (class)
    (*env)->ThrowNew(env, class, message);
}

/* A copy of a byte array as a C string. */
typedef struct text {
  char *bytes;
  size_t length;
} text;

/* False with an exception pending. A null array is the empty text, which means {}. */
static bool text_of(JNIEnv *env, jbyteArray array, text *it) {
  it->length = array ? (size_t)(*env)->GetArrayLength(env, array) : 0;
  it->bytes = malloc(it->length + 1);
  if (!it->bytes) {
    throw_new(env, "java/lang/OutOfMemoryError", "no memory for a request");
    return false;
  }
  if (it->length)
    (*env)->GetByteArrayRegion(env, array, 0, (jsize)it->length, (jbyte *)it->bytes);
  it->bytes[it->length] = 0;
  return true;
}

static void text_end(text *it) {
  wipe(it->bytes, it->length);
  free(it->bytes);
}

/* The status, the handle if one was opened, and the reply, which is released. NULL with an
 * exception pending: the JVM has no memory for the array. */
static jbyteArray answer(JNIEnv *env, int32_t status, const jlong *handle, char *reply) {
  size_t length = reply ? strlen(reply) : 0;
  jsize head = handle ? 1 + (jsize)sizeof *handle : 1;
  jbyte code = (jbyte)status;
  jbyteArray array = (*env)->NewByteArray(env, head + (jsize)length);
  if (array) {
    (*env)->SetByteArrayRegion(env, array, 0, 1, &code);
    if (handle) {
      jbyte bytes[sizeof *handle];
      for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (jbyte)((uint64_t)*handle >> (8 * (sizeof bytes - 1 - i)));
      (*env)->SetByteArrayRegion(env, array, 1, (jsize)sizeof bytes, bytes);
    }
    if (length)
      (*env)->SetByteArrayRegion(env, array, head, (jsize)length, (const jbyte *)reply);
  }
  holdfast_free(reply);
  return array;
}

/* ---- the key store: an object of org.holdfast.Keys, called on the thread of a call ---- */

enum { LOAD, SAVE, ERASE }; /* as in Keys.java */
enum { KEY_BYTES = 32 };

static JavaVM *machine;
static jmethodID keys_answer;

/* `key`: what a save has, and where a load finds it. */
static int32_t ask(void *keys, jint operation, const char *name, jboolean biometric, void *key) {
  static const jbyte zeros[KEY_BYTES];
  JNIEnv *env = NULL;
  jint result = HOLDFAST_KEY_FAILED;
  if ((*machine)->GetEnv(machine, (void **)&env, JNI_VERSION_1_6) != JNI_OK)
    return result;
  if ((*env)->PushLocalFrame(env, 2) == 0) {
    jstring text = (*env)->NewStringUTF(env, name);
    jbyteArray bytes = text ? (*env)->NewByteArray(env, KEY_BYTES) : NULL;
    if (bytes && operation == SAVE)
      (*env)->SetByteArrayRegion(env, bytes, 0, KEY_BYTES, key);
    if (bytes)
      result = (*env)->CallIntMethod(env, keys, keys_answer, operation, text, bytes, biometric);
    if (bytes && !(*env)->ExceptionCheck(env)) {
      if (operation == LOAD && result == HOLDFAST_KEY_OK)
        (*env)->GetByteArrayRegion(env, bytes, 0, KEY_BYTES, key);
      (*env)->SetByteArrayRegion(env, bytes, 0, KEY_BYTES, zeros);
    }
    (*env)->PopLocalFrame(env, NULL);
  }
  if ((*env)->ExceptionCheck(env)) {
    (*env)->ExceptionClear(env);
    result = HOLDFAST_KEY_FAILED;
  }
  return result;
}

static int32_t keys_load(void *keys, const char *name, uint8_t *key, size_t capacity,
                         size_t *length) {
  *length = KEY_BYTES;
  return capacity < KEY_BYTES ? HOLDFAST_KEY_FAILED : ask(keys, LOAD, name, JNI_FALSE, key);
}

static int32_t keys_save(void *keys, const char *name, const uint8_t *key, size_t length,
                         int32_t protection) {
  bool biometric = protection == HOLDFAST_PROTECT_BIOMETRIC;
  return length != KEY_BYTES ? HOLDFAST_KEY_FAILED : ask(keys, SAVE, name, biometric, (void *)key);
}

static int32_t keys_erase(void *keys, const char *name) {
  return ask(keys, ERASE, name, JNI_FALSE, NULL);
}

static void keys_destroy(void *keys) {
  JNIEnv *env = NULL;
  if ((*machine)->GetEnv(machine, (void **)&env, JNI_VERSION_1_6) == JNI_OK)
    (*env)->DeleteGlobalRef(env, keys);
}

/* ---- the natives ---- */

static jbyteArray handle_open(JNIEnv *env, jclass class, jbyteArray config, jobject keys) {
  (void)class;
  holdfast_keystore store = {sizeof store, NULL, keys_load, keys_save, keys_erase, keys_destroy};
  text given;
  if (!text_of(env, config, &given))
    return NULL;
  if (keys && !(store.context = (*env)->NewGlobalRef(env, keys))) {
    text_end(&given);
    throw_new(env, "java/lang/OutOfMemoryError", "no memory for a key store");
    return NULL;
  }
  holdfast *self = NULL;
  char *reply = NULL;
  int32_t status = holdfast_open(given.bytes, keys ? &store : NULL, &self, &reply);
  text_end(&given);
  jlong handle = (jlong)(intptr_t)self;
  jbyteArray array = answer(env, status, &handle, reply);
  if (!array)
    holdfast_close(self);
  return array;
}

static jbyteArray handle_call(JNIEnv *env, jobject object, jlong handle, jbyteArray operation,
                              jbyteArray request) {
  (void)object;
  text name;
  if (!text_of(env, operation, &name))
    return NULL;
  text given;
  if (!text_of(env, request, &given)) {
    text_end(&name);
    return NULL;
  }
  char *reply = NULL;
  int32_t status = holdfast_call((holdfast *)(intptr_t)handle, name.bytes, given.bytes, &reply);
  text_end(&given);
  text_end(&name);
  return answer(env, status, NULL, reply);
}

static jbyteArray handle_next(JNIEnv *env, jobject object, jlong handle, jint what,
                              jint timeout_ms) {
  (void)object;
  char *reply = NULL;
  int32_t status = holdfast_next((holdfast *)(intptr_t)handle, what, timeout_ms, &reply);
  return answer(env, status, NULL, reply);
}

static void handle_close(JNIEnv *env, jclass class, jlong handle) {
  (void)env;
  (void)class;
  holdfast_close((holdfast *)(intptr_t)handle);
}

static jlong handle_live(JNIEnv *env, jclass class) {
  (void)env;
  (void)class;
  return holdfast_live_count();
}

static jstring handle_build_info(JNIEnv *env, jclass class) {
  (void)class;
  return (*env)->NewStringUTF(env, holdfast_build_info()); /* of ASCII */
}

/* To the system's log on Android, else to the error stream. Without Java, because the library logs
 * inside a call. */
static void write_line(void *context, int32_t level, const char *line) {
  (void)context;
#ifdef __ANDROID__
  static const int priorities[] = {ANDROID_LOG_ERROR, ANDROID_LOG_WARN, ANDROID_LOG_INFO,
                                   ANDROID_LOG_DEBUG};
  __android_log_write(priorities[level < 0 || level > 3 ? 3 : level], "holdfast", line);
#else
  fprintf(stderr, "holdfast %d: %s\n", (int)level, line);
#endif
}

static void handle_log(JNIEnv *env, jclass class, jint level) {
  (void)env;
  (void)class;
  holdfast_log(level, level < 0 ? NULL : write_line, NULL);
}

JNIEXPORT jint JNICALL JNI_OnLoad(JavaVM *vm, void *reserved) {
  (void)reserved;
  JNIEnv *env = NULL;
  if ((*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_1_6) != JNI_OK)
    return JNI_ERR;
  /* An older library lacks what the Java classes were written for. */
  if (holdfast_version_number() < HOLDFAST_VERSION_NUMBER) {
    throw_new(env, "java/lang/UnsatisfiedLinkError", "libholdfast is older than its binding");
    return JNI_ERR;
  }
  machine = vm;
  jclass keys = (*env)->FindClass(env, "org/holdfast/Keys");
  if (!keys ||
      !(keys_answer = (*env)->GetMethodID(env, keys, "answer", "(ILjava/lang/String;[BZ)I")))
    return JNI_ERR;
  jclass class = (*env)->FindClass(env, "org/holdfast/Handle");
  if (!class)
    return JNI_ERR;
  static const JNINativeMethod methods[] = {
      {"open", "([BLorg/holdfast/Keys;)[B", (void *)handle_open},
      {"call", "(J[B[B)[B", (void *)handle_call},
      {"next", "(JII)[B", (void *)handle_next},
      {"close", "(J)V", (void *)handle_close},
      {"live", "()J", (void *)handle_live},
      {"buildInfo", "()Ljava/lang/String;", (void *)handle_build_info},
      {"log", "(I)V", (void *)handle_log},
  };
  if ((*env)->RegisterNatives(env, class, methods, sizeof methods / sizeof *methods) != JNI_OK)
    return JNI_ERR;
  return JNI_VERSION_1_6;
}
