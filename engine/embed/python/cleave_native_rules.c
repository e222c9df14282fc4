/* `cleave._native.Rules` and `cleave._native.Builder`: what rules.py and
 * graphs.py build their classes on. */
#include <string.h>

#include "engine/embed/python/cleave_native.h"

PyTypeObject* rules_type = NULL;
static PyTypeObject* builder_type = NULL;

PyObject* NewRules(cleave_rules* handle) {
  allocfunc allocate = (allocfunc)PyType_GetSlot(rules_type, Py_tp_alloc);
  RulesObject* self = (RulesObject*)allocate(rules_type, 0);
  if (self == NULL) {
    cleave_rules_release(handle);
    return NULL;
  }
  self->handle = handle;
  return (PyObject*)self;
}

static void RulesDealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  cleave_rules_release(((RulesObject*)self)->handle);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(self);
  Py_DECREF(type);
}

static cleave_rules* HandleOf(PyObject* self) {
  return ((RulesObject*)self)->handle;
}

/* -------------------------------------------------------------- Loading -- */

/* The arguments and results of a long call. */
typedef struct {
  const cleave_rules* rules;
  const cleave_source* sources;
  const char* const* paths;
  size_t count;
  const char *op, *transform;
  const cleave_check_options* check;
  cleave_rules* out;
  cleave_text* text;
} Work;

static PyObject* RulesBy(LongBody body, Work* work) {
  if (CallLong(body, work) != 0) {
    cleave_rules_release(work->out);
    return NULL;
  }
  return NewRules(work->out);
}

static PyObject* TextBy(LongBody body, Work* work) {
  if (CallLong(body, work) != 0) {
    cleave_text_free(work->text);
    return NULL;
  }
  return TakeText(work->text);
}

static cleave_status* ExtendBody(void* arguments,
                                 const cleave_call_options* options) {
  Work* w = arguments;
  return cleave_rules_extend(w->rules, w->sources, w->count, options, &w->out);
}

static PyObject* RulesExtend(PyObject* self, PyObject* arguments) {
  PyObject *names, *texts;
  if (!PyArg_ParseTuple(arguments, "OO", &names, &texts)) return NULL;
  Texts name_texts = {0}, source_texts = {0};
  PyObject* result = NULL;
  cleave_source* sources = NULL;
  if (TextsOf(names, &name_texts) == 0 && TextsOf(texts, &source_texts) == 0) {
    sources = PyMem_Calloc(source_texts.count + 1, sizeof *sources);
    if (sources == NULL) {
      PyErr_NoMemory();
    } else if (name_texts.count != source_texts.count) {
      PyErr_SetString(PyExc_ValueError, "as many names as texts are needed");
    } else {
      Work work = {.rules = HandleOf(self), .count = source_texts.count};
      for (size_t i = 0; i < work.count; ++i) {
        sources[i].struct_size = sizeof sources[i];
        sources[i].name = name_texts.items[i];
        sources[i].text = source_texts.items[i];
      }
      work.sources = sources;
      result = RulesBy(ExtendBody, &work);
    }
  }
  PyMem_Free(sources);
  FreeTexts(&name_texts);
  FreeTexts(&source_texts);
  return result;
}

static cleave_status* FilesBody(void* arguments,
                                const cleave_call_options* options) {
  Work* w = arguments;
  return cleave_rules_extend_files(w->rules, w->paths, w->count, options,
                                   &w->out);
}

static PyObject* RulesExtendFiles(PyObject* self, PyObject* paths) {
  Texts texts;
  if (TextsOf(paths, &texts) != 0) return NULL;
  Work work = {
      .rules = HandleOf(self), .paths = texts.items, .count = texts.count};
  PyObject* result = RulesBy(FilesBody, &work);
  FreeTexts(&texts);
  return result;
}

/* ------------------------------------------------------------ Questions -- */

static PyObject* RulesNames(PyObject* self, PyObject* nothing) {
  (void)nothing;
  cleave_text* text;
  cleave_status* error = cleave_rules_names(HandleOf(self), &text);
  return error != NULL ? Raise(error) : TakeText(text);
}

static PyObject* RulesDescribe(PyObject* self, PyObject* arguments) {
  const char* name;
  if (!PyArg_ParseTuple(arguments, "s", &name)) return NULL;
  cleave_text* text;
  cleave_status* error = cleave_rules_describe(HandleOf(self), name, &text);
  return error != NULL ? Raise(error) : TakeText(text);
}

static cleave_status* CoverageBody(void* arguments,
                                   const cleave_call_options* options) {
  Work* w = arguments;
  return cleave_rules_coverage(w->rules, w->op, options, &w->text);
}

static PyObject* RulesCoverage(PyObject* self, PyObject* arguments) {
  Work work = {.rules = HandleOf(self)};
  if (!PyArg_ParseTuple(arguments, "s", &work.op)) return NULL;
  return TextBy(CoverageBody, &work);
}

