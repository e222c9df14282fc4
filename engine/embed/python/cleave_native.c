/* The extension module `cleave._native`: exceptions, calls that Ctrl-C ends,
 * and the module itself. cleave_native.h says what the other files hold. */
#define _GNU_SOURCE
#include "engine/embed/python/cleave_native.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* --------------------------------------------------------------- Errors -- */

/* error_factory(code, json) gives the exception; errors.py sets it. */
static PyObject* error_factory = NULL;
/* The exception of a Python function that a call ran, for `__cause__`. */
static PyObject* kept_cause = NULL;

void KeepCause(void) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (value != NULL && traceback != NULL) {
    PyException_SetTraceback(value, traceback);
  }
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  Replace(&kept_cause, value);
}

void ForgetCause(void) { Replace(&kept_cause, NULL); }

static PyObject* RaiseText(int32_t code, const char* json) {
  PyObject* cause = kept_cause;
  kept_cause = NULL;
  if (error_factory == NULL) {
    Py_XDECREF(cause);
    PyErr_SetString(PyExc_RuntimeError, json);
    return NULL;
  }
  PyObject* error = PyObject_CallFunction(error_factory, "is", (int)code, json);
  if (error == NULL) {
    Py_XDECREF(cause);
    return NULL;
  }
  if (cause != NULL) PyException_SetCause(error, cause);
  PyErr_SetObject((PyObject*)Py_TYPE(error), error);
  Py_DECREF(error);
  return NULL;
}

PyObject* Raise(cleave_status* status) {
  RaiseText(cleave_status_code(status), cleave_status_json(status));
  cleave_status_free(status);
  return NULL;
}

PyObject* RaiseNew(int32_t code, const char* format, ...) {
  char message[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  cleave_status* status = cleave_status_new(code, message);
  if (status == NULL) return PyErr_NoMemory();
  return Raise(status);
}

PyObject* TakeText(cleave_text* text) {
  PyObject* result = PyUnicode_DecodeUTF8(
      cleave_text_data(text), (Py_ssize_t)cleave_text_size(text), "replace");
  cleave_text_free(text);
  return result;
}

static PyObject* SetErrorFactory(PyObject* module, PyObject* factory) {
  (void)module;
  Py_INCREF(factory);
  Replace(&error_factory, factory);
  Py_RETURN_NONE;
}

/* ----------------------------------------------------------- Long calls -- */

/* What `options` of calls.py set for this thread. */
static _Thread_local cleave_call_options call_options;
static _Thread_local PyObject* call_progress = NULL;

static void Progress(void* context, const char* what, int64_t done,
                     int64_t total) {
  PyGILState_STATE lock = PyGILState_Ensure();
  PyObject* result = PyObject_CallFunction((PyObject*)context, "sLL", what,
                                           (long long)done, (long long)total);
  if (result == NULL) PyErr_WriteUnraisable((PyObject*)context);
  Py_XDECREF(result);
  PyGILState_Release(lock);
}

static PyObject* SetCallOptions(PyObject* module, PyObject* arguments) {
  (void)module;
  double deadline;
  long long tensor_bytes, loop_steps, expressions, bodies, nodes;
  PyObject* progress;
  if (!PyArg_ParseTuple(arguments, "dLLLLLO", &deadline, &tensor_bytes,
                        &loop_steps, &expressions, &bodies, &nodes,
                        &progress)) {
    return NULL;
  }
  call_options.deadline_seconds = deadline;
  call_options.tensor_bytes = tensor_bytes;
  call_options.loop_steps = loop_steps;
  call_options.expressions = expressions;
  call_options.bodies = bodies;
  call_options.nodes = nodes;
  if (progress == Py_None) progress = NULL;
  Py_XINCREF(progress);
  Replace(&call_progress, progress);
  Py_RETURN_NONE;
}

int InMainThread(void) { return (pid_t)syscall(SYS_gettid) == getpid(); }

typedef struct {
  LongBody body;
  void* arguments;
  cleave_call_options options;
  cleave_status* status;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int done;
} Job;

static void* RunJob(void* context) {
  Job* job = context;
  job->status = job->body(job->arguments, &job->options);
  pthread_mutex_lock(&job->lock);
  job->done = 1;
  pthread_cond_signal(&job->changed);
  pthread_mutex_unlock(&job->lock);
  return NULL;
}

/* Waits until the job is done, for 50 ms at most. */
static int WaitForJob(Job* job) {
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += 50 * 1000 * 1000;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    ++until.tv_sec;
  }
  pthread_mutex_lock(&job->lock);
  int error = 0;
  while (!job->done && error != ETIMEDOUT) {
    error = pthread_cond_timedwait(&job->changed, &job->lock, &until);
  }
  const int done = job->done;
  pthread_mutex_unlock(&job->lock);
  return done;
}

