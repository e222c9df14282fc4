#include "engine/eager/tree.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "testing/status_matchers.h"

namespace cleave::functional {

// A user's struct, in a namespace of its own.
namespace layers {
struct Linear {
  Tensor weight;
  Tensor bias;
};
CLEAVE_TREE(Linear, weight, bias);

struct Model {
  std::vector<Linear> layers;
  std::map<std::string, Tensor> extra;
  std::pair<Tensor, Tensor> range;
};
CLEAVE_TREE(Model, layers, extra, range);
}  // namespace layers

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor Number(double value) {
  return cleave::Tensor::Scalar(DType::kF64, value);
}
double Read(const Tensor& x) { return *x.Item(); }

layers::Model MakeModel() {
  layers::Model model;
  model.layers = {{Number(1), Number(2)}, {Number(3), Number(4)}};
  model.extra = {{"z", Number(6)}, {"a", Number(5)}};
  model.range = {Number(7), Number(8)};
  return model;
}

TEST(Tree, FlattensInOrderAndPrintsItsStructure) {
  const Tree tree = ToTree(MakeModel());
  std::vector<double> leaves;
  for (const Tensor& leaf : Flatten(tree)) leaves.push_back(Read(leaf));
  EXPECT_THAT(leaves, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_EQ(ShapeOf(tree).ToString(),
            "{{layers: [{{weight: *, bias: *}}, {{weight: *, bias: *}}], "
            "extra: {a: *, z: *}, range: (*, *)}}");
  EXPECT_THAT(ShapeOf(tree).LeafPaths(),
              ElementsAre(".layers[0].weight", ".layers[0].bias",
                          ".layers[1].weight", ".layers[1].bias", ".extra.a",
                          ".extra.z", ".range[0]", ".range[1]"));
  EXPECT_EQ(ShapeOf(tree).leaves(), 8);
  EXPECT_EQ(Tree::Tuple({Tree(Number(1))}).shape().ToString(), "(*,)");
  EXPECT_EQ(Tree::List({}).shape().ToString(), "[]");
}

TEST(Tree, UnflattenUndoesFlatten) {
  const Tree tree = ToTree(MakeModel());
  ASSERT_OK_AND_ASSIGN(const Tree same,
                       Unflatten(ShapeOf(tree), Flatten(tree)));
  ASSERT_OK_AND_ASSIGN(const layers::Model model,
                       FromTree<layers::Model>(same));
  EXPECT_EQ(Read(model.layers[1].weight), 3);
  EXPECT_EQ(Read(model.extra.at("z")), 6);
  EXPECT_EQ(Read(model.range.second), 8);
  // The tensors themselves: storages are shared.
  EXPECT_TRUE(model.range.second.SharesStorage(Flatten(tree)[7]));
  EXPECT_THAT(Unflatten(ShapeOf(tree), {Number(1)}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("1 tensors for the 8 leaves")));
}

TEST(Tree, StructuresAreEqualIfTheyDifferInLeavesAlone) {
  const Tree leaf(Number(1));
  EXPECT_EQ(Tree::List({leaf}).shape(), Tree::List({Tree(Number(2))}).shape());
  EXPECT_NE(Tree::List({leaf}).shape(), Tree::Tuple({leaf}).shape());
  EXPECT_NE(Tree::List({leaf}).shape(), Tree::List({leaf, leaf}).shape());
  EXPECT_NE(Tree::Map({{"a", leaf}}).shape(), Tree::Map({{"b", leaf}}).shape());
  EXPECT_NE(Tree::Map({{"a", leaf}}).shape(),
            Tree::Struct({{"a", leaf}}).shape());
  EXPECT_THAT(
      CheckShape(Tree::List({leaf}), Tree::Tuple({leaf}).shape(), "argument 0"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "argument 0 has the structure [*], not (*,)"));
  EXPECT_OK(CheckShape(leaf, TreeShape::Leaf()));
}

TEST(Tree, ChildrenAreSubtrees) {
  const std::vector<Tree> children = ToTree(MakeModel()).Children();
  ASSERT_EQ(children.size(), 3u);
  EXPECT_EQ(children[1].shape().ToString(), "{a: *, z: *}");
  EXPECT_EQ(Read(children[1].leaves()[1]), 6);
}

TEST(Tree, WrongStructuresAreMistakes) {
  const Tree leaf(Number(1));
  EXPECT_THAT(FromTree<Tensor>(Tree::List({leaf})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "a tree of structure [*] is not a tensor"));
  EXPECT_THAT((FromTree<std::pair<Tensor, Tensor>>(Tree::Tuple({leaf}))),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "a tree of structure (*,) is not a pair of 2"));
  EXPECT_THAT(FromTree<layers::Linear>(
                  Tree::Struct({{"bias", leaf}, {"weight", leaf}})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("is not Linear with members weight, bias")));
  EXPECT_THAT(FromTree<std::vector<Tensor>>(leaf),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(Tree, ArraysAreListsAndOptionalValuesTuplesOfOneOrNone) {
  const std::array<Tensor, 2> two = {Number(1), Number(2)};
  EXPECT_EQ(ToTree(two).shape().ToString(), "[*, *]");
  ASSERT_OK_AND_ASSIGN(const auto same,
                       (FromTree<std::array<Tensor, 2>>(ToTree(two))));
  EXPECT_EQ(Read(same[1]), 2);
  EXPECT_THAT((FromTree<std::array<Tensor, 3>>(ToTree(two))),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("[*, *] is not an array of 3")));
  EXPECT_TRUE((FromTree<std::array<Tensor, 0>>(Tree::List({}))).ok());

  const std::optional<Tensor> none, one = Number(1);
  EXPECT_EQ(ToTree(none).shape().ToString(), "()");
  EXPECT_EQ(ToTree(one).shape().ToString(), "(*,)");
  ASSERT_OK_AND_ASSIGN(const auto absent,
                       FromTree<std::optional<Tensor>>(ToTree(none)));
  EXPECT_FALSE(absent.has_value());
  ASSERT_OK_AND_ASSIGN(const auto present,
                       FromTree<std::optional<Tensor>>(ToTree(one)));
  EXPECT_EQ(Read(*present), 1);
  EXPECT_FALSE(FromTree<std::optional<Tensor>>(
                   Tree::Tuple({Tree(Number(1)), Tree(Number(2))}))
                   .ok());
  EXPECT_FALSE(FromTree<std::optional<Tensor>>(Tree(Number(1))).ok());

  const TreeFunction bias_or_x =
      ToTreeFunction([](const std::optional<Tensor>& bias,
                        const Tensor& x) noexcept { return bias.value_or(x); });
  ASSERT_OK_AND_ASSIGN(const Tensor x,
                       CallTree<Tensor>(bias_or_x, none, Number(3)));
  EXPECT_EQ(Read(x), 3);
}

// A lambda with `auto` for a parameter is told so when it is compiled.
static_assert(internal_tree::HasKnownParameters<Tensor (*)(Tensor)>::value);
inline constexpr auto kGeneric = [](const auto& x) { return x; };
static_assert(!internal_tree::HasKnownParameters<
              std::decay_t<decltype(kGeneric)>>::value);

TEST(Tree, FunctionsOfCppTypesBecomeFunctionsOfTrees) {
  const TreeFunction swap = ToTreeFunction(
      [](const layers::Linear& layer, const std::vector<Tensor>& xs) {
        return std::make_tuple(
            xs, layer.bias, std::map<std::string, Tensor>{{"w", layer.weight}});
      });
  const layers::Linear layer{Number(1), Number(2)};
  ASSERT_OK_AND_ASSIGN(
      const Tree result,
      swap(ToTree(std::make_tuple(layer, std::vector<Tensor>{Number(3)}))));
  EXPECT_EQ(result.shape().ToString(), "([*], *, {w: *})");
  EXPECT_EQ(Read(result.leaves()[0]), 3);

  using Result =
      std::tuple<std::vector<Tensor>, Tensor, std::map<std::string, Tensor>>;
  ASSERT_OK_AND_ASSIGN(
      const Result typed,
      CallTree<Result>(swap, layer, std::vector<Tensor>{Number(3)}));
  EXPECT_EQ(Read(std::get<1>(typed)), 2);

  // One argument is the tree itself, and a status passes through.
  const TreeFunction fails =
      ToTreeFunction([](const Tensor&) -> absl::StatusOr<Tensor> {
        return absl::OutOfRangeError("too far");
      });
  EXPECT_THAT(fails(Tree(Number(1))),
              StatusIs(absl::StatusCode::kOutOfRange, "too far"));
  EXPECT_THAT(fails(Tree::Tuple({Tree(Number(1))})),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

Tensor Identity(const Tensor& x) { return x; }

TEST(Tree, FunctionPointersAreFunctions) {
  ASSERT_OK_AND_ASSIGN(const Tensor y,
                       CallTree<Tensor>(ToTreeFunction(&Identity), Number(4)));
  EXPECT_EQ(Read(y), 4);
}

}  // namespace
}  // namespace cleave::functional
