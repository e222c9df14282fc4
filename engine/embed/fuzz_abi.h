// The state of fuzz_abi, and the choices that it makes.
//
// Handles are living ones or null. Texts are broken rules, graphs, types and
// attributes; tensors have wrong ranks, shapes, strides, dtypes, lanes, devices
// and places; structs are older or newer than the library. Each call has to
// return: success, or a status that has a message.
//
// Nothing that a caller has to be trusted with is wrong: memory behind a tensor
// whose shape and strides are accepted is there, and arrays have the entries
// that their counts say.

#ifndef CLEAVE_ENGINE_EMBED_FUZZ_ABI_H_
#define CLEAVE_ENGINE_EMBED_FUZZ_ABI_H_

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/embed/cleave.h"

namespace cleave::fuzz_abi {

inline constexpr const char* kGraphs[] = {
    "graph (%x: f32[3, 4]) -> (y: f32[3, 4]) {\n"
    "  %1: f32[3, 4] = softmax(%x, axis: 1)\n  return y = %1\n}\n",
    "graph (%x: f32[3, 4], %w: f32[4]) -> (y: f32[3]) {\n"
    "  %1: f32[3] = matmul(%x, %w)\n  return y = %1\n}\n",
    "graph (%x: f32[3, 4]) -> (y: f32[]) {\n"
    "  %1: f32[3, 4] = exp(%x)\n  %2: f32[] = sum(%1, axes: [0, 1])\n"
    "  return y = %2\n}\n",
    "graph (%x: i32[3, 4], %c: bool[3, 4]) -> (y: i32[3, 4]) {\n"
    "  %1: i32[3, 4] = neg(%x)\n  %2: i32[3, 4] = select(%c, %1, %x)\n"
    "  return y = %2\n}\n",
    "graph (%x: f32[3, n]) -> (y: f32[3, n], z: f32[]) {\n"
    "  %1: f32[3, n] = tanh(%x)\n  %2: f32[] = sum(%1, axes: [0, 1])\n"
    "  return y = %1, z = %2\n}\n",
};

inline constexpr const char* kTypes[] = {
    "f32[3, 4]", "f32[]",  "bool[3]", "i64[n]",  "f32[n, 2*n]",
    "f32",       "f32[3",  "f33[1]",  "f32[-1]", "f32[99999999999999999999]",
    "key[]",     "c64[2]", ""};
inline constexpr const char* kAttributes[] = {"",
                                              "axis: 1",
                                              "axis: 9",
                                              "axes: [0, 1]",
                                              "axes: [",
                                              "k: 2",
                                              "mode: \"none\"",
                                              "axis: 1, axis: 1",
                                              "dtype: f32",
                                              "N: [4]",
                                              "value: 1e999",
                                              "beta: nan",
                                              "axis: 99999999999999999999",
                                              "shape: [n, -1]",
                                              ": 1"};
[[noreturn]] inline void Broken(const std::string& what) {
  std::printf("broken promise: %s\n", what.c_str());
  std::exit(1);
}

class Fuzzer {
 public:
  Fuzzer(uint64_t seed, bool trace) : random_(seed), trace_(trace) {
    cleave_rules* rules = nullptr;
    Expect(cleave_rules_shipped(nullptr, &rules));
    rules_.push_back(rules);
    cleave_source source = {};
    source.struct_size = sizeof(source);
    source.name = "functions.rules";
    source.text = "language 1\n\nfn f(x: f32[3, 4]) -> f32[3, 4] = exp(x)\n";
    cleave_rules* extended = nullptr;
    Expect(cleave_rules_extend(rules, &source, 1, nullptr, &extended));
    rules_.push_back(extended);
    for (const char* text : kGraphs) {
      cleave_graph* graph = nullptr;
      Expect(cleave_graph_parse(rules, text, &graph));
      graphs_.push_back(graph);
    }
    Expect(cleave_cancel_new(&cancel_));
    for (cleave_graph* graph : graphs_) {
      cleave_kernel* kernel = nullptr;
      Expect(cleave_kernel_compile(graph, nullptr, nullptr, &kernel));
      kernels_.push_back(kernel);
    }
  }

  ~Fuzzer() {
    for (auto* x : rules_) cleave_rules_release(x);
    for (auto* x : graphs_) cleave_graph_release(x);
    for (auto* x : kernels_) cleave_kernel_release(x);
    for (auto* x : builders_) cleave_builder_free(x);
    for (auto* x : hosts_) cleave_host_kernels_free(x);
    cleave_cancel_free(cancel_);
  }

