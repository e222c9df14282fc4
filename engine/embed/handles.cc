#include "engine/embed/handles.h"

#include <mpfr.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>

#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "engine/embed/json_text.h"
#include "engine/runtime/messages.h"
#include "nlohmann/json.hpp"
#include "ops/refusal.h"
#include "ops/status_macros.h"
#include "ops/version.h"

namespace cleave::embed {
namespace {

using Json = nlohmann::ordered_json;

// Statuses of rules with mistakes carry them, as JSON.
constexpr char kDiagnosticsPayload[] = "cleave.diagnostics";

// The largest struct that a later header may have.
constexpr size_t kMostStructBytes = 4096;

Json RefusalJson(const Refusal& refusal) {
  return {{"kind", refusal.kind == RefusalKind::kImpossible ? "impossible"
                                                            : "not supported"},
          {"reason", refusal.reason},
          {"place", refusal.place}};
}

Json DiagnosticsJson(const LoadResult& loaded) {
  Json list = Json::array();
  for (size_t i = 0; i < loaded.mistakes.size(); ++i) {
    const PlacedMistake& mistake = loaded.mistakes[i];
    Json entry = {{"file", mistake.file},
                  {"line", mistake.line},
                  {"column", mistake.column},
                  {"end_line", mistake.end_line},
                  {"end_column", mistake.end_column},
                  {"kind", mistake.kind},
                  {"message", mistake.message},
                  {"help", mistake.help},
                  {"text", loaded.diagnostics[i]}};
    if (!mistake.pointer.empty()) entry["pointer"] = mistake.pointer;
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace

absl::Status RulesHaveMistakes(const LoadResult& loaded) {
  // Where the call was to end, not all was looked at.
  CLEAVE_RETURN_IF_ERROR(PollBudget());
  const std::string text = absl::StrJoin(loaded.diagnostics, "");
  const absl::string_view message = absl::StripSuffix(text, "\n");
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kDiagnosticsPayload,
                    absl::Cord(DumpJson(DiagnosticsJson(loaded))));
  return status;
}

void ReserveThreadLocals() {
  thread_local bool reserved = false;
  if (reserved) return;
  reserved = true;
  // Volatile: both are read for the memory behind them alone.
  [[maybe_unused]] const volatile int exceptions = std::uncaught_exceptions();
  [[maybe_unused]] const volatile mpfr_flags_t flags = mpfr_flags_save();
}

cleave_status* OutOfMemory() {
  static cleave_status* const out_of_memory = [] {
    static cleave_status status;
    status.code = CLEAVE_RESOURCE_EXHAUSTED;
    status.message = "out of memory";
    status.json =
        R"({"code": 8, "name": "RESOURCE_EXHAUSTED", "message": "out of memory"})";
    status.is_static = true;
    return &status;
  }();
  return out_of_memory;
}

cleave_status* NewStatus(const absl::Status& status) {
  if (status.ok()) return nullptr;
  auto handle = std::make_unique<cleave_status>();
  handle->code = static_cast<int32_t>(status.code());
  handle->message = std::string(status.message());
  Json json = {{"code", handle->code},
               {"name", absl::StatusCodeToString(status.code())},
               {"message", handle->message}};
  if (const std::optional<Refusal> refusal = RefusalOf(status)) {
    json["refusal"] = RefusalJson(*refusal);
  }
  if (const auto diagnostics = status.GetPayload(kDiagnosticsPayload)) {
    json["diagnostics"] = Json::parse(std::string(*diagnostics));
  }
  handle->json = DumpJson(json);
  return handle.release();
}

absl::Status CheckGiven(std::initializer_list<Given> arguments) {
  for (const Given& argument : arguments) {
    if (argument.value == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("`", argument.name, "` is null"));
    }
  }
  return absl::OkStatus();
}

absl::Status CopyStruct(const void* from, size_t known, const char* name,
                        void* to) {
  std::memset(to, 0, known);
  if (from == nullptr) return absl::OkStatus();
  size_t given = 0;
  std::memcpy(&given, from, sizeof(given));
  // Fields of all headers end at multiples of 8: none is cut in two.
  if (given < sizeof(given) || given > kMostStructBytes || given % 8 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the struct_size of `", name, "` is ", given,
                     ": it is to be sizeof the struct"));
  }
  const char* const bytes = static_cast<const char*>(from);
  for (size_t i = known; i < given; ++i) {
    if (bytes[i] != 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "`", name, "` sets a field that this library, of ABI version ",
          CLEAVE_ABI_VERSION, ", does not have"));
    }
  }
  std::memcpy(to, from, std::min(given, known));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<CallScope>> CallScope::Open(
    const cleave_call_options* options) {
  CLEAVE_ASSIGN_OR_RETURN(const cleave_call_options read,
                          ReadStruct(options, "options"));
  Limits limits;
  const auto set = [](int64_t value, const char* name,
                      int64_t* limit) -> absl::Status {
    if (value < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("the limit `", name, "` is ", value));
    }
    if (value > 0) *limit = value;
    return absl::OkStatus();
  };
  CLEAVE_RETURN_IF_ERROR(
      set(read.tensor_bytes, "tensor_bytes", &limits.tensor_bytes));
  CLEAVE_RETURN_IF_ERROR(
      set(read.loop_steps, "loop_steps", &limits.loop_steps));
  CLEAVE_RETURN_IF_ERROR(
      set(read.expressions, "expressions", &limits.expressions));
  CLEAVE_RETURN_IF_ERROR(set(read.bodies, "bodies", &limits.bodies));
  CLEAVE_RETURN_IF_ERROR(set(read.nodes, "nodes", &limits.nodes));
  if (read.cancel != nullptr) limits.cancelled = &read.cancel->now;
  const double seconds = read.deadline_seconds;
  if (std::isnan(seconds) || seconds < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the limit `deadline_seconds` is ", seconds));
  }
  // A deadline in ten years is none, and no clock overflows.
  if (seconds > 0 && seconds < 3e8) {
    limits.deadline =
        std::chrono::steady_clock::now() +
        std::chrono::duration_cast<std::chrono::steady_clock::duration>(
            std::chrono::duration<double>(seconds));
  }
  return std::unique_ptr<CallScope>(new CallScope(read, limits));
}

