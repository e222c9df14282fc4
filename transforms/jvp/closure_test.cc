// The primitives are closed under jvp: each has no tangent, or a derivative
// made of primitives, for every float dtype and rank, to second order.
// closure.golden lists the primitives of each derivative, and those that
// reverse mode and the kernels need.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/golden_file.h"
#include "testing/status_matchers.h"
#include "transforms/jvp/jvp.h"
#include "transforms/testing/sample_nodes.h"
#include "transforms/testing/test_rules.h"

namespace cleave {
namespace {

class ClosureTest : public ::testing::Test {
 protected:
  ClosureTest() {
    for (const SampleNode& sample : SampleNodes(context_)) {
      for (const SampleNode& ranked : Ranks(sample)) {
        for (DType dtype :
             {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
          Differentiate(ranked, dtype);
        }
      }
    }
  }

  // Pointwise samples at ranks 0 to 2; the others as they are.
  static std::vector<SampleNode> Ranks(const SampleNode& sample) {
    if (ClassOf(sample.primitive) != PrimitiveClass::kPointwise) {
      return {sample};
    }
    std::vector<SampleNode> ranked;
    for (const char* shape : {"[]", "[3]", "[2, 3]"}) {
      ranked.push_back(sample);
      for (std::string& type : ranked.back().operands) {
        type = absl::StrReplaceAll(type, {{"[3]", shape}});
      }
    }
    return ranked;
  }

  static bool OnlyF64(const SampleNode& sample) {
    // Bits of one size, complex numbers, and regions written for f64.
    return sample.primitive == Primitive::kBitcastConvert ||
           sample.primitive == Primitive::kComplex ||
           ClassOf(sample.primitive) == PrimitiveClass::kControl;
  }

  void Differentiate(const SampleNode& sample, DType dtype) {
    if (OnlyF64(sample) && dtype != DType::kF64) return;
    SCOPED_TRACE(absl::StrCat(sample.name, " ", DTypeName(dtype)));
    const std::string name(PrimitiveName(sample.primitive));
    ASSERT_OK_AND_ASSIGN(const Graph graph,
                         SampleGraph(sample, context_, dtype));
    std::vector<bool> active;
    bool any = false;
    for (const NamedValue& input : graph.inputs()) {
      const DType type = graph.type(input.value).dtype;
      active.push_back(IsFloat(type) || IsComplex(type));
      // No closed form is known for the derivative in the order.
      if (sample.primitive == Primitive::kPolygamma && active.size() == 1) {
        active[0] = false;
      }
      any |= active.back();
    }
    std::set<std::string>& parts = derivatives_[name];
    if (!any) return;
    ASSERT_OK_AND_ASSIGN(const JvpResult once,
                         Jvp(graph, active, *rules_, {false, {}}));
    Collect(once.graph, parts);
    std::vector<bool> again;
    for (const NamedValue& input : once.graph.inputs()) {
      const DType type = once.graph.type(input.value).dtype;
      again.push_back(IsFloat(type) || IsComplex(type));
    }
    if (sample.primitive == Primitive::kPolygamma) again[0] = false;
    ASSERT_OK_AND_ASSIGN(const JvpResult twice,
                         Jvp(once.graph, again, *rules_));
    for (uint32_t id = 0; id < twice.graph.size(); ++id) {
      ASSERT_TRUE(IsPrimitive(twice.graph.node(Value{id}).op));
    }
  }

  // The primitives of the tangents in `parts`; where tangents enter them, in
  // linear_. Every node must be a primitive.
  void Collect(const Graph& graph, std::set<std::string>& parts) {
    std::vector<bool> needed(graph.size(), false);
    std::vector<bool> tangent(graph.size(), false);
    for (const NamedValue& input : graph.inputs()) {
      tangent[input.value.id] = absl::EndsWith(input.name, ".tangent");
    }
    for (const NamedValue& output : graph.outputs()) {
      if (absl::EndsWith(output.name, ".tangent")) {
        needed[output.value.id] = true;
      }
    }
    for (uint32_t id = graph.size(); id-- > 0;) {
      if (!needed[id]) continue;
      for (Value v : graph.operands(Value{id})) needed[v.id] = true;
    }
    for (uint32_t id = 0; id < graph.size(); ++id) {
      const Node& node = graph.node(Value{id});
      ASSERT_TRUE(IsPrimitive(node.op)) << context_->op_name(node.op);
      if (node.op == ToOpId(Primitive::kInput)) continue;
      const std::string name(context_->op_name(node.op));
      const absl::Span<const Value> operands = graph.operands(Value{id});
      std::vector<size_t> places;
      for (size_t i = 0; i < operands.size(); ++i) {
        if (tangent[operands[i].id]) places.push_back(i);
      }
      if (!places.empty()) {
        tangent[id] = true;
        linear_.insert(
            absl::StrCat(name, "(", absl::StrJoin(places, " "), ")"));
      }
      if (needed[id]) parts.insert(name);
    }
  }

  std::string Derivatives() const {
    std::string text;
    for (const auto& [name, parts] : derivatives_) {
      absl::StrAppend(&text, name, ":", parts.empty() ? " no tangent" : "");
      for (const std::string& part : parts) absl::StrAppend(&text, " ", part);
      absl::StrAppend(&text, "\n");
    }
    return text;
  }

  std::string Transpose() const {
    return absl::StrCat(absl::StrJoin(linear_, "\n"), "\n");
  }

  // Pointwise functions of floats that no processor has.
  static std::string Numerics() {
    static const auto& native = *new std::set<Primitive>{
        Primitive::kAbs,        Primitive::kNeg,
        Primitive::kSign,       Primitive::kCeil,
        Primitive::kFloor,      Primitive::kRoundNearestEven,
        Primitive::kSqrt,       Primitive::kIsnan,
        Primitive::kIsinf,      Primitive::kNot,
        Primitive::kConvert,    Primitive::kBitcastConvert,
        Primitive::kNograd,     Primitive::kReal,
        Primitive::kImag,       Primitive::kAdd,
        Primitive::kSub,        Primitive::kMul,
        Primitive::kDiv,        Primitive::kFloorDiv,
        Primitive::kFloorMod,   Primitive::kCopysign,
        Primitive::kMax,        Primitive::kMin,
        Primitive::kEq,         Primitive::kNe,
        Primitive::kLt,         Primitive::kLe,
        Primitive::kGt,         Primitive::kGe,
        Primitive::kAnd,        Primitive::kOr,
        Primitive::kXor,        Primitive::kShiftLeft,
        Primitive::kShiftRight, Primitive::kComplex,
        Primitive::kSelect,     Primitive::kFma};
    std::string text;
    for (int p = 0; p < kNumPrimitives; ++p) {
      const Primitive primitive = static_cast<Primitive>(p);
      if (ClassOf(primitive) == PrimitiveClass::kPointwise &&
          native.count(primitive) == 0) {
        absl::StrAppend(&text, PrimitiveName(primitive), "\n");
      }
    }
    return text;
  }

  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  std::shared_ptr<const RuleSet> rules_ = LoadTestRules(context_);
  std::map<std::string, std::set<std::string>> derivatives_;
  std::set<std::string> linear_;
};

TEST_F(ClosureTest, EveryPrimitiveIsCovered) {
  for (int p = 0; p < kNumPrimitives; ++p) {
    const Primitive primitive = static_cast<Primitive>(p);
    const PrimitiveClass primitive_class = ClassOf(primitive);
    if (primitive_class == PrimitiveClass::kLeaf ||
        primitive_class == PrimitiveClass::kProjection) {
      continue;
    }
    const auto it = derivatives_.find(std::string(PrimitiveName(primitive)));
    ASSERT_TRUE(it != derivatives_.end()) << PrimitiveName(primitive);
    // A tangent leaves it exactly if the list says so.
    EXPECT_EQ(it->second.empty(),
              DerivativeOf(primitive) == DerivativeKind::kZero)
        << PrimitiveName(primitive);
    // Its parts are covered in turn.
    for (const std::string& part : it->second) {
      const PrimitiveClass part_class = ClassOf(*FindPrimitive(part));
      EXPECT_TRUE(derivatives_.count(part) == 1 ||
                  part_class == PrimitiveClass::kLeaf ||
                  part_class == PrimitiveClass::kProjection)
          << part;
    }
  }
}

TEST_F(ClosureTest, Golden) {
  TestGoldenFile("transforms/jvp/testdata/closure.golden",
                 [this](absl::string_view input) -> std::string {
                   if (input == "derivatives\n") return Derivatives();
                   if (input == "transpose\n") return Transpose();
                   EXPECT_EQ(input, "numerics\n");
                   return Numerics();
                 });
}

}  // namespace
}  // namespace cleave
