/* Kernels, host functions, check and compiled libraries of cleave.h, from C99.
 *
 *   cc -std=c99 -pedantic -Wall -Wextra -Werror c_run_test.c -lcleave -lm
 *   ./a.out [FOLDER]      # gets a library; $TEST_TMPDIR unless given
 *
 * Prints a line per test, as c_test.c does.
 */

#include "engine/embed/c_testing.h"

/* A host's parallel loop, on one thread, with a count of its tasks. */
static void Loop(void* context, int64_t tasks,
                 void (*body)(void* state, int64_t begin, int64_t end),
                 void* state) {
  int64_t i;
  *(int64_t*)context += tasks;
  for (i = 0; i < tasks; ++i) body(state, i, i + 1);
}

/* A host's memory, which counts its blocks. */
typedef struct {
  int64_t made;
  int64_t freed;
} memory_count;

static void* Allocate(void* context, size_t bytes, size_t alignment) {
  char* block = (char*)malloc(bytes + alignment + sizeof(void*));
  char* place;
  if (block == NULL) return NULL;
  place = block + sizeof(void*);
  place += (alignment - (uintptr_t)place % alignment) % alignment;
  memcpy(place - sizeof(void*), &block, sizeof(void*));
  ++((memory_count*)context)->made;
  return place;
}

static void Release(void* context, void* address, size_t bytes) {
  char* block;
  (void)bytes;
  if (address == NULL) return;
  memcpy(&block, (char*)address - sizeof(void*), sizeof(void*));
  ++((memory_count*)context)->freed;
  free(block);
}

static int32_t MakeOutput(void* context, size_t index, DLTensor* tensor) {
  if (index != 0 || tensor->ndim != 1 || tensor->shape[0] != 4) return 1;
  tensor->data = context;
  return 0;
}

static int32_t MakeNothing(void* context, size_t index, DLTensor* tensor) {
  (void)context;
  (void)index;
  (void)tensor;
  return 1;
}

static void TestKernels(void) {
  cleave_rules* rules = MakeRules();
  cleave_graph* scores = Function(rules, "scores");
  cleave_graph* lowered = NULL;
  cleave_kernel* kernel = NULL;
  cleave_text* report = NULL;
  cleave_compile_options compile;
  cleave_run_options run;
  cleave_cancel* cancel = NULL;
  memory_count memory = {0, 0};
  int64_t tasks = 0;
  float x[8] = {1, 9, 2, 9, 3, 9, 4, 9};
  float y[4] = {0, 0, 0, 0};
  float again[4] = {0, 0, 0, 0};
  int64_t four = 4, two = 2, wide = 5;
  DLTensor input = Tensor(x, 1, &four);
  DLTensor output = Tensor(y, 1, &four);
  const DLTensor* inputs[1];
  const DLTensor* outputs[1];
  inputs[0] = &input;
  outputs[0] = &output;
  memset(&compile, 0, sizeof compile);
  compile.struct_size = sizeof compile;
  compile.device = "cpu";
  compile.generalize = 1;
  OK(cleave_kernel_compile(scores, &compile, NULL, &kernel));
  OK(cleave_kernel_graph(kernel, &lowered));
  EXPECT(cleave_graph_input_count(lowered) == 1);
  cleave_graph_release(lowered);

  input.strides = &two; /* every second element */
  OK(cleave_kernel_run(kernel, inputs, 1, outputs, 1, NULL));
  EXPECT(Near(y[0] + y[1] + y[2] + y[3], 1));
  EXPECT(Near(y[3] / y[2], exp(2.0)));

  memset(&run, 0, sizeof run);
  run.struct_size = sizeof run;
  run.serial = 1;
  run.report = &report;
  run.allocate = Allocate;
  run.release = Release;
  run.allocator_context = &memory;
  output.data = again;
  OK(cleave_kernel_run(kernel, inputs, 1, outputs, 1, &run));
  EXPECT(memcmp(y, again, sizeof y) == 0);
  EXPECT(Has(report, "{"));
  EXPECT(memory.made == memory.freed);
  run.report = NULL;
  run.serial = 0;
  run.parallel_for = Loop;
  run.parallel_context = &tasks;
  run.threads = 2;
  memset(again, 0, sizeof again);
  OK(cleave_kernel_run(kernel, inputs, 1, outputs, 1, &run));
  EXPECT(memcmp(y, again, sizeof y) == 0);

  memset(again, 0, sizeof again);
  OK(cleave_kernel_run_alloc(kernel, inputs, 1, MakeOutput, again, NULL));
  EXPECT(memcmp(y, again, sizeof y) == 0);
  FAILS(cleave_kernel_run_alloc(kernel, inputs, 1, MakeNothing, NULL, NULL),
        CLEAVE_RESOURCE_EXHAUSTED, "");

  OK(cleave_cancel_new(&cancel));
  memset(&run, 0, sizeof run);
  run.struct_size = sizeof run;
  run.cancel = cancel;
  cleave_cancel_now(cancel);
  FAILS(cleave_kernel_run(kernel, inputs, 1, outputs, 1, &run),
        CLEAVE_CANCELLED, "");
  cleave_cancel_reset(cancel);
  OK(cleave_kernel_run(kernel, inputs, 1, outputs, 1, &run));
  cleave_cancel_free(cancel);

  output.shape = &wide;
  FAILS(cleave_kernel_run(kernel, inputs, 1, outputs, 1, NULL),
        CLEAVE_INVALID_ARGUMENT, "");
  output.shape = &four;
  input.dtype.bits = 64;
  FAILS(cleave_kernel_run(kernel, inputs, 1, outputs, 1, NULL),
        CLEAVE_INVALID_ARGUMENT, "");
  input.dtype.bits = 32;
  input.device.device_type = kDLCUDA;
  FAILS(cleave_kernel_run(kernel, inputs, 1, outputs, 1, NULL),
        CLEAVE_FAILED_PRECONDITION, "on a device of cuda");
  input.device.device_type = kDLCPU;
  FAILS(cleave_kernel_run(kernel, inputs, 0, outputs, 1, NULL),
        CLEAVE_INVALID_ARGUMENT, "");
  compile.device = "abacus";
  FAILS(cleave_kernel_compile(scores, &compile, NULL, &kernel),
        CLEAVE_INVALID_ARGUMENT, "abacus");
  cleave_kernel_retain(kernel);
  cleave_kernel_release(kernel);
  cleave_kernel_release(kernel);
  cleave_release_kept_memory();
  cleave_graph_release(scores);
  cleave_rules_release(rules);
}

