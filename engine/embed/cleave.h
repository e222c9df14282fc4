/* Cleave's C interface: rules in, graphs out, transformed, compiled, run and
 * checked, from any language that can call C.
 *
 *   cleave_rules* rules;
 *   cleave_graph *f, *df;
 *   cleave_kernel* kernel;
 *   cleave_status* error = cleave_rules_shipped(NULL, &rules);
 *   if (error == NULL) error = cleave_graph_parse(rules, text, &f);
 *   if (error == NULL) error = cleave_grad(f, active, 1, NULL, &df);
 *   if (error == NULL) error = cleave_kernel_compile(df, NULL, NULL, &kernel);
 *   if (error == NULL) error = cleave_kernel_run(kernel, x, 1, dx, 1, NULL);
 *   if (error != NULL) { puts(cleave_status_message(error)); .. }
 *
 * Every function keeps these promises, unless it says otherwise:
 *
 * Errors. A function returns NULL for success, else a status that the caller
 * frees. Then nothing was written to its `out` arguments. No mistake of a
 * caller who passes living handles ends the process; nothing throws, or prints.
 * A null handle, text or `out` argument is CLEAVE_INVALID_ARGUMENT. Memory that
 * runs out is CLEAVE_RESOURCE_EXHAUSTED.
 *
 * Ownership. The result in an `out` argument belongs to the caller, who
 * releases it by the function of its type; NULL is released without effect.
 * Arguments are borrowed for the call alone. A graph, kernel or rule set holds
 * what it needs of others: they may be released in any order. Text arguments
 * are UTF-8 and end with a NUL.
 *
 * Threads. Rule sets, graphs, kernels and statuses never change: any number of
 * threads may use one at once, and counts of references are atomic. A builder
 * is used by one thread at a time. No function keeps state beyond the handles,
 * apart from the folder of compiled kernels and the shared pool of threads.
 *
 * Versions. Structs begin with `struct_size`, which the caller sets to their
 * size: fields that a caller's header did not have yet count as 0. Functions
 * are added, never changed or removed. All are there since ABI version 1.
 *
 * Types are texts: `f32[n, 2*m]`, `bool[]`. A size is a number or an expression
 * in variables, which stand for any size. Attributes are texts, too, in the
 * notation of graphs: `axis: 1, beta: 2.0, dtype: f32, mode: "same"`. Lists of
 * flags have an entry, 0 or 1, for each input of the graph.
 */

#ifndef CLEAVE_ENGINE_EMBED_CLEAVE_H_
#define CLEAVE_ENGINE_EMBED_CLEAVE_H_

#include <stddef.h>
#include <stdint.h>

#include "dlpack.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CLEAVE_API __attribute__((visibility("default")))
#else
#define CLEAVE_API
#endif

/* ------------------------------------------------------------- Versions -- */

#define CLEAVE_ABI_VERSION 1

/* CLEAVE_ABI_VERSION of the library, which is to be at least that of the
 * header. */
CLEAVE_API uint32_t cleave_abi_version(void);
/* "0.1.0". Static. */
CLEAVE_API const char* cleave_version(void);

/* Where the library says what no status can: that the process may hold no
 * machine code, so that the interpreter computes instead (said once), and what
 * kernels print. For the whole process; NULL stands for standard error, as
 * before the first call. `message` has no line end behind it. `log` is called
 * by any thread, one at a time, and must not call this function; when
 * this returns, the function before is not called any more. */
CLEAVE_API void cleave_set_log(void (*log)(void* context, const char* message),
                               void* context);

/* --------------------------------------------------------------- Status -- */

typedef struct cleave_status cleave_status;

/* The numbers of absl::StatusCode. */
enum {
  CLEAVE_OK = 0,
  CLEAVE_CANCELLED = 1, /* by cleave_cancel_now */
  CLEAVE_UNKNOWN = 2,
  CLEAVE_INVALID_ARGUMENT = 3, /* the caller's mistake, or the rules' */
  CLEAVE_DEADLINE_EXCEEDED = 4,
  CLEAVE_NOT_FOUND = 5,           /* no op, function or file of that name */
  CLEAVE_RESOURCE_EXHAUSTED = 8,  /* a limit, or memory */
  CLEAVE_FAILED_PRECONDITION = 9, /* a guard on sizes does not hold, .. */
  CLEAVE_OUT_OF_RANGE = 11,
  CLEAVE_UNIMPLEMENTED = 12, /* impossible, or not supported: and why */
  CLEAVE_INTERNAL = 13       /* a defect of Cleave */
};