cleave_text* NewText(std::string bytes) {
  return new cleave_text{std::move(bytes)};
}

cleave_rules* NewRules(std::shared_ptr<const RuleSet> rules) {
  return new cleave_rules{{1}, std::move(rules)};
}

cleave_graph* NewGraph(Graph graph, std::shared_ptr<const RuleSet> rules) {
  return new cleave_graph{{1}, std::move(rules), std::move(graph)};
}

absl::StatusOr<std::vector<bool>> ReadFlags(const cleave_graph& graph,
                                            const uint8_t* flags, size_t count,
                                            const char* name) {
  const size_t inputs = graph.graph.inputs().size();
  if (count != inputs || (flags == nullptr && count > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("`", name, "` has ", flags == nullptr ? 0 : count,
                     " entries for ", inputs, " inputs"));
  }
  std::vector<bool> read;
  for (size_t i = 0; i < count; ++i) read.push_back(flags[i] != 0);
  return read;
}

absl::StatusOr<std::vector<std::string>> ReadTexts(const char* const* texts,
                                                   size_t count,
                                                   const char* name) {
  std::vector<std::string> read;
  for (size_t i = 0; i < count; ++i) {
    if (texts == nullptr || texts[i] == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("entry ", i, " of `", name, "` is null"));
    }
    read.emplace_back(texts[i]);
  }
  return read;
}

}  // namespace cleave::embed

using cleave::embed::Guarded;

uint32_t cleave_abi_version(void) { return CLEAVE_ABI_VERSION; }
const char* cleave_version(void) { return CLEAVE_VERSION_STRING; }

void cleave_set_log(void (*log)(void* context, const char* message),
                    void* context) {
  cleave::SetMessageSink(log, context);
}

int32_t cleave_status_code(const cleave_status* status) {
  return status == nullptr ? CLEAVE_OK : status->code;
}
const char* cleave_status_message(const cleave_status* status) {
  return status == nullptr ? "" : status->message.c_str();
}
const char* cleave_status_json(const cleave_status* status) {
  return status == nullptr ? R"({"code": 0, "name": "OK", "message": ""})"
                           : status->json.c_str();
}
void cleave_status_free(cleave_status* status) {
  if (status != nullptr && !status->is_static) delete status;
}
cleave_status* cleave_status_new(int32_t code, const char* message) {
  return Guarded([&]() -> absl::Status {
    const bool known = code > 0 && code <= 16;
    return absl::Status(known ? static_cast<absl::StatusCode>(code)
                              : absl::StatusCode::kUnknown,
                        message == nullptr ? "" : message);
  });
}

const char* cleave_text_data(const cleave_text* text) {
  return text == nullptr ? "" : text->bytes.c_str();
}
size_t cleave_text_size(const cleave_text* text) {
  return text == nullptr ? 0 : text->bytes.size();
}
void cleave_text_free(cleave_text* text) { delete text; }

cleave_status* cleave_cancel_new(cleave_cancel** out) {
  return Guarded([&]() -> absl::Status {
    CLEAVE_RETURN_IF_ERROR(cleave::embed::CheckGiven({{"out", out}}));
    *out = new cleave_cancel;
    return absl::OkStatus();
  });
}
void cleave_cancel_now(cleave_cancel* cancel) {
  if (cancel != nullptr) cancel->now.store(true, std::memory_order_relaxed);
}
void cleave_cancel_reset(cleave_cancel* cancel) {
  if (cancel != nullptr) cancel->now.store(false, std::memory_order_relaxed);
}
void cleave_cancel_free(cleave_cancel* cancel) { delete cancel; }
