/* Rules, graphs, builders and transforms of cleave.h, from C99.
 *
 *   cc -std=c99 -pedantic -Wall -Wextra -Werror c_test.c -lcleave -lm
 *   ./a.out [FOLDER]      # gets a rule file; $TEST_TMPDIR unless given
 *
 * Prints a line per test, `ok 1 - rules` or `not ok ..`, and exits with 1 if
 * one failed.
 */

#include "engine/embed/c_testing.h"

static void TestVersions(void) {
  EXPECT(cleave_abi_version() >= CLEAVE_ABI_VERSION);
  EXPECT(strchr(cleave_version(), '.') != NULL);
}

static void TestStatus(void) {
  cleave_status* status = cleave_status_new(CLEAVE_UNIMPLEMENTED, "not \"so\"");
  EXPECT(cleave_status_code(NULL) == CLEAVE_OK);
  EXPECT(strcmp(cleave_status_message(NULL), "") == 0);
  cleave_status_free(NULL);
  EXPECT(cleave_status_code(status) == CLEAVE_UNIMPLEMENTED);
  EXPECT(strcmp(cleave_status_message(status), "not \"so\"") == 0);
  EXPECT(strstr(cleave_status_json(status), "\"not \\\"so\\\"\"") != NULL);
  EXPECT(strstr(cleave_status_json(status), "UNIMPLEMENTED") != NULL);
  cleave_status_free(status);
}

static void TestRules(const char* folder) {
  cleave_rules* rules = MakeRules();
  cleave_rules* more = NULL;
  cleave_text* text = NULL;
  cleave_source source;
  cleave_status* status;
  OK(cleave_rules_names(rules, &text));
  EXPECT(Has(text, "\"twice\""));
  OK(cleave_rules_describe(rules, "twice", &text));
  EXPECT(Has(text, "Twice a number."));
  FAILS(cleave_rules_describe(rules, "twicee", &text), CLEAVE_NOT_FOUND,
        "twice");
  OK(cleave_rules_coverage(rules, "twice", NULL, &text));
  EXPECT(Has(text, "\"derived\""));
  OK(cleave_rules_derive(rules, "softmax", "vjp", NULL, &text));
  EXPECT(Has(text, "softmax_vjp"));
  FAILS(cleave_rules_derive(rules, "softmax", "vjpp", NULL, &text),
        CLEAVE_INVALID_ARGUMENT, "vjpp");

  memset(&source, 0, sizeof source);
  source.struct_size = sizeof source;
  source.name = "wrong.rules";
  source.text = "language 1\n\nfn f(x: f32[n]) -> f32[n] = exq(x)\n";
  more = NULL;
  status = cleave_rules_extend(rules, &source, 1, NULL, &more);
  EXPECT(more == NULL);
  EXPECT(strstr(cleave_status_message(status), "wrong.rules:3:") != NULL);
  EXPECT(strstr(cleave_status_message(status), "^") != NULL);
  EXPECT(strstr(cleave_status_json(status), "\"diagnostics\"") != NULL);
  EXPECT(strstr(cleave_status_json(status), "\"line\": 3") != NULL ||
         strstr(cleave_status_json(status), "\"line\":3") != NULL);
  cleave_status_free(status);
  if (folder != NULL) {
    char path[4096];
    const char* paths[1];
    FILE* file;
    snprintf(path, sizeof path, "%s/thrice.rules", folder);
    file = fopen(path, "w");
    EXPECT(file != NULL);
    if (file != NULL) {
      fputs(
          "language 1\n\nop thrice(x: T[S..]) -> T[S..]\n"
          "  where T: number\n  = 3 * x\n",
          file);
      fclose(file);
      paths[0] = path;
      OK(cleave_rules_extend_files(rules, paths, 1, NULL, &more));
      OK(cleave_rules_names(more, &text));
      EXPECT(Has(text, "\"thrice\""));
      cleave_rules_release(more);
    }
  }
  cleave_rules_retain(rules);
  cleave_rules_release(rules);
  cleave_rules_release(rules);
}