/* -------------------------------------------------------- Host functions -- */

static cleave_status* ComputeTwice(void* context,
                                   const cleave_host_call* call) {
  const DLTensor* x = call->inputs[0];
  const DLTensor* y = call->results[0];
  const float* from = (const float*)((const char*)x->data + x->byte_offset);
  float* to = (float*)((char*)y->data + y->byte_offset);
  int64_t count = 1, i;
  int32_t axis;
  ++*(int*)context;
  if (strcmp(call->op, "twice") != 0 || x->dtype.bits != 32) {
    return cleave_status_new(CLEAVE_UNIMPLEMENTED, "only f32 is computed");
  }
  for (axis = 0; axis < x->ndim; ++axis) count *= x->shape[axis];
  for (i = 0; i < count; ++i) to[i] = from[i] + from[i];
  return NULL;
}

static cleave_status* Refuse(void* context, const cleave_host_call* call) {
  (void)context;
  (void)call;
  return cleave_status_new(CLEAVE_UNIMPLEMENTED, "the host refuses");
}

static void Destroyed(void* context) { *(int*)context = -1; }

static const char kSum[] =
    "graph (%x: f32[n]) -> (y: f32[n]) {\n"
    "  %1: f32[n] = add(%x, %x)\n"
    "  return y = %1\n"
    "}\n";