/* CLEAVE_OK of NULL. */
CLEAVE_API int32_t cleave_status_code(const cleave_status* status);
/* One or more lines, valid as long as the status; "" of NULL. Mistakes in rules
 * are shown with their place and a caret. */
CLEAVE_API const char* cleave_status_message(const cleave_status* status);
/* {"code": 3, "name": "INVALID_ARGUMENT", "message": "..",
 *  "refusal": {"kind": "impossible", "reason": "..", "place": "a.rules:3"},
 *  "diagnostics": [{"file": "a.rules", "line": 7, "column": 12,
 *    "end_line": 7, "end_column": 15, "kind": "unknown-name", "message": "..",
 *    "help": "did you mean `beta`?", "text": "a.rules:7:12: error: .."}]}
 * `refusal` is there where something is impossible or not supported,
 * `diagnostics` where rules have mistakes. Valid as long as the status. */
CLEAVE_API const char* cleave_status_json(const cleave_status* status);
CLEAVE_API void cleave_status_free(cleave_status* status);
/* A status for a host's function to return. `message` is copied. */
CLEAVE_API cleave_status* cleave_status_new(int32_t code, const char* message);

/* ---------------------------------------------------------------- Texts -- */

/* Bytes that the library made; a NUL, not counted, stands behind them. */
typedef struct cleave_text cleave_text;
CLEAVE_API const char* cleave_text_data(const cleave_text* text);
CLEAVE_API size_t cleave_text_size(const cleave_text* text);
CLEAVE_API void cleave_text_free(cleave_text* text);

/* -------------------------------------------------------- Calls' options -- */

/* Ends calls early: they return CLEAVE_CANCELLED soon after cleave_cancel_now,
 * which any thread or signal handler may call. A handle may serve any number of
 * calls at once; it stays set until cleave_cancel_reset. It outlives the calls
 * that it was given to. */
typedef struct cleave_cancel cleave_cancel;
CLEAVE_API cleave_status* cleave_cancel_new(cleave_cancel** out);
CLEAVE_API void cleave_cancel_now(cleave_cancel* cancel);
CLEAVE_API void cleave_cancel_reset(cleave_cancel* cancel);
CLEAVE_API void cleave_cancel_free(cleave_cancel* cancel);

/* Bounds on what one call may cause; 0 stands for a default that is far above
 * what real programs need. NULL in the place of a pointer to it: all defaults.
 */
typedef struct cleave_call_options {
  size_t struct_size;
  cleave_cancel* cancel;   /* NULL: the call is not cancelled */
  double deadline_seconds; /* from the beginning of the call */
  int64_t tensor_bytes;    /* of tensors alive at one time */
  int64_t loop_steps;      /* of loops in one evaluation */
  int64_t expressions;     /* of rules, elaborated */
  int64_t bodies;          /* of rules, compiled */
  int64_t nodes;           /* of graphs, made */
  /* Called as the work proceeds, by any thread that works for the call, one
   * at a time: `what` names an op, and `total` is 0 where it is not known. */
  void (*progress)(void* context, const char* what, int64_t done,
                   int64_t total);
  void* progress_context;
} cleave_call_options;

/* ---------------------------------------------------------------- Rules -- */

typedef struct cleave_rules cleave_rules;
CLEAVE_API void cleave_rules_retain(cleave_rules* rules);
CLEAVE_API void cleave_rules_release(cleave_rules* rules);

/* The text of a rule file. `name` is what diagnostics call it; one that ends in
 * `.json` is read as JSON. */
typedef struct cleave_source {
  size_t struct_size;
  const char* name;
  const char* text;
} cleave_source;