  // One call, or a few that belong together.
  void Step() {
    // The heavy ones are rare: compiling takes as long as 1000 of the others.
    const int pick = Below(1000);
    if (pick < 2) return Compile();
    if (pick < 4) return Check();
    if (pick < 8) return Report();
    if (pick < 60) return Load();
    if (pick < 160) return Describe();
    if (pick < 330) return ParseOrPrint();
    if (pick < 500) return Transform();
    if (pick < 700) return Build();
    if (pick < 960) return Run();
    if (pick < 980) return Hosts();
    Drop();
  }

  // The calls of each function, and how many of them failed.
  std::map<std::string, std::pair<int64_t, int64_t>> counts() const {
    return counts_;
  }

 private:
  // ------------------------------------------------------------- Choices --

  int64_t Below(int64_t n) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(n));
  }
  bool OneIn(int n) { return Below(n) == 0; }

  template <typename T, size_t n>
  T Any(T const (&values)[n]) {
    return values[Below(n)];
  }

  // One of the handles, or sometimes null.
  template <typename Handle>
  Handle* AnyOf(const std::vector<Handle*>& handles) {
    if (handles.empty() || OneIn(40)) return nullptr;
    return handles[Below(static_cast<int64_t>(handles.size()))];
  }

  // A text, sometimes with bytes changed, cut, doubled or nested deeply.
  // Valid until the next few calls of this function.
  const char* Mutated(const char* text) {
    if (OneIn(50)) return nullptr;
    std::string& made = texts_[next_text_++ % 8];
    made = text;
    if (OneIn(2)) return made.c_str();
    for (int64_t i = Below(4); i >= 0; --i) {
      const auto at =
          static_cast<size_t>(Below(static_cast<int64_t>(made.size()) + 1));
      switch (Below(7)) {
        case 0:
          if (at < made.size()) made[at] = static_cast<char>(1 + Below(255));
          break;
        case 1:
          made.resize(at);
          break;
        case 2:
          made.insert(at, made.substr(0, 40));
          break;
        case 3:
          made.erase(at, 1 + static_cast<size_t>(Below(9)));
          break;
        case 4:
          made.insert(at, Any(kTypes));
          break;
        case 5:
          made.insert(at, Any(kAttributes));
          break;
        default:
          made.insert(at, std::string(static_cast<size_t>(Below(3000)),
                                      "([{-\"%"[Below(6)]));
      }
    }
    return made.c_str();
  }

  // A struct that an older or a newer header has, or none has.
  template <typename Struct>
  const Struct* Sized(Struct* filled) {
    if (OneIn(6)) return nullptr;
    static_assert(sizeof(Struct) + 64 <= sizeof(sized_[0]), "");
    unsigned char* const made = sized_[next_sized_++ % 4];
    std::memset(made, OneIn(4) ? 0x5a : 0, sizeof(sized_[0]));
    std::memcpy(made, filled, sizeof(Struct));
    size_t size = sizeof(Struct);
    switch (Below(8)) {
      case 0:
        size = static_cast<size_t>(Below(sizeof(Struct) + 1));
        break;
      case 1:
        size = sizeof(Struct) - 8;
        break;
      case 2:
        size += static_cast<size_t>(Below(64));
        break;
      case 3:
        size = OneIn(2) ? std::numeric_limits<size_t>::max() : size_t{1} << 40;
        break;
      default:
        break;
    }
    std::memcpy(made, &size, sizeof(size));
    return reinterpret_cast<const Struct*>(made);
  }

  const cleave_call_options* Options() {
    cleave_call_options options = {};
    options.struct_size = sizeof(options);
    // All calls end soon, whatever they are asked.
    options.deadline_seconds = 2;
    options.tensor_bytes = 1 << 26;
    options.nodes = 100000;
    if (OneIn(9)) options.deadline_seconds = -1;
    if (OneIn(9)) options.nodes = Below(40) - 5;
    if (OneIn(9)) options.expressions = Below(40) - 5;
    if (OneIn(9)) options.bodies = Below(4) - 1;
    if (OneIn(9)) options.loop_steps = Below(4) - 1;
    if (OneIn(9)) options.tensor_bytes = Below(40) - 5;
    if (OneIn(5)) {
      options.cancel = cancel_;
      if (OneIn(2)) {
        cleave_cancel_now(cancel_);
      } else {
        cleave_cancel_reset(cancel_);
      }
    }
    if (OneIn(5)) {
      options.progress = [](void* context, const char* what, int64_t, int64_t) {
        if (what == nullptr) Broken("progress without a name");
        ++*static_cast<std::atomic<int64_t>*>(context);
      };
      options.progress_context = &progress_;
    }
    const cleave_call_options* const sized = Sized(&options);
    // Without its limits a call may take long: then it has all of them.
    if (sized == nullptr || sized->struct_size < sizeof(options)) {
      limits_ = options;
      limits_.deadline_seconds = 2;
      return sized != nullptr && sized->struct_size < 16 ? sized : &limits_;
    }
    return sized;
  }

  // -------------------------------------------------------------- Results --

  void Trace(const char* name) {
    last_ = name;
    if (trace_) {
      std::printf("%s\n", name);
      std::fflush(stdout);
    }
  }

  // Counts the call and looks at its status.
  bool Done(cleave_status* status) {
    auto& [calls, failures] = counts_[last_];
    ++calls;
    if (status == nullptr) return true;
    ++failures;
    const int32_t code = cleave_status_code(status);
    const std::string message = cleave_status_message(status);
    const std::string json = cleave_status_json(status);
    if (code <= CLEAVE_OK || code > 16) Broken(last_ + ": a code of no kind");
    if (message.empty()) Broken(last_ + ": a status without a message");
    if (json.empty() || json.front() != '{') Broken(last_ + ": no JSON");
    if (code == CLEAVE_INTERNAL || code == CLEAVE_UNKNOWN) {
      Broken(last_ + ": " + message);
    }
    cleave_status_free(status);
    return false;
  }
  void Expect(cleave_status* status) {
    if (status != nullptr) Broken(cleave_status_message(status));
  }
  void Take(cleave_status* status, cleave_text** text) {
    if (Done(status)) {
      if (*text == nullptr) Broken(last_ + ": no text");
      if (std::strlen(cleave_text_data(*text)) > cleave_text_size(*text)) {
        Broken(last_ + ": no NUL behind the text");
      }
      cleave_text_free(*text);
    } else if (*text != nullptr) {
      Broken(last_ + ": wrote a result and failed");
    }
  }
  template <typename Handle>
  void Keep(cleave_status* status, Handle* made, std::vector<Handle*>* all,
            void (*release)(Handle*)) {
    if (!Done(status)) {
      if (made != nullptr) Broken(last_ + ": wrote a handle and failed");
      return;
    }
    if (made == nullptr) Broken(last_ + ": succeeded without a handle");
    if (all->size() < 40) {
      all->push_back(made);
    } else {
      // The first ones stay: they are what most calls need.
      const auto at = 6 + static_cast<size_t>(Below(34));
      release((*all)[at]);
      (*all)[at] = made;
    }
  }
  void KeepGraph(cleave_status* status, cleave_graph* made) {
    Keep(status, made, &graphs_, cleave_graph_release);
  }

  // ---------------------------------------------------------------- Calls --

  void Load();
  void Describe();
  void Report();
  void Check();
  void ParseOrPrint();
  void Transform();
  void Build();
  void Compile();
  void Hosts();
  void Run();

  void Drop() {
    Trace("release");
    if (graphs_.size() > 20) {
      cleave_graph_release(graphs_.back());
      graphs_.pop_back();
    }
    if (rules_.size() > 4) {
      // Graphs and kernels of these rules live on.
      cleave_rules_release(rules_.back());
      rules_.pop_back();
    }
    if (kernels_.size() > 6) {
      cleave_kernel_release(kernels_.front());
      kernels_.erase(kernels_.begin());
    }
  }

  std::mt19937_64 random_;
  const bool trace_;
  std::string last_;
  std::map<std::string, std::pair<int64_t, int64_t>> counts_;
  std::vector<cleave_rules*> rules_;
  std::vector<cleave_graph*> graphs_;
  std::vector<cleave_kernel*> kernels_;
  std::vector<cleave_builder*> builders_;
  std::vector<uint32_t> values_;
  std::vector<cleave_host_kernels*> hosts_;
  cleave_cancel* cancel_ = nullptr;
  std::atomic<int64_t> progress_{0};
  cleave_call_options limits_ = {};
  std::string texts_[8];
  size_t next_text_ = 0;
  alignas(8) unsigned char sized_[4][256];
  size_t next_sized_ = 0;
};

}  // namespace cleave::fuzz_abi

#endif  // CLEAVE_ENGINE_EMBED_FUZZ_ABI_H_
