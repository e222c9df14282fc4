// FunctionInputs: the tensors that a declared function is run on, from a
// safetensors file, and from the command line.
//
//   FunctionInputs::Read("in.safetensors", {"x=[1e-4, 0x1p-3]", "n=3"});

#ifndef CLEAVE_TOOLS_COMMAND_FUNCTION_INPUTS_H_
#define CLEAVE_TOOLS_COMMAND_FUNCTION_INPUTS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/graph.h"
#include "engine/runtime/safetensors.h"
#include "ops/tensor.h"

namespace cleave {

// The same bits: files have no dtype for keys, which are 64 bits.
Tensor WithDType(const Tensor& tensor, DType dtype);

class FunctionInputs {
 public:
  // The tensors of the file at `path`, if that is not empty, and those of
  // `values`, which come before them: `NAME=VALUE`, where VALUE is a number
  // (`1e-4`, `0x1.8p-3`, `inf`, `nan`), `true`, `false`, or nested lists of
  // them, `[[1, 2], [3, 4]]`. InvalidArgument for any other text, and for lists
  // of unequal lengths.
  static absl::StatusOr<FunctionInputs> Read(
      const std::string& path, const std::vector<std::string>& values);

  // The inputs of `graph` for which there is a tensor named `<input>.tangent`.
  // InvalidArgument where there is none.
  absl::StatusOr<std::vector<std::string>> WithTangents(
      const Graph& graph) const;

  // A tensor for each input of `graph`, which `function` names; a value of the
  // command line has the input's dtype. InvalidArgument for one that is not
  // there, one that the graph does not take, and a value that the dtype does
  // not hold.
  absl::StatusOr<std::vector<Tensor>> Of(const Graph& graph,
                                         const std::string& function) const;

 private:
  // Nested lists of words, row by row.
  struct Literal {
    std::vector<int64_t> shape;
    std::vector<std::string> words;
  };
  static absl::StatusOr<Literal> ParseLiteral(const std::string& text);
  static absl::StatusOr<Tensor> ToTensor(const Literal& literal, DType dtype);

  bool Has(const std::string& name) const {
    return file_.count(name) != 0 || values_.count(name) != 0;
  }

  std::string path_;
  TensorMap file_;
  std::map<std::string, Literal> values_;
};

}  // namespace cleave

#endif  // CLEAVE_TOOLS_COMMAND_FUNCTION_INPUTS_H_