/* The shipped rules, loaded once for a process: 20 ms, nothing afterwards. */
CLEAVE_API cleave_status* cleave_rules_shipped(
    const cleave_call_options* options, cleave_rules** out);
/* `base` and what the sources declare; `base` stays as it is. NULL for `base`
 * is no rules at all. An op of theirs that has the name of a shipped one is
 * found by another: `op relu` of mine.rules as "mine_relu". All mistakes of all
 * sources are in the status. */
CLEAVE_API cleave_status* cleave_rules_extend(
    const cleave_rules* base, const cleave_source* sources, size_t count,
    const cleave_call_options* options, cleave_rules** out);
/* The same for files, and folders, in which it takes all rule files. */
CLEAVE_API cleave_status* cleave_rules_extend_files(
    const cleave_rules* base, const char* const* paths, size_t count,
    const cleave_call_options* options, cleave_rules** out);

/* {"op": [..], "fn": [..], "aten": [..], "onnx": [..], "primitive": [..]}:
 * the names, sorted; names of host ops have a prefix, "aten.add.Tensor". */
CLEAVE_API cleave_status* cleave_rules_names(const cleave_rules* rules,
                                             cleave_text** out);
/* The declaration of a name: {"name", "kind", "doc", "declaration", "file",
 * "line", "inputs": [{"name", "optional", "variadic", "static", "type"}],
 * "attributes": [{"name", "type", "default", "required"}], "results": [..],
 * "overrides": [{"file", "line", "declaration"}]}. CLEAVE_NOT_FOUND, with the
 * closest name. */
CLEAVE_API cleave_status* cleave_rules_describe(const cleave_rules* rules,
                                                const char* name,
                                                cleave_text** out);
/* {"vmap": {"kind": "derived", "why": ""}, "jvp": .., "vjp": ..} of an op. */
CLEAVE_API cleave_status* cleave_rules_coverage(
    const cleave_rules* rules, const char* op,
    const cleave_call_options* options, cleave_text** out);
/* The rule of `transform` ("vmap", "jvp", "vjp") for an op as rule text. */
CLEAVE_API cleave_status* cleave_rules_derive(
    const cleave_rules* rules, const char* op, const char* transform,
    const cleave_call_options* options, cleave_text** out);

/* -------------------------------------------------------- Host functions -- */

/* One call of an op that the host computes. Valid until the function returns.
 */
typedef struct cleave_host_call {
  size_t struct_size;
  const char* op;
  const char* attributes;        /* a text, as above; sizes are numbers */
  const DLTensor* const* inputs; /* dense; read only */
  size_t input_count;
  DLTensor* const* results; /* dense; the function writes them */
  size_t result_count;
} cleave_host_call;

/* Returns NULL, or a status, which the library frees. Called by any thread that
 * runs a graph, and by several at once; it throws nothing. */
typedef cleave_status* (*cleave_host_function)(void* context,
                                               const cleave_host_call* call);

/* Functions by the names of ops. Changed by one thread at a time, and by none
 * while a call reads it; calls copy what they need. */
typedef struct cleave_host_kernels cleave_host_kernels;
CLEAVE_API cleave_status* cleave_host_kernels_new(cleave_host_kernels** out);
/* `destroy`, where it is given, is called with `context` once nothing needs the
 * function any more: also where this call fails. */
CLEAVE_API cleave_status* cleave_host_kernels_set(
    cleave_host_kernels* kernels, const char* op, cleave_host_function function,
    void* context, void (*destroy)(void* context));
CLEAVE_API void cleave_host_kernels_free(cleave_host_kernels* kernels);

/* ---------------------------------------------------------------- Check -- */

typedef struct cleave_check_options {
  size_t struct_size;
  const char* ops;    /* NULL: all; `*` and `?` as in a shell */
  uint64_t seed;      /* 0: 1 */
  const char* layers; /* NULL: the default; "L2,L3,host" */
  const char* dtypes; /* NULL: all; "f32,f64" */
  /* Functions that are held to the bodies of their ops. */
  const cleave_host_kernels* host_kernels;
  int32_t kernels;     /* 1: compiled kernels, too */
  int32_t threads;     /* 0: one for each core */
  const char* sources; /* NULL: all; names of sources, one in a line */
  /* How far a host's function may be from the body: ULP, and how far the body
   * moves where its inputs move by `host_input_ulp` ULP. 0: 4. */
  double host_ulp;
  double host_input_ulp;
  int32_t host_survey;   /* 1: all ways in which it is off, not the first */
  double seconds_per_op; /* 0: no limit */
} cleave_check_options;

