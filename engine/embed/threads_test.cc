// One rule set and one kernel, used by 16 threads at once.
//
//   threads_test [ROUNDS]
//
// Each thread runs the kernel, derives graphs, prints them, makes graphs of its
// own, asks about ops, and fails; each result is compared with that of one
// thread. ThreadSanitizer sees what the comparison does not.

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "engine/embed/c_testing.h"

namespace {

constexpr int kThreads = 16;
constexpr int64_t kElements = 20000;  // enough for tasks on several threads

std::atomic<int> mistakes{0};

void Require(bool right, const char* what) {
  if (right) return;
  if (mistakes.fetch_add(1) == 0) std::printf("# %s\n", what);
}

std::string TextOf(cleave_status* status, cleave_text* text) {
  if (status != nullptr) {
    std::string message = cleave_status_message(status);
    cleave_status_free(status);
    return message;
  }
  std::string made(cleave_text_data(text), cleave_text_size(text));
  cleave_text_free(text);
  return made;
}

std::string Print(const cleave_graph* graph) {
  cleave_text* text = nullptr;
  cleave_status* const status =
      cleave_graph_print(graph, CLEAVE_FORMAT_TEXT, &text);
  return TextOf(status, text);
}

// The objects that all threads share; Work is what each thread does with them.
struct Shared {
  cleave_rules* rules = nullptr;
  cleave_graph* scores = nullptr;
  cleave_graph* energy = nullptr;
  cleave_kernel* kernel = nullptr;
  std::vector<float> x;
};

struct Results {
  std::vector<float> y;
  std::string texts;
};

Results Work(const Shared& shared) {
  Results results;
  results.y.resize(kElements);
  int64_t shape[1] = {kElements};
  DLTensor input = Tensor(const_cast<float*>(shared.x.data()), 1, shape);
  DLTensor output = Tensor(results.y.data(), 1, shape);
  const DLTensor* inputs[] = {&input};
  const DLTensor* outputs[] = {&output};
  cleave_kernel_retain(shared.kernel);
  cleave_status* status =
      cleave_kernel_run(shared.kernel, inputs, 1, outputs, 1, nullptr);
  Require(status == nullptr, cleave_status_message(status));
  cleave_status_free(status);
  cleave_kernel_release(shared.kernel);

  const uint8_t active = 1;
  cleave_graph* made = nullptr;
  status = cleave_vjp(shared.scores, &active, 1, nullptr, &made);
  Require(status == nullptr, cleave_status_message(status));
  results.texts += Print(made);
  cleave_graph* expanded = nullptr;
  status = cleave_expand(made, nullptr, 0, nullptr, 0, nullptr, &expanded);
  Require(status == nullptr, cleave_status_message(status));
  cleave_graph* simplified = nullptr;
  status = cleave_simplify(expanded, 0, nullptr, &simplified);
  Require(status == nullptr, cleave_status_message(status));
  results.texts += Print(simplified);
  cleave_graph_release(made);
  cleave_graph_release(expanded);
  cleave_graph_release(simplified);
  const int32_t axis = 0;
  made = nullptr;
  status =
      cleave_vmap(shared.energy, &axis, 1, "b", nullptr, 0, nullptr, &made);
  Require(status == nullptr, cleave_status_message(status));
  results.texts += Print(made);
  cleave_graph_release(made);

  // A graph and a rule set of its own, and a mistake.
  made = nullptr;
  status = cleave_graph_parse(
      shared.rules,
      "graph (%x: f32[3]) -> (y: f32[3]) {\n"
      "  %1: f32[3] = softmax(%x, axis: 0)\n  return y = %1\n}\n",
      &made);
  Require(status == nullptr, cleave_status_message(status));
  results.texts += Print(made);
  cleave_graph_release(made);
  cleave_source source = {};
  source.struct_size = sizeof(source);
  source.name = "more.rules";
  source.text = "language 1\n\nfn again(x: f32[n]) -> f32[n] = twice(x)\n";
  cleave_rules* more = nullptr;
  status = cleave_rules_extend(shared.rules, &source, 1, nullptr, &more);
  Require(status == nullptr, cleave_status_message(status));
  cleave_text* text = nullptr;
  status = cleave_rules_describe(more, "again", &text);
  results.texts += TextOf(status, text);
  cleave_rules_release(more);
  text = nullptr;
  status = cleave_rules_coverage(shared.rules, "softmax", nullptr, &text);
  results.texts += TextOf(status, text);
  text = nullptr;
  status = cleave_rules_describe(shared.rules, "nothing", &text);
  results.texts += TextOf(status, text);
  return results;
}

void TestThreads(int rounds) {
  Shared shared;
  shared.rules = MakeRules();
  shared.scores = Function(shared.rules, "scores");
  shared.energy = Function(shared.rules, "energy");
  shared.x.resize(kElements);
  for (int64_t i = 0; i < kElements; ++i) {
    shared.x[static_cast<size_t>(i)] = static_cast<float>(i % 97) / 97;
  }
  OK(cleave_kernel_compile(shared.scores, nullptr, nullptr, &shared.kernel));
  if (failures > 0) return;
  // The first use of a rule set's parts is by many threads, not by this one.
  std::vector<Results> results(kThreads);
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&shared, &results, i] {
        results[static_cast<size_t>(i)] = Work(shared);
      });
    }
    for (std::thread& thread : threads) thread.join();
    const Results alone = Work(shared);
    for (const Results& result : results) {
      Require(result.y == alone.y, "a thread computes other numbers");
      Require(result.texts == alone.texts, "a thread gets other texts");
    }
  }
  EXPECT(mistakes == 0);
  cleave_kernel_release(shared.kernel);
  cleave_graph_release(shared.scores);
  cleave_graph_release(shared.energy);
  cleave_rules_release(shared.rules);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 3;
  TEST("16 threads", TestThreads(rounds));
  std::printf("1..%d\n", test_number);
  return failures == 0 ? 0 : 1;
}
