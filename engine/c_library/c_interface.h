// CInterface: a compiled function as C sees it: its names, its header, an
// example.
//
//   const CInterface interface = *MakeCInterface(graph, "softmax");
//   interface.Prototype()
//   // int softmax(int64_t b, int64_t n, const float *x, float *y)
//
// The parameters are an int64_t per dimension variable, in the order that they
// occur in, a pointer per input and a pointer per output. Names that C does not
// take (`x.tangent`, `int`) are changed, and the header's comment says so.

#ifndef CLEAVE_ENGINE_C_LIBRARY_C_INTERFACE_H_
#define CLEAVE_ENGINE_C_LIBRARY_C_INTERFACE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/codegen/target_level.h"
#include "engine/ir/graph.h"
#include "ops/tensor_type.h"

namespace cleave {

struct CInterface {
  struct Dimension {
    std::string name;      // in C
    std::string variable;  // in the graph
  };
  struct Array {
    std::string name;      // in C
    std::string original;  // in the graph
    std::string element;   // in C: "float"
    TensorType type;       // in the graph's variables
    std::string shown;     // the type in the names of C: "f32[b, n]"
  };

  std::string function;
  std::vector<Dimension> dims;
  std::vector<Array> inputs;
  std::vector<Array> outputs;
  // The conditions on the sizes, in the names of C: "n >= 2: why".
  std::vector<std::string> guards;

  // Without the semicolon behind it.
  std::string Prototype() const;
};

// InvalidArgument where `name` is no name for a function in C, or one of C's
// own library. Unimplemented for a dtype that C arrays do not have here (keys,
// complex numbers), with the input or output.
absl::StatusOr<CInterface> MakeCInterface(const Graph& graph,
                                          const std::string& name);

// <function>.h: what the function computes, its parameters, its error codes.
// `levels` are the vector instructions that it has code for, in their order.
std::string CHeader(const CInterface& interface,
                    const std::vector<TargetLevel>& levels);

// <function>_example.c: a program that calls it once, on extents that fit the
// guards of the graph as far as small ones do.
std::string CExample(const CInterface& interface, const Graph& graph);

// `text` as it can stand in a comment of C.
std::string CommentText(absl::string_view text);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_C_LIBRARY_C_INTERFACE_H_