/* Whether each rule means what its op means. `out` gets {"agrees": true,
 * "text": "the report, as a table", "report": {..}}; a disagreement is no
 * error. */
CLEAVE_API cleave_status* cleave_rules_check(const cleave_rules* rules,
                                             const cleave_check_options* check,
                                             const cleave_call_options* options,
                                             cleave_text** out);

/* --------------------------------------------------------------- Graphs -- */

/* A function: typed inputs, nodes, outputs, and guards on its sizes. Each graph
 * belongs to a rule set, which gives its calls their meaning. */
typedef struct cleave_graph cleave_graph;
CLEAVE_API void cleave_graph_retain(cleave_graph* graph);
CLEAVE_API void cleave_graph_release(cleave_graph* graph);

/* A graph of primitives (cleave_expand) as the function of an op, whose inputs
 * and outputs it has. It is interpreted: each primitive rounds in its dtype. */
CLEAVE_API cleave_status* cleave_host_kernels_set_graph(
    cleave_host_kernels* kernels, const char* op, const cleave_graph* graph);

/* A `fn` of the rules. */
CLEAVE_API cleave_status* cleave_graph_of_function(const cleave_rules* rules,
                                                   const char* name,
                                                   cleave_graph** out);
/* The text that cleave_graph_print gives. */
CLEAVE_API cleave_status* cleave_graph_parse(const cleave_rules* rules,
                                             const char* text,
                                             cleave_graph** out);
/* The same function by other rules: those that extend its own, say. */
CLEAVE_API cleave_status* cleave_graph_with_rules(const cleave_graph* graph,
                                                  const cleave_rules* rules,
                                                  cleave_graph** out);

enum {
  CLEAVE_FORMAT_TEXT = 0,
  CLEAVE_FORMAT_JSON = 1,
  CLEAVE_FORMAT_DOT = 2,
  CLEAVE_FORMAT_PROVENANCE = 3 /* text, with the rule and line of each node */
};
CLEAVE_API cleave_status* cleave_graph_print(const cleave_graph* graph,
                                             int32_t format, cleave_text** out);
CLEAVE_API size_t cleave_graph_input_count(const cleave_graph* graph);
CLEAVE_API size_t cleave_graph_output_count(const cleave_graph* graph);
/* {"inputs": [{"name": "x", "dtype": "f32", "shape": ["n", "4"]}],
 *  "outputs": [..], "guards": ["n >= 2: \"why\""], "variables": ["n"],
 *  "nodes": 12} */
CLEAVE_API cleave_status* cleave_graph_signature(const cleave_graph* graph,
                                                 cleave_text** out);
/* The graph with sizes for variables: names[i] becomes sizes[i], a text such as
 * "4" or "2*k". */
CLEAVE_API cleave_status* cleave_graph_substitute(const cleave_graph* graph,
                                                  const char* const* names,
                                                  const char* const* sizes,
                                                  size_t count,
                                                  cleave_graph** out);
/* The graph by itself as a rule file with one op of that name. */
CLEAVE_API cleave_status* cleave_graph_to_rule(const cleave_graph* graph,
                                               const char* name,
                                               cleave_text** out);

/* -------------------------------------------------------------- Builders -- */

typedef struct cleave_builder cleave_builder;
/* A value of one builder. */
typedef uint32_t cleave_value;
#define CLEAVE_ABSENT UINT32_MAX

CLEAVE_API cleave_status* cleave_builder_new(const cleave_rules* rules,
                                             cleave_builder** out);
CLEAVE_API void cleave_builder_free(cleave_builder* builder);
/* A new input. CLEAVE_INVALID_ARGUMENT for a name that another one has. */
CLEAVE_API cleave_status* cleave_builder_input(cleave_builder* builder,
                                               const char* name,
                                               const char* type,
                                               cleave_value* out);