/* A thread of a body needs as much stack as a main thread has. */
static int StartJob(Job* job, pthread_t* thread) {
  pthread_attr_t attributes;
  pthread_condattr_t clock;
  pthread_mutex_init(&job->lock, NULL);
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&job->changed, &clock);
  pthread_condattr_destroy(&clock);
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 16u << 20);
  const int error = pthread_create(thread, &attributes, RunJob, job);
  pthread_attr_destroy(&attributes);
  return error;
}

int CallLong(LongBody body, void* arguments) {
  Job job;
  memset(&job, 0, sizeof job);
  ForgetCause();
  job.body = body;
  job.arguments = arguments;
  job.options = call_options;
  job.options.struct_size = sizeof job.options;
  PyObject* progress = call_progress;
  if (progress != NULL) {
    Py_INCREF(progress);
    job.options.progress = Progress;
    job.options.progress_context = progress;
  }
  int signalled = 0;
  pthread_t thread;
  if (!InMainThread()) {
    Py_BEGIN_ALLOW_THREADS;
    job.status = body(arguments, &job.options);
    Py_END_ALLOW_THREADS;
  } else {
    cleave_cancel* cancel = NULL;
    cleave_status* error = cleave_cancel_new(&cancel);
    if (error != NULL) {
      Py_XDECREF(progress);
      Raise(error);
      return -1;
    }
    job.options.cancel = cancel;
    const int started = StartJob(&job, &thread) == 0;
    int done = 0;
    Py_BEGIN_ALLOW_THREADS;
    if (started) {
      done = WaitForJob(&job);
    } else {
      /* Without another thread the call goes on; Ctrl-C waits for its end. */
      job.status = body(arguments, &job.options);
      done = 1;
    }
    Py_END_ALLOW_THREADS;
    while (!done) {
      if (!signalled && PyErr_CheckSignals() != 0) {
        signalled = 1;
        cleave_cancel_now(cancel);
      }
      PyObject *type = NULL, *value = NULL, *traceback = NULL;
      if (signalled) PyErr_Fetch(&type, &value, &traceback);
      Py_BEGIN_ALLOW_THREADS;
      done = WaitForJob(&job);
      Py_END_ALLOW_THREADS;
      if (signalled) PyErr_Restore(type, value, traceback);
    }
    if (started) pthread_join(thread, NULL);
    pthread_mutex_destroy(&job.lock);
    pthread_cond_destroy(&job.changed);
    cleave_cancel_free(cancel);
  }
  Py_XDECREF(progress);
  if (signalled) {
    /* The handler's exception is to be seen, also where the call ended before
     * it saw the signal: the caller releases what it made. */
    cleave_status_free(job.status);
    return -1;
  }
  if (job.status != NULL) {
    Raise(job.status);
    return -1;
  }
  return 0;
}

/* ---------------------------------------------------------------- Texts -- */

