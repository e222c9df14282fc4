// Tree: nested values with tensors at the leaves, and how C++ types become
// trees and back.
//
//   struct Linear { Tensor weight, bias; };
//   CLEAVE_TREE(Linear, weight, bias);         // in the struct's namespace
//
//   TreeFunction f = ToTreeFunction(
//       [](const Linear& layer, const Tensor& x) {
//         return std::make_pair(Matmul(x, layer.weight) + layer.bias, x);
//       });
//   absl::StatusOr<Tree> y = f(ToTree(std::make_tuple(layer, x)));
//   TreeShape shape = ShapeOf(*y);             // (*, *)
//   std::vector<Tensor> leaves = Flatten(*y);  // in order
//
// A tree is a leaf, a tuple, a list, or a map from names, whose keys are
// sorted. A std::array is a list, a std::optional a tuple of one or none. A
// struct is a map from its members' names in the order in which they
// are listed. Two trees have one structure if they differ in their leaves
// alone: a tuple is no list, lists of two lengths differ, and so do keys.

#ifndef CLEAVE_ENGINE_EAGER_TREE_H_
#define CLEAVE_ENGINE_EAGER_TREE_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/eager/tensor.h"
#include "ops/status_macros.h"

namespace cleave::functional {

enum class TreeKind { kLeaf, kTuple, kList, kMap, kStruct };

// The structure of a tree, without its leaves.
class TreeShape {
 public:
  static TreeShape Leaf() { return TreeShape(TreeKind::kLeaf); }
  static TreeShape Tuple(std::vector<TreeShape> children);
  static TreeShape List(std::vector<TreeShape> children);
  static TreeShape Map(std::map<std::string, TreeShape> children);
  // Keys in the order given.
  static TreeShape Struct(
      std::vector<std::pair<std::string, TreeShape>> children);

  TreeKind kind() const { return kind_; }
  const std::vector<TreeShape>& children() const { return children_; }
  // The keys of a map or struct, one per child.
  const std::vector<std::string>& keys() const { return keys_; }
  int64_t leaves() const;
  // Per leaf: how it is reached, as `[0].weight`, for names and messages; empty
  // for a tree that is a leaf.
  std::vector<std::string> LeafPaths() const;
  // `*` for a leaf, `(*, *)`, `[*, *]`, `{b: *, w: *}`, `{{w: *, b: *}}` for a
  // struct; a tuple of one is `(*,)`.
  std::string ToString() const;
  friend bool operator==(const TreeShape& a, const TreeShape& b) {
    if (a.kind_ != b.kind_) return false;
    return a.kind_ == TreeKind::kLeaf ||
           (a.children_ == b.children_ && a.keys_ == b.keys_);
  }
  friend bool operator!=(const TreeShape& a, const TreeShape& b) {
    return !(a == b);
  }

 private:
  explicit TreeShape(TreeKind kind) : kind_(kind) {}
  void AddPaths(const std::string& prefix,
                std::vector<std::string>* paths) const;

  TreeKind kind_;
  std::vector<TreeShape> children_;
  std::vector<std::string> keys_;
};

class Tree {
 public:
  Tree() : Tree(Tensor()) {}
  Tree(Tensor leaf)  // NOLINT: a tensor is a tree.
      : shape_(TreeShape::Leaf()), leaves_({std::move(leaf)}) {}
  static Tree Tuple(std::vector<Tree> children);
  static Tree List(std::vector<Tree> children);
  static Tree Map(std::map<std::string, Tree> children);
  static Tree Struct(std::vector<std::pair<std::string, Tree>> children);

  const TreeShape& shape() const { return shape_; }
  const std::vector<Tensor>& leaves() const { return leaves_; }
  // The subtrees, in order.
  std::vector<Tree> Children() const;

 private:
  friend absl::StatusOr<Tree> Unflatten(const TreeShape& shape,
                                        std::vector<Tensor> leaves);
  Tree(TreeShape shape, std::vector<Tensor> leaves)
      : shape_(std::move(shape)), leaves_(std::move(leaves)) {}

  TreeShape shape_;
  std::vector<Tensor> leaves_;
};

inline const std::vector<Tensor>& Flatten(const Tree& tree) {
  return tree.leaves();
}
inline const TreeShape& ShapeOf(const Tree& tree) { return tree.shape(); }
// InvalidArgument for another number of leaves than the shape has.
absl::StatusOr<Tree> Unflatten(const TreeShape& shape,
                               std::vector<Tensor> leaves);
// InvalidArgument, with both structures, where they differ. `what` names the
// tree in the message.
absl::Status CheckShape(const Tree& tree, const TreeShape& shape,
                        absl::string_view what = "the tree");

// From trees to trees: what AotFunction and the transforms take.
using TreeFunction = std::function<absl::StatusOr<Tree>(const Tree&)>;

// How a C++ type becomes a tree: specialise for other types.
//   static Tree To(const T& value);
//   static absl::StatusOr<T> From(const Tree& tree);
template <typename T, typename = void>
struct TreeTraits;

template <typename T>
Tree ToTree(const T& value) {
  return TreeTraits<std::decay_t<T>>::To(value);
}
// InvalidArgument where the tree's structure is none of T.
template <typename T>
absl::StatusOr<T> FromTree(const Tree& tree) {
  return TreeTraits<T>::From(tree);
}

// The members of a struct that are its children, in this order. Stands in the
// struct's namespace; up to 16 members.
#define CLEAVE_TREE(type, ...)                                               \
  inline ::cleave::functional::Tree CleaveToTree(const type& cleave_value) { \
    return ::cleave::functional::internal_tree::StructToTree(                \
        #__VA_ARGS__, CLEAVE_TREE_TIE(cleave_value, __VA_ARGS__));           \
  }                                                                          \
  inline ::absl::Status CleaveFromTree(                                      \
      const ::cleave::functional::Tree& cleave_tree, type* cleave_value) {   \
    return ::cleave::functional::internal_tree::StructFromTree(              \
        #type, #__VA_ARGS__, cleave_tree,                                    \
        CLEAVE_TREE_TIE((*cleave_value), __VA_ARGS__));                      \
  }                                                                          \
  static_assert(true, "so that a semicolon follows")

// Calls a C++ function with trees: one argument takes the tree itself, several
// take the children of a tuple. The function may return absl::StatusOr. The
// types of its parameters must be known: those of a lambda are not `auto`.
template <typename Fn>
TreeFunction ToTreeFunction(Fn fn);

// A function of trees as one of C++ types.
template <typename Result, typename... Arguments>
absl::StatusOr<Result> CallTree(const TreeFunction& fn,
                                const Arguments&... arguments) {
  Tree given = [&]() {
    if constexpr (sizeof...(Arguments) == 1) {
      return ToTree(arguments...);
    } else {
      return Tree::Tuple({ToTree(arguments)...});
    }
  }();
  CLEAVE_ASSIGN_OR_RETURN(const Tree result, fn(given));
  return FromTree<Result>(result);
}

}  // namespace cleave::functional

#include "engine/eager/tree_internal.h"

#endif  // CLEAVE_ENGINE_EAGER_TREE_H_