/* A number in each element: "0.1" is exact, and rounded once to the dtype. */
CLEAVE_API cleave_status* cleave_builder_constant(cleave_builder* builder,
                                                  const char* number,
                                                  const char* type,
                                                  cleave_value* out);

enum {
  CLEAVE_ARGUMENT_TENSOR = 0, /* values[0] */
  CLEAVE_ARGUMENT_ABSENT = 1, /* an optional input that is not given */
  CLEAVE_ARGUMENT_LIST = 2    /* of a variadic input; may be CLEAVE_ABSENT */
};
typedef struct cleave_argument {
  size_t struct_size;
  const char* name; /* NULL: by position */
  int32_t kind;
  const cleave_value* values;
  size_t count;
} cleave_argument;

/* A call of an op, a host op or a primitive. `results` has room for `capacity`
 * values and gets one per declared result, CLEAVE_ABSENT for one that the call
 * does not have; `count` gets their number, also where the room is too small,
 * which is CLEAVE_OUT_OF_RANGE. `attributes` may be NULL. The operands of a
 * pointwise primitive are broadcast against each other, right-aligned.
 * CLEAVE_INVALID_ARGUMENT with the op's own error where it does not take the
 * call. */
CLEAVE_API cleave_status* cleave_builder_call(
    cleave_builder* builder, const char* op, const cleave_argument* arguments,
    size_t argument_count, const char* attributes, cleave_value* results,
    size_t capacity, size_t* count);
/* The nodes of a graph of the same rules, with values for its inputs; `results`
 * gets one for each of its outputs. */
CLEAVE_API cleave_status* cleave_builder_inline(cleave_builder* builder,
                                                const cleave_graph* graph,
                                                const cleave_value* arguments,
                                                size_t argument_count,
                                                cleave_value* results,
                                                size_t capacity);
/* The type of a value, as text. */
CLEAVE_API cleave_status* cleave_builder_type(cleave_builder* builder,
                                              cleave_value value,
                                              cleave_text** out);
/* The graph with these outputs. The builder is empty afterwards, and goes on to
 * be used as a new one. */
CLEAVE_API cleave_status* cleave_builder_finish(cleave_builder* builder,
                                                const char* const* names,
                                                const cleave_value* outputs,
                                                size_t count,
                                                cleave_graph** out);

/* ------------------------------------------------------------ Transforms -- */

/* The in_axes entry of an input that all examples share, and of a key of which
 * each example gets one of its own. */
#define CLEAVE_NOT_MAPPED (-1)
#define CLEAVE_SPLIT (-2)

/* Many examples at once. `batch` is their number, a size; NULL is a variable
 * that no input has. `in_axes` has an entry per input; `out_axes` one per
 * output, or is NULL: all in front. */
CLEAVE_API cleave_status* cleave_vmap(const cleave_graph* graph,
                                      const int32_t* in_axes, size_t in_count,
                                      const char* batch,
                                      const int32_t* out_axes, size_t out_count,
                                      const cleave_call_options* options,
                                      cleave_graph** out);
/* Forward mode. Behind the inputs there is a tangent for each active one;
 * behind the outputs one for each that has a tangent, which `has_tangent`, of
 * one entry per output, tells where it is not NULL. */
CLEAVE_API cleave_status* cleave_jvp(const cleave_graph* graph,
                                     const uint8_t* active, size_t count,
                                     const cleave_call_options* options,
                                     uint8_t* has_tangent, cleave_graph** out);
/* Reverse mode. Behind the inputs there is a cotangent for each inexact output;
 * behind the outputs one for each active input. */
CLEAVE_API cleave_status* cleave_vjp(const cleave_graph* graph,
                                     const uint8_t* active, size_t count,
                                     const cleave_call_options* options,
                                     cleave_graph** out);
/* The gradients of a float scalar in the active inputs; with `value` the scalar
 * is in front of them. */
CLEAVE_API cleave_status* cleave_grad(const cleave_graph* graph,
                                      const uint8_t* active, size_t count,
                                      int32_t value,
                                      const cleave_call_options* options,
                                      cleave_graph** out);
