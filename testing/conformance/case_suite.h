// Case suites: golden data of other frameworks. A folder holds `<op>.json` (the
// cases) and `<op>.safetensors` (their tensors) for each op; testing/README.md
// describes the format, "cleave-cases/1".

#ifndef CLEAVE_TESTING_CONFORMANCE_CASE_SUITE_H_
#define CLEAVE_TESTING_CONFORMANCE_CASE_SUITE_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "ops/dtype.h"
#include "ops/tensor.h"

namespace cleave {

// An argument's value. Tensors keep the key that the suite gives them.
struct CaseValue {
  struct None {};
  struct TensorRef {
    std::string key;
    Tensor tensor;
  };
  using List = std::vector<CaseValue>;
  std::variant<None, TensorRef, int64_t, double, bool, std::string, DType, List>
      value;

  const TensorRef* tensor() const { return std::get_if<TensorRef>(&value); }
  const List* list() const { return std::get_if<List>(&value); }
};

using CaseArguments = std::vector<std::pair<std::string, CaseValue>>;

// The expected outputs: nothing for `null` and `{"none": true}`.
using ExpectedOutputs = std::vector<std::optional<CaseValue::TensorRef>>;

struct Tolerance {
  double relative = 0;
  double absolute = 0;
};

// One section: a transform of the case's call and what it must give.
struct CaseSection {
  // outputs, jvp, jvp_jvp, vjp, jvp_vjp, vmap, vmap_jvp.
  std::string name;
  int number = 0;           // of list sections
  CaseArguments arguments;  // vmap, vmap_jvp: the batched ones
  std::map<std::string, std::optional<int>> in_axes;
  std::vector<CaseArguments> tangents;  // one, or two for jvp_jvp
  ExpectedOutputs cotangents;
  CaseArguments grads;  // vjp: by argument; jvp_vjp: their derivatives
  ExpectedOutputs outputs;
  Tolerance tolerance;
};

struct Case {
  std::string id;
  CaseArguments arguments;
  std::vector<CaseSection> sections;  // `outputs` first
};

struct CaseFile {
  std::string op;
  std::vector<Case> cases;
};

// Reads `<stem>.json` and `<stem>.safetensors`. Reading is strict: an unknown,
// missing or malformed member is an InvalidArgument that names the file and the
// JSON pointer.
absl::StatusOr<CaseFile> ReadCaseFile(const std::string& json_path);

// The `.json` files of a suite's folder, sorted by name; NotFound if there is
// no such folder or no such file in it.
absl::StatusOr<std::vector<std::string>> ListCaseFiles(
    const std::string& folder);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CONFORMANCE_CASE_SUITE_H_