static cleave_status* DeriveBody(void* arguments,
                                 const cleave_call_options* options) {
  Work* w = arguments;
  return cleave_rules_derive(w->rules, w->op, w->transform, options, &w->text);
}

static PyObject* RulesDerive(PyObject* self, PyObject* arguments) {
  Work work = {.rules = HandleOf(self)};
  if (!PyArg_ParseTuple(arguments, "ss", &work.op, &work.transform)) {
    return NULL;
  }
  return TextBy(DeriveBody, &work);
}

static cleave_status* CheckBody(void* arguments,
                                const cleave_call_options* options) {
  Work* w = arguments;
  return cleave_rules_check(w->rules, w->check, options, &w->text);
}

/* check(ops, seed, layers, dtypes, host_kernels, kernels, threads, sources, ulp,
 * input_ulp, survey, seconds), None or 0 for what keeps its default. */
static PyObject* RulesCheck(PyObject* self, PyObject* arguments) {
  cleave_check_options check;
  memset(&check, 0, sizeof check);
  check.struct_size = sizeof check;
  unsigned long long seed;
  int kernels, threads, survey;
  PyObject* functions;
  if (!PyArg_ParseTuple(arguments, "zKzzOpizddpd", &check.ops, &seed,
                        &check.layers, &check.dtypes, &functions, &kernels,
                        &threads, &check.sources, &check.host_ulp,
                        &check.host_input_ulp, &survey,
                        &check.seconds_per_op)) {
    return NULL;
  }
  check.host_survey = survey;
  check.seed = seed;
  check.kernels = kernels;
  check.threads = threads;
  cleave_host_kernels* host_kernels = NULL;
  if (HostKernelsOf(functions, &host_kernels) != 0) return NULL;
  check.host_kernels = host_kernels;
  Work work = {.rules = HandleOf(self), .check = &check};
  PyObject* result = TextBy(CheckBody, &work);
  cleave_host_kernels_free(host_kernels);
  return result;
}

static PyObject* RulesFunction(PyObject* self, PyObject* arguments) {
  const char* name;
  if (!PyArg_ParseTuple(arguments, "s", &name)) return NULL;
  cleave_graph* out;
  cleave_status* error = cleave_graph_of_function(HandleOf(self), name, &out);
  return error != NULL ? Raise(error) : NewGraph(out);
}

static PyObject* RulesParse(PyObject* self, PyObject* arguments) {
  const char* text;
  if (!PyArg_ParseTuple(arguments, "s", &text)) return NULL;
  cleave_graph* out;
  cleave_status* error = cleave_graph_parse(HandleOf(self), text, &out);
  return error != NULL ? Raise(error) : NewGraph(out);
}

static PyMethodDef rules_methods[] = {
    {"extend", RulesExtend, METH_VARARGS, "extend(names, texts) -> Rules"},
    {"extend_files", RulesExtendFiles, METH_O, "extend_files(paths) -> Rules"},
    {"names", RulesNames, METH_NOARGS, "names() -> str of JSON"},
    {"describe", RulesDescribe, METH_VARARGS, "describe(name) -> str of JSON"},
    {"coverage", RulesCoverage, METH_VARARGS, "coverage(op) -> str of JSON"},
    {"derive", RulesDerive, METH_VARARGS, "derive(op, transform) -> str"},
    {"check", RulesCheck, METH_VARARGS, "check(ops, seed, ..) -> str of JSON"},
    {"function", RulesFunction, METH_VARARGS, "function(name) -> Graph"},
    {"parse", RulesParse, METH_VARARGS, "parse(text) -> Graph"},
    {NULL, NULL, 0, NULL}};

static PyType_Slot rules_slots[] = {{Py_tp_dealloc, RulesDealloc},
                                    {Py_tp_methods, rules_methods},
                                    {Py_tp_doc, "A rule set of the library."},
                                    {0, NULL}};

static PyType_Spec rules_spec = {
    "cleave._native.Rules", sizeof(RulesObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, rules_slots};

/* -------------------------------------------------------------- Builder -- */

typedef struct {
  PyObject_HEAD cleave_builder* handle;
} BuilderObject;

static cleave_builder* BuilderOf(PyObject* self) {
  return ((BuilderObject*)self)->handle;
}

static PyObject* BuilderNew(PyTypeObject* type, PyObject* arguments,
                            PyObject* keywords) {
  PyObject* rules;
  (void)keywords;
  if (!PyArg_ParseTuple(arguments, "O!", rules_type, &rules)) return NULL;
  cleave_builder* handle;
  cleave_status* error = cleave_builder_new(HandleOf(rules), &handle);
  if (error != NULL) return Raise(error);
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  BuilderObject* self = (BuilderObject*)allocate(type, 0);
  if (self == NULL) {
    cleave_builder_free(handle);
    return NULL;
  }
  self->handle = handle;
  return (PyObject*)self;
}

static void BuilderDealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  cleave_builder_free(BuilderOf(self));
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(self);
  Py_DECREF(type);
}

