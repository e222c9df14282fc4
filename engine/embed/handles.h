// Handles: the structs behind cleave.h's opaque types, and what every function
// of the C interface does at its door. Internal to engine/embed.
//
//   cleave_status* cleave_graph_parse(rules, text, out) {
//     return Guarded([&]() -> absl::Status {
//       CLEAVE_RETURN_IF_ERROR(CheckGiven({{"rules", rules}, ..}));
//       CLEAVE_ASSIGN_OR_RETURN(Graph graph, ParseGraph(..));
//       *out = NewGraph(std::move(graph), rules->rules);
//       return absl::OkStatus();
//     });
//   }

#ifndef CLEAVE_ENGINE_EMBED_HANDLES_H_
#define CLEAVE_ENGINE_EMBED_HANDLES_H_

#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/embed/cleave.h"
#include "engine/ir/graph.h"
#include "engine/ir/host_kernel.h"
#include "engine/rules/rule_set.h"
#include "engine/runtime/kernel.h"
#include "ops/budget.h"

struct cleave_status {
  int32_t code = CLEAVE_OK;
  std::string message;
  std::string json;
  bool is_static = false;  // says that there is no memory; never freed
};

struct cleave_text {
  std::string bytes;
};

struct cleave_cancel {
  std::atomic<bool> now{false};
};

struct cleave_rules {
  std::atomic<int64_t> references{1};
  const std::shared_ptr<const cleave::RuleSet> rules;
};

struct cleave_graph {
  std::atomic<int64_t> references{1};
  const std::shared_ptr<const cleave::RuleSet> rules;
  const cleave::Graph graph;
};

struct cleave_builder {
  const std::shared_ptr<const cleave::RuleSet> rules;
  std::optional<cleave::GraphBuilder> builder;
};

struct cleave_host_kernels {
  cleave::HostKernels kernels;
};

struct cleave_kernel {
  std::atomic<int64_t> references{1};
  const std::shared_ptr<const cleave::RuleSet> rules;
  const cleave::Kernel kernel;
};

namespace cleave::embed {

// The status as a handle; null where it is OK.
cleave_status* NewStatus(const absl::Status& status);
// InvalidArgument with the mistakes of rules.
absl::Status RulesHaveMistakes(const LoadResult& loaded);
// The handle that there is no memory for.
cleave_status* OutOfMemory();

// Makes the thread-local data that a call needs. The C library makes it at
// first use, and ends the process where it finds no memory: as late as for the
// first bad_alloc that is thrown.
void ReserveThreadLocals();

// Calls `function`, and lets nothing but its status out.
template <typename F>
cleave_status* Guarded(const F& function) noexcept {
  ReserveThreadLocals();
  try {
    return NewStatus(function());
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  } catch (const std::exception& exception) {
    try {
      return NewStatus(absl::InternalError(exception.what()));
    } catch (...) {
      return OutOfMemory();
    }
  } catch (...) {
    return OutOfMemory();
  }
}

// InvalidArgument that names the first argument that is null.
struct Given {
  const char* name;
  const void* value;
};
absl::Status CheckGiven(std::initializer_list<Given> arguments);

// A struct of the caller's, as this library knows it: fields that the caller's
// header does not have are 0. All 0 where it is null. InvalidArgument for a
// size that no header gives it, and for fields unknown here that are not 0.
absl::Status CopyStruct(const void* from, size_t known, const char* name,
                        void* to);
template <typename T>
absl::StatusOr<T> ReadStruct(const T* from, const char* name) {
  T read;
  const absl::Status status = CopyStruct(from, sizeof(T), name, &read);
  if (!status.ok()) return status;
  return read;
}

// The same for `count` structs behind each other, which are as large as the
// first says: a later header's may be larger.
template <typename T>
absl::StatusOr<std::vector<T>> ReadStructs(const T* from, size_t count,
                                           const char* name) {
  std::vector<T> structs;
  if (count == 0) return structs;
  const absl::Status given = CheckGiven({{name, from}});
  if (!given.ok()) return given;
  for (size_t i = 0; i < count; ++i) {
    const char* const at =
        reinterpret_cast<const char*>(from) + i * from->struct_size;
    absl::StatusOr<T> read = ReadStruct(reinterpret_cast<const T*>(at), name);
    if (!read.ok()) return read.status();
    structs.push_back(*read);
  }
  return structs;
}

// The limits of a call, open for as long as it lives.
class CallScope {
 public:
  // Errors of ReadStruct; InvalidArgument for a limit below 0.
  static absl::StatusOr<std::unique_ptr<CallScope>> Open(
      const cleave_call_options* options);

  void Progress(const char* what, int64_t done, int64_t total) const {
    if (options_.progress == nullptr) return;
    options_.progress(options_.progress_context, what, done, total);
  }
  // Whether the call is to end.
  bool Ended() const { return BudgetEnded(); }

 private:
  CallScope(const cleave_call_options& options, const Limits& limits)
      : options_(options), scope_(limits, BudgetScope::Mode::kRenew) {}

  const cleave_call_options options_;
  const BudgetScope scope_;
};

cleave_text* NewText(std::string bytes);
cleave_rules* NewRules(std::shared_ptr<const RuleSet> rules);
cleave_graph* NewGraph(Graph graph, std::shared_ptr<const RuleSet> rules);

// The flags of `count` inputs; InvalidArgument unless the graph has as many.
absl::StatusOr<std::vector<bool>> ReadFlags(const cleave_graph& graph,
                                            const uint8_t* flags, size_t count,
                                            const char* name);
// The texts; InvalidArgument where one is null.
absl::StatusOr<std::vector<std::string>> ReadTexts(const char* const* texts,
                                                   size_t count,
                                                   const char* name);

template <typename Handle>
void Retain(Handle* handle) {
  if (handle != nullptr) {
    handle->references.fetch_add(1, std::memory_order_relaxed);
  }
}
template <typename Handle>
void Release(Handle* handle) {
  if (handle == nullptr) return;
  if (handle->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    delete handle;
  }
}

}  // namespace cleave::embed

#endif  // CLEAVE_ENGINE_EMBED_HANDLES_H_
