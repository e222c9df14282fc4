/* Shared by the tests of the C interface: expectations, and some rules.
 *
 *   EXPECT(x == 1);                       // prints the line where it fails
 *   OK(cleave_graph_parse(rules, text, &graph));
 *   FAILS(cleave_graph_parse(rules, "?", &graph), CLEAVE_INVALID_ARGUMENT, "");
 *   TEST("graphs", TestGraphs());         // prints `ok 1 - graphs`
 *
 * C99 and C++17 read it. cleave.h stands first: it needs no other header.
 */

#ifndef CLEAVE_ENGINE_EMBED_C_TESTING_H_
#define CLEAVE_ENGINE_EMBED_C_TESTING_H_

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/embed/cleave.h"

static int failures;
static const char* test_name = "";

#define EXPECT(condition)                                             \
  do {                                                                \
    if (!(condition)) {                                               \
      printf("# %s: line %d: %s\n", test_name, __LINE__, #condition); \
      ++failures;                                                     \
    }                                                                 \
  } while (0)

/* A call that succeeds. */
#define OK(call)                                         \
  do {                                                   \
    cleave_status* ok_status = (call);                   \
    if (ok_status != NULL) {                             \
      printf("# %s: line %d: %s\n", test_name, __LINE__, \
             cleave_status_message(ok_status));          \
      ++failures;                                        \
      cleave_status_free(ok_status);                     \
    }                                                    \
  } while (0)

/* A call that fails with a code, and a part of the message. */
static inline void ExpectError(cleave_status* status, int32_t code,
                               const char* part, int line) {
  if (cleave_status_code(status) != code ||
      strstr(cleave_status_message(status), part) == NULL) {
    printf("# %s: line %d: %d `%s`\n", test_name, line,
           (int)cleave_status_code(status), cleave_status_message(status));
    ++failures;
  }
  cleave_status_free(status);
}
#define FAILS(call, code, part) ExpectError(call, code, part, __LINE__)

static const char kRules[] =
    "language 1\n"
    "\n"
    "/// Twice a number.\n"
    "op twice(x: T[S..]) -> T[S..]\n"
    "  where T: number\n"
    "  spec y[s..] = x[s..] + x[s..]\n"
    "  = 2 * x\n"
    "\n"
    "fn energy(x: f32[n]) -> f32[] = sum(x * x)\n"
    "fn scores(x: f32[n]) -> f32[n] = softmax(twice(x))\n"
    "fn weighted(x: f32[n], w: f32[n]) -> f32[n] = w * exp(x)\n";

static inline cleave_rules* MakeRules(void) {
  cleave_rules* shipped = NULL;
  cleave_rules* rules = NULL;
  cleave_source source;
  memset(&source, 0, sizeof source);
  source.struct_size = sizeof source;
  source.name = "mine.rules";
  source.text = kRules;
  OK(cleave_rules_shipped(NULL, &shipped));
  OK(cleave_rules_extend(shipped, &source, 1, NULL, &rules));
  cleave_rules_release(shipped); /* `rules` holds what it needs */
  return rules;
}

static inline cleave_graph* Function(const cleave_rules* rules,
                                     const char* name) {
  cleave_graph* graph = NULL;
  OK(cleave_graph_of_function(rules, name, &graph));
  return graph;
}

/* A row-major tensor of f32; `shape` lives as long as it. */
static inline DLTensor Tensor(float* data, int32_t ndim, int64_t* shape) {
  DLTensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.data = data;
  tensor.device.device_type = kDLCPU;
  tensor.ndim = ndim;
  tensor.dtype.code = kDLFloat;
  tensor.dtype.bits = 32;
  tensor.dtype.lanes = 1;
  tensor.shape = shape;
  return tensor;
}

static inline int Near(double a, double b) {
  return fabs(a - b) <= 1e-5 * (1 + fabs(b));
}

/* Whether a text that the library made has this part. Frees it. */
static inline int Has(cleave_text* text, const char* part) {
  int found = text != NULL && strstr(cleave_text_data(text), part) != NULL &&
              strlen(cleave_text_data(text)) == cleave_text_size(text);
  if (!found && text != NULL) printf("# %s\n", cleave_text_data(text));
  cleave_text_free(text);
  return found;
}

/* Runs a graph of one f32[n] input and one output of `results` elements. */
static inline void Run(const cleave_graph* graph, float* x, int64_t n, float* y,
                       int32_t rank, int64_t* shape) {
  cleave_kernel* kernel = NULL;
  DLTensor input = Tensor(x, 1, &n);
  DLTensor output = Tensor(y, rank, shape);
  const DLTensor* inputs[1];
  const DLTensor* outputs[1];
  inputs[0] = &input;
  outputs[0] = &output;
  OK(cleave_kernel_compile(graph, NULL, NULL, &kernel));
  if (kernel == NULL) return;
  OK(cleave_kernel_run(kernel, inputs, 1, outputs, 1, NULL));
  cleave_kernel_release(kernel);
}

static int test_number;

#define TEST(name, call)                                         \
  do {                                                           \
    int before = failures;                                       \
    test_name = name;                                            \
    call;                                                        \
    printf("%s %d - %s\n", failures == before ? "ok" : "not ok", \
           ++test_number, name);                                 \
    fflush(stdout);                                              \
  } while (0)

#endif /* CLEAVE_ENGINE_EMBED_C_TESTING_H_ */