static PyObject* BuilderInput(PyObject* self, PyObject* arguments) {
  const char *name, *type;
  cleave_value value;
  if (!PyArg_ParseTuple(arguments, "ss", &name, &type)) return NULL;
  cleave_status* error =
      cleave_builder_input(BuilderOf(self), name, type, &value);
  return error != NULL ? Raise(error) : PyLong_FromUnsignedLong(value);
}

static PyObject* BuilderConstant(PyObject* self, PyObject* arguments) {
  const char *number, *type;
  cleave_value value;
  if (!PyArg_ParseTuple(arguments, "ss", &number, &type)) return NULL;
  cleave_status* error =
      cleave_builder_constant(BuilderOf(self), number, type, &value);
  return error != NULL ? Raise(error) : PyLong_FromUnsignedLong(value);
}

static PyObject* BuilderType(PyObject* self, PyObject* arguments) {
  unsigned int value;
  if (!PyArg_ParseTuple(arguments, "I", &value)) return NULL;
  cleave_text* text;
  cleave_status* error = cleave_builder_type(BuilderOf(self), value, &text);
  return error != NULL ? Raise(error) : TakeText(text);
}

/* A value of an argument list: an int, or None for an absent one. */
static int ValueOf(PyObject* object, cleave_value* value) {
  if (object == Py_None) {
    *value = CLEAVE_ABSENT;
    return 0;
  }
  const unsigned long number = PyLong_AsUnsignedLong(object);
  if (PyErr_Occurred()) return -1;
  *value = (cleave_value)number;
  return 0;
}

/* Values of a sequence, which PyMem_Free frees. */
static cleave_value* ValuesOf(PyObject* sequence, size_t* count) {
  PyObject* tuple = PySequence_Tuple(sequence);
  if (tuple == NULL) return NULL;
  *count = (size_t)PyTuple_Size(tuple);
  cleave_value* values = PyMem_Calloc(*count + 1, sizeof *values);
  if (values == NULL) PyErr_NoMemory();
  for (size_t i = 0; values != NULL && i < *count; ++i) {
    if (ValueOf(PyTuple_GetItem(tuple, (Py_ssize_t)i), &values[i]) != 0) {
      PyMem_Free(values);
      values = NULL;
    }
  }
  Py_DECREF(tuple);
  return values;
}

static PyObject* ListOfValues(const cleave_value* values, size_t count) {
  PyObject* list = PyList_New((Py_ssize_t)count);
  for (size_t i = 0; list != NULL && i < count; ++i) {
    PyObject* item;
    if (values[i] == CLEAVE_ABSENT) {
      Py_INCREF(Py_None);
      item = Py_None;
    } else {
      item = PyLong_FromUnsignedLong(values[i]);
    }
    if (item == NULL || PyList_SetItem(list, (Py_ssize_t)i, item) != 0) {
      Py_DECREF(list);
      return NULL;
    }
  }
  return list;
}

/* Fills `argument` from (name or None, value, None or list). `values` is what
 * the caller frees. */
static int ArgumentOf(PyObject* pair, cleave_argument* argument,
                      cleave_value** values) {
  PyObject* object;
  argument->struct_size = sizeof *argument;
  if (!PyArg_ParseTuple(pair, "zO", &argument->name, &object)) return -1;
  if (PyList_Check(object) || PyTuple_Check(object)) {
    argument->kind = CLEAVE_ARGUMENT_LIST;
    *values = ValuesOf(object, &argument->count);
    if (*values == NULL) return -1;
  } else {
    *values = PyMem_Calloc(1, sizeof **values);
    if (*values == NULL) {
      PyErr_NoMemory();
      return -1;
    }
    if (ValueOf(object, *values) != 0) return -1;
    argument->kind = **values == CLEAVE_ABSENT ? CLEAVE_ARGUMENT_ABSENT
                                               : CLEAVE_ARGUMENT_TENSOR;
    argument->count = 1;
  }
  argument->values = *values;
  return 0;
}

static PyObject* CallWith(cleave_builder* builder, const char* op,
                          const cleave_argument* arguments, size_t count,
                          const char* attributes) {
  cleave_value few[16];
  cleave_value* results = few;
  size_t capacity = 16, found = 0;
  cleave_status* error = cleave_builder_call(
      builder, op, arguments, count, attributes, results, capacity, &found);
  if (error != NULL && cleave_status_code(error) == CLEAVE_OUT_OF_RANGE &&
      found > capacity) {
    cleave_status_free(error);
    capacity = found;
    results = PyMem_Calloc(capacity, sizeof *results);
    if (results == NULL) return PyErr_NoMemory();
    error = cleave_builder_call(builder, op, arguments, count, attributes,
                                results, capacity, &found);
  }
  PyObject* list = error != NULL ? Raise(error) : ListOfValues(results, found);
  if (results != few) PyMem_Free(results);
  return list;
}

