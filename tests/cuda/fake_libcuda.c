/* A stand-in for libcuda: it has the entry points that warpjit calls, keeps a log of them, and refuses what the driver
   refuses. Handles: device d is number d, its primary context 0x1000 + d, modules and functions count up from there. */

#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <stdarg.h>

#define EXPORT __attribute__((visibility("default")))
typedef void *handle;

static char log_text[1 << 18];
static size_t log_length;
static int initialised;
static const char *failing = "";
static int failing_code, failing_times;
static int capture_status, capture_code;
static int major = 9, minor = 0;
static int shared_bytes;
static int sizes[16], size_count;
static __thread handle stack[16];
static __thread int depth;

/* Python lets go of its lock during a call, so lines of several threads would run into each other. */
static pthread_mutex_t log_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

static void note(const char *form, ...) {
  va_list list;
  va_start(list, form);
  pthread_mutex_lock(&log_lock);
  log_length += vsnprintf(log_text + log_length, sizeof log_text - log_length, form, list);
  pthread_mutex_unlock(&log_lock);
  va_end(list);
}

static int failed(const char *call) {
  if (failing_times > 0 && strcmp(call, failing) == 0) { failing_times--; return failing_code; }
  return initialised || strcmp(call, "cuInit") == 0 ? 0 : 3;
}

#define BEGIN(call) do { int code = failed(call); if (code) { note(call " fails %d\n", code); return code; } } while (0)

EXPORT const char *fake_log(void) { return log_text; }
EXPORT void fake_clear(void) { log_length = 0; log_text[0] = 0; }
EXPORT void fake_fail(const char *call, int code, int times) { failing = strdup(call); failing_code = code; failing_times = times; }
EXPORT void fake_capture(int status, int code) { capture_status = status; capture_code = code; }
EXPORT void fake_capability(int a, int b) { major = a; minor = b; }
EXPORT void fake_shared(int bytes) { shared_bytes = bytes; }
EXPORT void fake_parameters(int count, const int *of) { size_count = count; memcpy(sizes, of, count * sizeof *of); }
EXPORT void fake_push(handle context) { stack[depth++] = context; }
EXPORT handle fake_current(void) { return depth ? stack[depth - 1] : 0; }
EXPORT int fake_depth(void) { return depth; }

EXPORT int cuInit(unsigned flags) { BEGIN("cuInit"); note("cuInit %u\n", flags); initialised = 1; return 0; }
EXPORT int cuGetErrorName(int code, const char **text) {
  *text = code == 1 ? "CUDA_ERROR_INVALID_VALUE" : code == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : "CUDA_ERROR_OTHER";
  if (code == 12345) { *text = 0; return 1; }
  return 0;
}
EXPORT int cuGetErrorString(int code, const char **text) {
  *text = code == 12345 ? 0 : "words of the driver";
  return code == 12345;
}
EXPORT int cuDeviceGet(int *device, int ordinal) {
  BEGIN("cuDeviceGet");
  if (ordinal > 1) return 101;
  *device = ordinal;
  return 0;
}
EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device) {
  BEGIN("cuDeviceGetAttribute");
  note("cuDeviceGetAttribute %d of %d\n", attribute, device);
  *value = attribute == 75 ? major : attribute == 76 ? minor : attribute == 16 ? 132 : -1;
  return 0;
}
EXPORT int cuDevicePrimaryCtxRetain(handle *context, int device) {
  BEGIN("cuDevicePrimaryCtxRetain");
  note("retain %d\n", device);
  *context = (handle)(intptr_t)(0x1000 + device);
  return 0;
}
EXPORT int cuCtxGetCurrent(handle *context) { BEGIN("cuCtxGetCurrent"); *context = fake_current(); return 0; }
EXPORT int cuCtxPushCurrent_v2(handle context) {
  BEGIN("cuCtxPushCurrent_v2");
  note("push %p\n", context);
  stack[depth++] = context;
  return 0;
}
EXPORT int cuCtxPopCurrent_v2(handle *context) {
  BEGIN("cuCtxPopCurrent_v2");
  *context = stack[--depth];
  note("pop %p\n", *context);
  return 0;
}

/* A module or function handle tells its context in its upper half. */
static intptr_t made;
static handle make(void) { return (handle)(((intptr_t)fake_current() << 32) | ++made); }
static int misplaced(handle thing) {
  if (!depth) return 201;
  return ((intptr_t)thing >> 32) == (intptr_t)fake_current() ? 0 : 400;
}
#define IN_CONTEXT(thing) do { int code = misplaced(thing); if (code) { note("refused %d\n", code); return code; } } while (0)

EXPORT int cuModuleLoadData(handle *module, const char *image) {
  BEGIN("cuModuleLoadData");
  if (!depth) return 201;
  note("load %s in %p\n", image, fake_current());
  *module = make();
  return 0;
}
EXPORT int cuModuleGetFunction(handle *function, handle module, const char *name) {
  BEGIN("cuModuleGetFunction");
  IN_CONTEXT(module);
  if (strcmp(name, "missing") == 0) return 500;
  note("function %s\n", name);
  *function = make();
  return 0;
}
EXPORT int cuFuncGetAttribute(int *value, int attribute, handle function) {
  BEGIN("cuFuncGetAttribute");
  IN_CONTEXT(function);
  *value = attribute == 1 ? shared_bytes : -1;
  return 0;
}
EXPORT int cuFuncSetAttribute(handle function, int attribute, int value) {
  BEGIN("cuFuncSetAttribute");
  IN_CONTEXT(function);
  note("set %d to %d\n", attribute, value);
  return 0;
}
#ifndef OLD_DRIVER
EXPORT int cuFuncGetParamInfo(handle function, size_t index, size_t *offset, size_t *size) {
  BEGIN("cuFuncGetParamInfo");
  IN_CONTEXT(function);
  if (index >= (size_t)size_count) return 1;
  *offset = 0;
  *size = sizes[index];
  return 0;
}
#endif
EXPORT int cuStreamIsCapturing(handle stream, int *status) {
  BEGIN("cuStreamIsCapturing");
  if (!depth) return 201;
  note("capturing %p\n", stream);
  *status = capture_status;
  return capture_code;
}

static void note_parameters(void **parameters) {
  for (int index = 0; index < size_count; index++) {
    note(" ");
    for (int byte = 0; byte < sizes[index]; byte++) note("%02x", ((unsigned char *)parameters[index])[byte]);
  }
  note("\n");
}

#ifndef OLD_DRIVER
/* The layouts of cuda.h. */
struct configuration { unsigned gx, gy, gz, bx, by, bz, shared; handle stream; void *attributes; unsigned count; };

EXPORT int cuLaunchKernelEx(const struct configuration *c, handle function, void **parameters, void **extra) {
  BEGIN("cuLaunchKernelEx");
  IN_CONTEXT(function);
  if (extra) return 1;
  pthread_mutex_lock(&log_lock);
  note("launch %u,%u,%u x %u,%u,%u shared %u stream %p", c->gx, c->gy, c->gz, c->bx, c->by, c->bz, c->shared, c->stream);
  if (c->count) note(" attributes %u", c->count);
  note(":");
  note_parameters(parameters);
  pthread_mutex_unlock(&log_lock);
  return 0;
}
#endif