static void TestHostFunctions(void) {
  cleave_rules* rules = MakeRules();
  cleave_graph* scores = Function(rules, "scores");
  cleave_host_kernels *kernels = NULL, *graphs = NULL;
  cleave_kernel *kernel = NULL, *other = NULL;
  cleave_graph* sum = NULL;
  cleave_compile_options compile;
  int calls = 0, destroyed = 0;
  float x[4] = {1, 2, 3, 4};
  float y[4] = {0, 0, 0, 0};
  int64_t four = 4;
  DLTensor input = Tensor(x, 1, &four);
  DLTensor output = Tensor(y, 1, &four);
  const DLTensor* inputs[1];
  const DLTensor* outputs[1];
  inputs[0] = &input;
  outputs[0] = &output;
  OK(cleave_host_kernels_new(&kernels));
  OK(cleave_host_kernels_set(kernels, "twice", ComputeTwice, &calls, NULL));
  memset(&compile, 0, sizeof compile);
  compile.struct_size = sizeof compile;
  compile.host_kernels = kernels;
  OK(cleave_kernel_compile(scores, &compile, NULL, &kernel));
  OK(cleave_kernel_run(kernel, inputs, 1, outputs, 1, NULL));
  EXPECT(calls == 1);
  EXPECT(Near(y[3] / y[2], exp(2.0)));
  cleave_kernel_release(kernel);
  OK(cleave_host_kernels_set(kernels, "twice", Refuse, &destroyed, Destroyed));
  OK(cleave_kernel_compile(scores, &compile, NULL, &kernel));
  FAILS(cleave_kernel_run(kernel, inputs, 1, outputs, 1, NULL),
        CLEAVE_UNIMPLEMENTED, "the host refuses");
  /* A graph in the place of a function. */
  OK(cleave_graph_parse(rules, kSum, &sum));
  OK(cleave_host_kernels_new(&graphs));
  OK(cleave_host_kernels_set_graph(graphs, "twice", sum));
  FAILS(cleave_host_kernels_set_graph(graphs, "twice", NULL),
        CLEAVE_INVALID_ARGUMENT, "graph");
  cleave_graph_release(sum);
  compile.host_kernels = graphs;
  OK(cleave_kernel_compile(scores, &compile, NULL, &other));
  cleave_host_kernels_free(graphs);
  OK(cleave_kernel_run(other, inputs, 1, outputs, 1, NULL));
  EXPECT(Near(y[3] / y[2], exp(2.0)));
  cleave_kernel_release(other);
  cleave_host_kernels_free(kernels); /* the kernel holds the function */
  EXPECT(destroyed == 0);
  cleave_kernel_release(kernel);
  EXPECT(destroyed == -1);
  cleave_graph_release(scores);
  cleave_rules_release(rules);
}

/* --------------------------------------------------- Check and compile -- */

static void CountProgress(void* context, const char* what, int64_t done,
                          int64_t total) {
  (void)done;
  (void)total;
  if (what != NULL) ++*(int*)context;
}

static void TestCheck(void) {
  cleave_rules* rules = MakeRules();
  cleave_text *report = NULL, *survey = NULL;
  cleave_graph* sum = NULL;
  cleave_host_kernels* kernels = NULL;
  cleave_check_options check;
  cleave_call_options options;
  int steps = 0;
  memset(&check, 0, sizeof check);
  check.struct_size = sizeof check;
  check.ops = "twice";
  check.dtypes = "f32";
  check.threads = 1;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.progress = CountProgress;
  options.progress_context = &steps;
  options.deadline_seconds = 300;
  OK(cleave_rules_check(rules, &check, &options, &report));
  EXPECT(strstr(cleave_text_data(report), "\"agrees\": true") != NULL ||
         strstr(cleave_text_data(report), "\"agrees\":true") != NULL);
  EXPECT(Has(report, "twice"));
  EXPECT(steps > 0);
  /* A graph of vectors alone, for an op of any axes: it is off elsewhere. */
  OK(cleave_graph_parse(rules, kSum, &sum));
  OK(cleave_host_kernels_new(&kernels));
  OK(cleave_host_kernels_set_graph(kernels, "twice", sum));
  check.host_kernels = kernels;
  check.layers = "host";
  check.host_survey = 1;
  OK(cleave_rules_check(rules, &check, &options, &survey));
  EXPECT(strstr(cleave_text_data(survey), "\"inaccurate\"") == NULL);
  EXPECT(Has(survey, "\"findings\":[{\"count\":"));
  check.host_ulp = -1;
  FAILS(cleave_rules_check(rules, &check, &options, &survey),
        CLEAVE_INVALID_ARGUMENT, "host_ulp");
  check.host_ulp = 0;
  check.seconds_per_op = -1;
  FAILS(cleave_rules_check(rules, &check, &options, &survey),
        CLEAVE_INVALID_ARGUMENT, "seconds_per_op");
  cleave_host_kernels_free(kernels);
  cleave_graph_release(sum);
  cleave_rules_release(rules);
}

static void TestLibrary(const char* folder) {
  cleave_rules* rules = MakeRules();
  cleave_graph* scores = Function(rules, "scores");
  cleave_text* files = NULL;
  if (folder != NULL) {
    OK(cleave_compile_library(scores, "scores", folder, "sse4.1", NULL,
                              &files));
    EXPECT(Has(files, "libscores.a"));
  }
  cleave_graph_release(scores);
  cleave_rules_release(rules);
}

int main(int argc, char** argv) {
  const char* folder = argc > 1 ? argv[1] : getenv("TEST_TMPDIR");
  TEST("kernels", TestKernels());
  TEST("host functions", TestHostFunctions());
  TEST("check", TestCheck());
  TEST("library", TestLibrary(folder));
  printf("1..%d\n", test_number);
  return failures == 0 ? 0 : 1;
}