/* call(op, [(name or None, value or None or list)], attributes or None) */
static PyObject* BuilderCall(PyObject* self, PyObject* arguments) {
  const char *op, *attributes;
  PyObject* sequence;
  if (!PyArg_ParseTuple(arguments, "sOz", &op, &sequence, &attributes)) {
    return NULL;
  }
  PyObject* tuple = PySequence_Tuple(sequence);
  if (tuple == NULL) return NULL;
  const size_t count = (size_t)PyTuple_Size(tuple);
  cleave_argument* items = PyMem_Calloc(count + 1, sizeof *items);
  cleave_value** values = PyMem_Calloc(count + 1, sizeof *values);
  PyObject* result = NULL;
  size_t done = 0;
  if (items == NULL || values == NULL) {
    PyErr_NoMemory();
  } else {
    while (done < count && ArgumentOf(PyTuple_GetItem(tuple, (Py_ssize_t)done),
                                      &items[done], &values[done]) == 0) {
      ++done;
    }
    if (done == count) {
      result = CallWith(BuilderOf(self), op, items, count, attributes);
    }
  }
  for (size_t i = 0; values != NULL && i < count; ++i) PyMem_Free(values[i]);
  PyMem_Free(items);
  PyMem_Free(values);
  Py_DECREF(tuple);
  return result;
}

static PyObject* BuilderInline(PyObject* self, PyObject* arguments) {
  PyObject *graph, *sequence;
  if (!PyArg_ParseTuple(arguments, "O!O", graph_type, &graph, &sequence)) {
    return NULL;
  }
  const cleave_graph* handle = ((GraphObject*)graph)->handle;
  size_t count;
  cleave_value* values = ValuesOf(sequence, &count);
  if (values == NULL) return NULL;
  const size_t outputs = cleave_graph_output_count(handle);
  cleave_value* results = PyMem_Calloc(outputs + 1, sizeof *results);
  PyObject* list = NULL;
  if (results == NULL) {
    PyErr_NoMemory();
  } else {
    cleave_status* error = cleave_builder_inline(
        BuilderOf(self), handle, values, count, results, outputs);
    list = error != NULL ? Raise(error) : ListOfValues(results, outputs);
  }
  PyMem_Free(values);
  PyMem_Free(results);
  return list;
}

static PyObject* BuilderFinish(PyObject* self, PyObject* arguments) {
  PyObject *names, *sequence;
  if (!PyArg_ParseTuple(arguments, "OO", &names, &sequence)) return NULL;
  Texts texts;
  if (TextsOf(names, &texts) != 0) return NULL;
  size_t count;
  cleave_value* values = ValuesOf(sequence, &count);
  PyObject* result = NULL;
  if (values != NULL && count != texts.count) {
    PyErr_SetString(PyExc_ValueError, "as many names as outputs are needed");
  } else if (values != NULL) {
    cleave_graph* out;
    cleave_status* error = cleave_builder_finish(BuilderOf(self), texts.items,
                                                 values, count, &out);
    result = error != NULL ? Raise(error) : NewGraph(out);
  }
  PyMem_Free(values);
  FreeTexts(&texts);
  return result;
}

static PyMethodDef builder_methods[] = {
    {"input", BuilderInput, METH_VARARGS, "input(name, type) -> int"},
    {"constant", BuilderConstant, METH_VARARGS, "constant(number, type)"},
    {"call", BuilderCall, METH_VARARGS, "call(op, arguments, attributes)"},
    {"inline", BuilderInline, METH_VARARGS, "inline(graph, values) -> list"},
    {"type", BuilderType, METH_VARARGS, "type(value) -> str"},
    {"finish", BuilderFinish, METH_VARARGS, "finish(names, values) -> Graph"},
    {NULL, NULL, 0, NULL}};

static PyType_Slot builder_slots[] = {{Py_tp_new, BuilderNew},
                                      {Py_tp_dealloc, BuilderDealloc},
                                      {Py_tp_methods, builder_methods},
                                      {Py_tp_doc, "A graph in the making."},
                                      {0, NULL}};

static PyType_Spec builder_spec = {"cleave._native.Builder",
                                   sizeof(BuilderObject), 0, Py_TPFLAGS_DEFAULT,
                                   builder_slots};

int AddRulesTypes(PyObject* module) {
  rules_type = AddType(module, &rules_spec);
  if (rules_type == NULL) return -1;
  builder_type = AddType(module, &builder_spec);
  return builder_type == NULL ? -1 : 0;
}