static void TestGraphs(void) {
  cleave_rules* rules = MakeRules();
  cleave_graph* graph = Function(rules, "scores");
  cleave_graph* again = NULL;
  cleave_graph* five = NULL;
  cleave_text* text = NULL;
  const char* name = "n";
  const char* size = "5";
  static const struct {
    int32_t format;
    const char* part;
  } kFormats[] = {{CLEAVE_FORMAT_TEXT, "graph (%x: f32[n])"},
                  {CLEAVE_FORMAT_JSON, "\"nodes\""},
                  {CLEAVE_FORMAT_DOT, "digraph"},
                  {CLEAVE_FORMAT_PROVENANCE, "mine.rules:"}};
  size_t i;
  for (i = 0; i < sizeof kFormats / sizeof kFormats[0]; ++i) {
    OK(cleave_graph_print(graph, kFormats[i].format, &text));
    EXPECT(Has(text, kFormats[i].part));
  }
  FAILS(cleave_graph_print(graph, 99, &text), CLEAVE_INVALID_ARGUMENT, "");
  EXPECT(cleave_graph_input_count(graph) == 1);
  EXPECT(cleave_graph_output_count(graph) == 1);
  OK(cleave_graph_signature(graph, &text));
  EXPECT(Has(text, "\"variables\""));
  OK(cleave_graph_print(graph, CLEAVE_FORMAT_TEXT, &text));
  OK(cleave_graph_parse(rules, cleave_text_data(text), &again));
  cleave_text_free(text);
  OK(cleave_graph_substitute(again, &name, &size, 1, &five));
  OK(cleave_graph_print(five, CLEAVE_FORMAT_TEXT, &text));
  EXPECT(Has(text, "(%x: f32[5])"));
  OK(cleave_graph_to_rule(five, "scores_of_five", &text));
  EXPECT(Has(text, "op scores_of_five("));
  FAILS(cleave_graph_of_function(rules, "nothing", &again), CLEAVE_NOT_FOUND,
        "nothing");
  cleave_graph_release(five);
  five = NULL;
  OK(cleave_graph_with_rules(graph, rules, &five));
  EXPECT(five != NULL);
  cleave_rules_release(rules); /* graphs hold their rules */
  OK(cleave_graph_print(five, CLEAVE_FORMAT_TEXT, &text));
  EXPECT(Has(text, "twice"));
  cleave_graph_retain(graph);
  cleave_graph_release(graph);
  cleave_graph_release(graph);
  cleave_graph_release(again);
  cleave_graph_release(five);
}

static void TestBuilder(void) {
  cleave_rules* rules = MakeRules();
  cleave_graph* any = Function(rules, "scores");
  cleave_graph* scores = NULL;
  cleave_graph* graph = NULL;
  cleave_builder* builder = NULL;
  cleave_value x, half, scaled, y, too_many[1];
  cleave_argument arguments[2];
  cleave_text* text = NULL;
  const char* name = "y";
  const char* variable = "n";
  const char* size = "3";
  size_t count = 0;
  float in[3] = {1, 2, 4};
  float out[3] = {0, 0, 0};
  int64_t three = 3;
  OK(cleave_builder_new(rules, &builder));
  OK(cleave_builder_input(builder, "x", "f32[3]", &x));
  FAILS(cleave_builder_input(builder, "x", "f32[3]", &y),
        CLEAVE_INVALID_ARGUMENT, "x");
  FAILS(cleave_builder_input(builder, "z", "f33[3]", &y),
        CLEAVE_INVALID_ARGUMENT, "f33");
  OK(cleave_builder_constant(builder, "0.5", "f32[]", &half));
  memset(arguments, 0, sizeof arguments);
  arguments[0].struct_size = arguments[1].struct_size = sizeof arguments[0];
  arguments[0].values = &x;
  arguments[1].values = &half;
  arguments[0].count = arguments[1].count = 1;
  OK(cleave_builder_call(builder, "mul", arguments, 2, NULL, &scaled, 1,
                         &count));
  EXPECT(count == 1);
  OK(cleave_builder_type(builder, scaled, &text));
  EXPECT(Has(text, "f32[3]"));
  arguments[0].values = &scaled;
  OK(cleave_builder_call(builder, "softmax", arguments, 1, "axis: 0", &y, 1,
                         &count));
  FAILS(cleave_builder_call(builder, "softmax", arguments, 1, "axis: 7", &y, 1,
                            &count),
        CLEAVE_INVALID_ARGUMENT, "");
  FAILS(cleave_builder_call(builder, "topk", arguments, 1, "k: 2", too_many, 1,
                            &count),
        CLEAVE_OUT_OF_RANGE, "");
  EXPECT(count == 2);
  OK(cleave_builder_finish(builder, &name, &y, 1, &graph));
  Run(graph, in, 3, out, 1, &three);
  EXPECT(Near(out[0] + out[1] + out[2], 1));
  EXPECT(Near(out[2] / out[1], exp(1.0)));
  cleave_graph_release(graph);

  /* Empty again, and used anew, with another graph inside. */
  OK(cleave_builder_input(builder, "x", "f32[3]", &x));
  FAILS(cleave_builder_inline(builder, any, &x, 1, &y, 1),
        CLEAVE_INVALID_ARGUMENT, "f32[n]");
  OK(cleave_graph_substitute(any, &variable, &size, 1, &scores));
  OK(cleave_builder_inline(builder, scores, &x, 1, &y, 1));
  OK(cleave_builder_finish(builder, &name, &y, 1, &graph));
  Run(graph, in, 3, out, 1, &three);
  EXPECT(Near(out[1] / out[0], exp(2.0)));
  cleave_graph_release(graph);
  cleave_graph_release(any);
  cleave_graph_release(scores);
  cleave_builder_free(builder);
  cleave_rules_release(rules);
}

