// The C interface from C++17: handles in smart pointers, structs by name.
//
//   c++ -std=c++17 -pedantic -Wall -Wextra -Werror cpp_test.cc -lcleave
//
// Prints a line per test, as c_test.c does.

#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/embed/c_testing.h"

namespace {

static_assert(std::is_standard_layout_v<cleave_run_options>);
static_assert(std::is_trivial_v<cleave_call_options>);
static_assert(offsetof(cleave_call_options, struct_size) == 0);
static_assert(offsetof(cleave_compile_options, struct_size) == 0);
static_assert(offsetof(cleave_run_options, struct_size) == 0);
static_assert(offsetof(cleave_aot_options, struct_size) == 0);
static_assert(offsetof(cleave_check_options, struct_size) == 0);
static_assert(offsetof(cleave_argument, struct_size) == 0);
static_assert(offsetof(cleave_source, struct_size) == 0);

template <auto release>
struct Releaser {
  template <typename Handle>
  void operator()(Handle* handle) const {
    release(handle);
  }
};
using Rules = std::unique_ptr<cleave_rules, Releaser<cleave_rules_release>>;
using Graph = std::unique_ptr<cleave_graph, Releaser<cleave_graph_release>>;
using Kernel = std::unique_ptr<cleave_kernel, Releaser<cleave_kernel_release>>;
using Text = std::unique_ptr<cleave_text, Releaser<cleave_text_free>>;

// A status as an exception of this program: none crosses the interface.
void Check(cleave_status* status) {
  if (status == nullptr) return;
  const std::string message = cleave_status_message(status);
  cleave_status_free(status);
  throw std::runtime_error(message);
}

Graph Gradient(const Graph& graph) {
  const std::vector<uint8_t> active(cleave_graph_input_count(graph.get()), 1);
  cleave_graph* made = nullptr;
  Check(cleave_grad(graph.get(), active.data(), active.size(), 0, nullptr,
                    &made));
  return Graph(made);
}

std::vector<float> Call(const Graph& graph, std::vector<float> x) {
  cleave_kernel* made = nullptr;
  Check(cleave_kernel_compile(graph.get(), nullptr, nullptr, &made));
  const Kernel kernel(made);
  int64_t shape[1] = {static_cast<int64_t>(x.size())};
  const DLTensor input = Tensor(x.data(), 1, shape);
  const DLTensor* const inputs[] = {&input};
  std::vector<float> y;
  // The results' room is a vector, once their shapes are known.
  const cleave_make_output make = [](void* context, size_t,
                                     DLTensor* tensor) -> int32_t {
    size_t elements = 1;
    for (int32_t axis = 0; axis < tensor->ndim; ++axis) {
      elements *= static_cast<size_t>(tensor->shape[axis]);
    }
    auto* const room = static_cast<std::vector<float>*>(context);
    room->resize(elements);
    tensor->data = room->data();
    return 0;
  };
  Check(cleave_kernel_run_alloc(kernel.get(), inputs, 1, make, &y, nullptr));
  return y;
}

void TestGradients() {
  const Rules rules(MakeRules());
  const Graph energy(Function(rules.get(), "energy"));
  EXPECT(Call(energy, {1, 2, 3}) == std::vector<float>{14});
  EXPECT((Call(Gradient(energy), {1, 2, 3}) == std::vector<float>{2, 4, 6}));
  EXPECT((Call(Gradient(energy), {}) == std::vector<float>{}));
}

void TestErrors() {
  const Rules rules(MakeRules());
  std::string message;
  try {
    cleave_graph* made = nullptr;
    Check(cleave_graph_parse(rules.get(), "graph (", &made));
  } catch (const std::runtime_error& error) {
    message = error.what();
  }
  EXPECT(!message.empty());
}

void TestTexts() {
  const Rules rules(MakeRules());
  cleave_text* made = nullptr;
  Check(cleave_rules_describe(rules.get(), "twice", &made));
  const Text text(made);
  const std::string json(cleave_text_data(text.get()),
                         cleave_text_size(text.get()));
  EXPECT(json.find("Twice a number.") != std::string::npos);
}

}  // namespace

int main() {
  TEST("gradients", TestGradients());
  TEST("errors", TestErrors());
  TEST("texts", TestTexts());
  std::printf("1..%d\n", test_number);
  return failures == 0 ? 0 : 1;
}