int TextsOf(PyObject* sequence, Texts* texts) {
  memset(texts, 0, sizeof *texts);
  if (sequence == Py_None) return 0;
  texts->owner = PySequence_Tuple(sequence);
  if (texts->owner == NULL) return -1;
  texts->count = (size_t)PyTuple_Size(texts->owner);
  texts->items = PyMem_Calloc(texts->count + 1, sizeof *texts->items);
  if (texts->items == NULL) {
    PyErr_NoMemory();
    FreeTexts(texts);
    return -1;
  }
  for (size_t i = 0; i < texts->count; ++i) {
    PyObject* item = PyTuple_GetItem(texts->owner, (Py_ssize_t)i);
    Py_ssize_t size;
    texts->items[i] = PyUnicode_AsUTF8AndSize(item, &size);
    if (texts->items[i] != NULL && strlen(texts->items[i]) == (size_t)size) {
      continue;
    }
    if (!PyErr_Occurred()) {
      PyErr_SetString(PyExc_ValueError, "a text with a NUL in it");
    }
    FreeTexts(texts);
    return -1;
  }
  return 0;
}

void FreeTexts(Texts* texts) {
  Py_XDECREF(texts->owner);
  PyMem_Free(texts->items);
  memset(texts, 0, sizeof *texts);
}

/* --------------------------------------------------------------- Module -- */

static PyObject* AbiVersion(PyObject* module, PyObject* nothing) {
  (void)module;
  (void)nothing;
  return PyLong_FromUnsignedLong(cleave_abi_version());
}

static PyObject* Version(PyObject* module, PyObject* nothing) {
  (void)module;
  (void)nothing;
  return PyUnicode_FromString(cleave_version());
}

static cleave_status* ShippedBody(void* arguments,
                                  const cleave_call_options* options) {
  return cleave_rules_shipped(options, (cleave_rules**)arguments);
}

static PyObject* Shipped(PyObject* module, PyObject* nothing) {
  (void)module;
  (void)nothing;
  cleave_rules* rules = NULL;
  if (CallLong(ShippedBody, &rules) != 0) {
    cleave_rules_release(rules);
    return NULL;
  }
  return NewRules(rules);
}

PyTypeObject* AddType(PyObject* module, PyType_Spec* spec) {
  PyObject* type = PyType_FromSpec(spec);
  if (type == NULL) return NULL;
  if (PyModule_AddType(module, (PyTypeObject*)type) != 0) {
    Py_DECREF(type);
    return NULL;
  }
  return (PyTypeObject*)type;
}

static PyMethodDef functions[] = {
    {"set_error_factory", SetErrorFactory, METH_O,
     "factory(code, json) gives the exception of a status."},
    {"set_call_options", SetCallOptions, METH_VARARGS,
     "Bounds on the calls of this thread, and who hears of their progress."},
    {"abi_version", AbiVersion, METH_NOARGS,
     "The version of the library's C interface."},
    {"version", Version, METH_NOARGS, "The version of the library."},
    {"shipped", Shipped, METH_NOARGS, "The shipped rules."},
    {NULL, NULL, 0, NULL}};

static PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    "cleave._native",
    "Rules, graphs and kernels of libcleave.so. Use the package `cleave`.",
    -1,
    functions,
    NULL,
    NULL,
    NULL,
    NULL};

PyMODINIT_FUNC PyInit__native(void) {
  if (cleave_abi_version() < CLEAVE_ABI_VERSION) {
    PyErr_Format(PyExc_ImportError,
                 "libcleave.so has C interface %u, and cleave needs %u",
                 (unsigned)cleave_abi_version(), (unsigned)CLEAVE_ABI_VERSION);
    return NULL;
  }
  PyObject* module = PyModule_Create(&module_definition);
  if (module == NULL) return NULL;
  if (AddRulesTypes(module) != 0 || AddGraphType(module) != 0 ||
      AddMemoryType(module) != 0 || AddKernelType(module) != 0 ||
      AddDispatchType(module) != 0) {
    Py_DECREF(module);
    return NULL;
  }
  return module;
}