static void TestTransforms(void) {
  cleave_rules* rules = MakeRules();
  cleave_graph* energy = Function(rules, "energy");
  cleave_graph* weighted = Function(rules, "weighted");
  cleave_graph *a = NULL, *b = NULL, *c = NULL;
  cleave_text* text = NULL;
  const uint8_t first[2] = {1, 0};
  const uint8_t second[2] = {0, 1};
  const int32_t axis = 1;
  const char* preserve = "softmax";
  uint8_t has_tangent = 0;
  size_t residuals = 0;
  float x[3] = {1, -2, 3};
  float y[9];
  int64_t shape[2] = {3, 3};
  OK(cleave_grad(energy, first, 1, 0, NULL, &a));
  Run(a, x, 3, y, 1, shape);
  EXPECT(Near(y[0], 2) && Near(y[1], -4) && Near(y[2], 6));
  cleave_graph_release(a);
  OK(cleave_grad(energy, first, 1, 1, NULL, &a));
  EXPECT(cleave_graph_output_count(a) == 2);
  cleave_graph_release(a);
  OK(cleave_jvp(energy, first, 1, NULL, &has_tangent, &a));
  EXPECT(has_tangent == 1 && cleave_graph_input_count(a) == 2 &&
         cleave_graph_output_count(a) == 2);
  cleave_graph_release(a);
  OK(cleave_vjp(weighted, first, 2, NULL, &a));
  EXPECT(cleave_graph_input_count(a) == 3);
  EXPECT(cleave_graph_output_count(a) == 2);
  cleave_graph_release(a);
  OK(cleave_jacobian(energy, 0, CLEAVE_HESSIAN, NULL, &a));
  Run(a, x, 3, y, 2, shape);
  EXPECT(Near(y[0], 2) && Near(y[1], 0) && Near(y[4], 2) && Near(y[8], 2));
  cleave_graph_release(a);
  OK(cleave_vmap(energy, &axis, 1, "batch", NULL, 0, NULL, &a));
  OK(cleave_graph_print(a, CLEAVE_FORMAT_TEXT, &text));
  EXPECT(Has(text, "f32[n, batch]"));
  cleave_graph_release(a);
  OK(cleave_linearize(energy, first, 1, NULL, &a, &b, &residuals));
  EXPECT(cleave_graph_output_count(a) == 1 + residuals);
  EXPECT(cleave_graph_input_count(b) == 1 + residuals);
  cleave_graph_release(a);
  cleave_graph_release(b);
  OK(cleave_transpose(weighted, second, 2, NULL, &a));
  EXPECT(cleave_graph_output_count(a) == 1);
  cleave_graph_release(a);
  FAILS(cleave_transpose(weighted, first, 2, NULL, &a), CLEAVE_INVALID_ARGUMENT,
        "");
  a = Function(rules, "scores");
  OK(cleave_expand(a, &preserve, 1, NULL, 0, NULL, &b));
  OK(cleave_graph_print(b, CLEAVE_FORMAT_TEXT, &text));
  EXPECT(Has(text, "softmax("));
  OK(cleave_simplify(b, 0, NULL, &c));
  cleave_graph_release(a);
  cleave_graph_release(b);
  cleave_graph_release(c);
  FAILS(cleave_grad(weighted, first, 2, 0, NULL, &a), CLEAVE_INVALID_ARGUMENT,
        "");
  cleave_graph_release(energy);
  cleave_graph_release(weighted);
  cleave_rules_release(rules);
}

