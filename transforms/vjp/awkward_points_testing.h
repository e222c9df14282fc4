// Points where functions have kinks, jumps, poles or 0 times infinity, and what
// values and derivatives are there: testdata/awkward_points.json, for the test
// that holds the rules to it and for the document made of it,
// rules/conventions.md.
//
// The file is a list of groups {"title", "points"}. A point has
//   name, rule        an expression, or an equation `y[..] = e`, in the inputs
//   inputs            by name: nested lists of numbers, of bools, or
//                     {"i64": ..}; "inf", "-inf" and "nan" are numbers
//   value             of the result, which is a float tensor
//   tangents, jvp     of the inputs differentiated (absent: none is), and the
//                     tangent of the result
//   cotangent, vjp    of the result, and the cotangents of those inputs
//   second            optional, for each of those inputs: the derivative in it
//                     of <cotangent, jvp along the tangents>
//   convention, source, torch
//                     what is meant, on whose authority, and the same
//                     function in PyTorch
//   pytorch           absent where PyTorch gives all of that: what it gives
//                     instead ("value", "jvp", "vjp", "second") and perhaps
//                     `why`

#ifndef CLEAVE_TRANSFORMS_VJP_AWKWARD_POINTS_TESTING_H_
#define CLEAVE_TRANSFORMS_VJP_AWKWARD_POINTS_TESTING_H_

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "ops/dtype.h"
#include "ops/tensor.h"

namespace cleave {

// An array of the file, for tensors of either float dtype.
struct AwkwardArray {
  enum class Kind { kFloat, kInt, kBool };
  Kind kind = Kind::kFloat;
  std::vector<int64_t> shape;
  std::vector<double> elements;

  // Floats in `dtype`.
  Tensor ToTensor(DType dtype) const;
  // `f32[2, 3]`.
  std::string Type(DType dtype) const;
};

using NamedAwkwardArrays = std::vector<std::pair<std::string, AwkwardArray>>;

// The values and derivatives of a function at a point. Members that were not
// asked for are empty.
struct AwkwardResults {
  // One array each, or none.
  std::vector<AwkwardArray> value;
  std::vector<AwkwardArray> jvp;
  NamedAwkwardArrays vjp;
  NamedAwkwardArrays second;
};

struct AwkwardPoint {
  std::string name;
  std::string rule;
  NamedAwkwardArrays inputs;
  NamedAwkwardArrays tangents;
  std::vector<AwkwardArray> cotangent;
  AwkwardResults expected;
  std::string convention;
  std::string source;
  std::string torch;
  // Where PyTorch differs: what it gives, or "not implemented", and why.
  AwkwardResults pytorch;
  std::vector<std::string> not_implemented;
  std::string why;

  bool SameInPyTorch() const;
  // The function as a rule file, its float type `dtype`: `fn f(..) -> .. = ..`.
  std::string RuleText(DType dtype) const;

  friend std::ostream& operator<<(std::ostream& out, const AwkwardPoint& x) {
    return out << x.name;
  }
};

struct AwkwardGroup {
  std::string title;
  std::vector<AwkwardPoint> points;
};

// CHECKs that the file is as described above.
std::vector<AwkwardGroup> ReadAwkwardPoints(const std::string& path);

// The document: a table for each group.
std::string AwkwardPointsDocument(const std::vector<AwkwardGroup>& groups);

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_VJP_AWKWARD_POINTS_TESTING_H_