enum {
  CLEAVE_JACOBIAN_FORWARD = 0,
  CLEAVE_JACOBIAN_REVERSE = 1,
  CLEAVE_HESSIAN = 2 /* of a float scalar */
};
/* The derivatives of all float outputs in one input, with the axes of the
 * output before those of the input. */
CLEAVE_API cleave_status* cleave_jacobian(const cleave_graph* graph,
                                          size_t input, int32_t kind,
                                          const cleave_call_options* options,
                                          cleave_graph** out);
/* The function at a point and its derivative there. `primal` has the outputs,
 * then residuals; `linear` takes a tangent for each active input, then the
 * residuals, and gives a tangent for each inexact output. */
CLEAVE_API cleave_status* cleave_linearize(const cleave_graph* graph,
                                           const uint8_t* active, size_t count,
                                           const cleave_call_options* options,
                                           cleave_graph** primal,
                                           cleave_graph** linear,
                                           size_t* residuals);
/* A function that is linear in the inputs marked: it takes the others, then
 * cotangents of the outputs that a linear input reaches, and gives a cotangent
 * for each linear input. */
CLEAVE_API cleave_status* cleave_transpose(const cleave_graph* graph,
                                           const uint8_t* linear, size_t count,
                                           const cleave_call_options* options,
                                           cleave_graph** out);
/* Calls become primitives, but for those of the ops that are preserved. Where
 * `only` has names, those of these ops alone. */
CLEAVE_API cleave_status* cleave_expand(
    const cleave_graph* graph, const char* const* preserve,
    size_t preserve_count, const char* const* only, size_t only_count,
    const cleave_call_options* options, cleave_graph** out);
/* The rules' rewrites applied; with `approx` also those that hold over the real
 * numbers alone. */
CLEAVE_API cleave_status* cleave_simplify(const cleave_graph* graph,
                                          int32_t approx,
                                          const cleave_call_options* options,
                                          cleave_graph** out);

typedef struct cleave_aot_options {
  size_t struct_size;
  const char* partition;    /* NULL or "default"; "min-cut" */
  double budget;            /* of min-cut: share of memory to save */
  const char* policy;       /* of min-cut: "everything", "nothing",
                               "dots"; NULL: the costs decide */
  const char* const* names; /* of min-cut: only what has these names */
  size_t name_count;
  const char* const* decompose; /* ops, or "core-aten" */
  size_t decompose_count;
  const char* const* preserve; /* ops that stay calls */
  size_t preserve_count;
  int32_t expand;     /* 1: all calls become primitives */
  int32_t parameters; /* leading inputs that live on anyway */
} cleave_aot_options;

/* A function and its reverse mode as two graphs. `forward` has the outputs,
 * then what is saved; `backward` takes what is saved, then the cotangents of
 * the inexact outputs, and gives those of the active inputs. `joint` is what
 * both were cut from. Each of the last four may be NULL. `info` gets {"saved":
 * 3, "offloaded": [1], "depends": [true, ..], "table": ".."}. */
CLEAVE_API cleave_status* cleave_aot(const cleave_graph* graph,
                                     const uint8_t* active, size_t count,
                                     const cleave_aot_options* aot,
                                     const cleave_call_options* options,
                                     cleave_graph** forward,
                                     cleave_graph** backward,
                                     cleave_graph** joint, cleave_text** info);

/* -------------------------------------------------------------- Kernels -- */

typedef struct cleave_kernel cleave_kernel;
CLEAVE_API void cleave_kernel_retain(cleave_kernel* kernel);
CLEAVE_API void cleave_kernel_release(cleave_kernel* kernel);

typedef struct cleave_compile_options {
  size_t struct_size;
  const char* device; /* NULL or "cpu"; "opencl", "cuda" */
  const char* level;  /* NULL: this machine's; "sse4.1", "avx2", "avx512" */
  int32_t generalize; /* 1: sizes are left open in the code */
  int32_t approx;     /* 1: rewrites that hold over the reals alone, too */
  const cleave_host_kernels* host_kernels;
} cleave_compile_options;