static void TestAheadOfTime(void) {
  cleave_rules* rules = MakeRules();
  cleave_graph* weighted = Function(rules, "weighted");
  cleave_graph *forward = NULL, *backward = NULL, *joint = NULL;
  cleave_text* info = NULL;
  const uint8_t active[2] = {1, 1};
  cleave_aot_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.partition = "min-cut";
  options.budget = 0.5;
  OK(cleave_aot(weighted, active, 2, &options, NULL, &forward, &backward,
                &joint, &info));
  EXPECT(cleave_graph_output_count(backward) == 2);
  EXPECT(cleave_graph_output_count(forward) >= 1);
  EXPECT(Has(info, "\"saved\""));
  cleave_graph_release(forward);
  cleave_graph_release(backward);
  cleave_graph_release(joint);
  options.partition = "nonsense";
  FAILS(cleave_aot(weighted, active, 2, &options, NULL, NULL, NULL, NULL, NULL),
        CLEAVE_INVALID_ARGUMENT, "nonsense");
  cleave_graph_release(weighted);
  cleave_rules_release(rules);
}

/* Null in the place of each handle and text. */
static void TestNull(void) {
  cleave_rules* rules = MakeRules();
  cleave_graph* graph = Function(rules, "energy");
  cleave_graph* out = NULL;
  cleave_text* text = NULL;
  cleave_kernel* kernel = NULL;
  FAILS(cleave_rules_shipped(NULL, NULL), CLEAVE_INVALID_ARGUMENT, "");
  FAILS(cleave_rules_names(NULL, &text), CLEAVE_INVALID_ARGUMENT, "");
  FAILS(cleave_rules_describe(rules, NULL, &text), CLEAVE_INVALID_ARGUMENT, "");
  FAILS(cleave_graph_of_function(NULL, "energy", &out), CLEAVE_INVALID_ARGUMENT,
        "");
  FAILS(cleave_graph_parse(rules, NULL, &out), CLEAVE_INVALID_ARGUMENT, "");
  FAILS(cleave_graph_print(graph, 0, NULL), CLEAVE_INVALID_ARGUMENT, "");
  FAILS(cleave_jvp(graph, NULL, 1, NULL, NULL, &out), CLEAVE_INVALID_ARGUMENT,
        "");
  FAILS(cleave_vjp(NULL, NULL, 0, NULL, &out), CLEAVE_INVALID_ARGUMENT, "");
  FAILS(cleave_kernel_compile(NULL, NULL, NULL, &kernel),
        CLEAVE_INVALID_ARGUMENT, "");
  FAILS(cleave_kernel_run(NULL, NULL, 0, NULL, 0, NULL),
        CLEAVE_INVALID_ARGUMENT, "");
  FAILS(cleave_host_kernels_set(NULL, "x", NULL, NULL, NULL),
        CLEAVE_INVALID_ARGUMENT, "");
  EXPECT(out == NULL && text == NULL && kernel == NULL);
  cleave_rules_release(NULL);
  cleave_graph_release(NULL);
  cleave_kernel_release(NULL);
  cleave_builder_free(NULL);
  cleave_text_free(NULL);
  cleave_cancel_free(NULL);
  cleave_host_kernels_free(NULL);
  cleave_graph_release(graph);
  cleave_rules_release(rules);
}

int main(int argc, char** argv) {
  const char* folder = argc > 1 ? argv[1] : getenv("TEST_TMPDIR");
  TEST("versions", TestVersions());
  TEST("status", TestStatus());
  TEST("rules", TestRules(folder));
  TEST("graphs", TestGraphs());
  TEST("builder", TestBuilder());
  TEST("transforms", TestTransforms());
  TEST("ahead of time", TestAheadOfTime());
  TEST("null", TestNull());
  printf("1..%d\n", test_number);
  return failures == 0 ? 0 : 1;
}