/* Machine code for all sizes that the graph's variables can have. Some 100 ms,
 * or some where the folder of kernels has it. */
CLEAVE_API cleave_status* cleave_kernel_compile(
    const cleave_graph* graph, const cleave_compile_options* compile,
    const cleave_call_options* options, cleave_kernel** out);
/* The graph of primitives that it computes. */
CLEAVE_API cleave_status* cleave_kernel_graph(const cleave_kernel* kernel,
                                              cleave_graph** out);

typedef struct cleave_run_options {
  size_t struct_size;
  int32_t serial; /* 1: on the calling thread alone; the same bits */
  /* The host's threads; NULL: the library's. It calls body(state, begin, end)
   * with ranges, none empty, that cover [0, tasks) once, and returns when all
   * have. It may be called from within a body. `threads` says how many work. */
  void (*parallel_for)(void* context, int64_t tasks,
                       void (*body)(void* state, int64_t begin, int64_t end),
                       void* state);
  void* parallel_context;
  int32_t threads;
  /* The host's memory, for scratch; NULL: the library's, which keeps some for
   * later runs (cleave_release_kept_memory). `allocate` gives NULL to refuse.
   * Called by all threads of the run. */
  void* (*allocate)(void* context, size_t bytes, size_t alignment);
  void (*release)(void* context, void* address, size_t bytes);
  void* allocator_context;
  /* For CUDA: the stream (a CUstream) that the inputs are ready on, and that
   * kernels run on; NULL: the default stream. Where all tensors are on the
   * device, a run returns once its kernels are queued there. */
  void* stream;
  cleave_cancel* cancel; /* NULL: the run is not cancelled */
  /* NULL, or gets a report as JSON of each step: its kind, device, ops, bytes
   * and nanoseconds. Costs some reads of the clock. */
  cleave_text** report;
} cleave_run_options;
/* Gives the scratch memory that the library keeps between runs, 256 MB at most,
 * back to the C library. At any time, from any thread. */
CLEAVE_API void cleave_release_kept_memory(void);

/* Tensors are the CPU's, or, for a kernel that was compiled for CUDA, of one
 * CUDA device (in its primary context, as those of PyTorch and JAX are, and
 * dense): these are read and written where they lie.
 *
 * Inputs have any strides, and any alignment that their dtype asks for. A
 * DLPack bool is `bool`; a `key` is u64. Outputs have the
 * shapes that the inputs give, are dense in row-major order, may overlap inputs
 * (which are then copied first), and do not overlap each other. `strides` NULL
 * is row-major. */
CLEAVE_API cleave_status* cleave_kernel_run(const cleave_kernel* kernel,
                                            const DLTensor* const* inputs,
                                            size_t input_count,
                                            const DLTensor* const* outputs,
                                            size_t output_count,
                                            const cleave_run_options* options);

/* Makes room for output `index`: sets tensor->data to memory for the dtype and
 * shape that stand in `tensor`, row-major, and returns 0; or returns another
 * number, and the run ends as CLEAVE_RESOURCE_EXHAUSTED. */
typedef int32_t (*cleave_make_output)(void* context, size_t index,
                                      DLTensor* tensor);
/* The same, where the caller makes room once the shapes are known. Called on
 * the calling thread, once per output, in order, before anything is written;
 * for sizes that depend on data, after all is computed. */
CLEAVE_API cleave_status* cleave_kernel_run_alloc(
    const cleave_kernel* kernel, const DLTensor* const* inputs,
    size_t input_count, cleave_make_output make_output, void* context,
    const cleave_run_options* options);

/* ------------------------------------------------------------- Libraries -- */

/* A static library with a C header in `folder`: lib<name>.a, <name>.h, .. Needs
 * cc, ld, objcopy and ar. `levels` as of cleave_compile_options, separated by
 * commas; NULL: all. `out` gets the names of the files as a JSON list. */
CLEAVE_API cleave_status* cleave_compile_library(
    const cleave_graph* graph, const char* name, const char* folder,
    const char* levels, const cleave_call_options* options, cleave_text** out);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* CLEAVE_ENGINE_EMBED_CLEAVE_H_ */
