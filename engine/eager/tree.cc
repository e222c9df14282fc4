#include "engine/eager/tree.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace cleave::functional {

TreeShape TreeShape::Tuple(std::vector<TreeShape> children) {
  TreeShape shape(TreeKind::kTuple);
  shape.children_ = std::move(children);
  return shape;
}

TreeShape TreeShape::List(std::vector<TreeShape> children) {
  TreeShape shape(TreeKind::kList);
  shape.children_ = std::move(children);
  return shape;
}

TreeShape TreeShape::Map(std::map<std::string, TreeShape> children) {
  TreeShape shape(TreeKind::kMap);
  for (auto& [key, child] : children) {
    shape.keys_.push_back(key);
    shape.children_.push_back(std::move(child));
  }
  return shape;
}

TreeShape TreeShape::Struct(
    std::vector<std::pair<std::string, TreeShape>> children) {
  TreeShape shape(TreeKind::kStruct);
  for (auto& [key, child] : children) {
    shape.keys_.push_back(std::move(key));
    shape.children_.push_back(std::move(child));
  }
  return shape;
}

int64_t TreeShape::leaves() const {
  if (kind_ == TreeKind::kLeaf) return 1;
  int64_t count = 0;
  for (const TreeShape& child : children_) count += child.leaves();
  return count;
}

void TreeShape::AddPaths(const std::string& prefix,
                         std::vector<std::string>* paths) const {
  if (kind_ == TreeKind::kLeaf) {
    paths->push_back(prefix);
    return;
  }
  for (size_t i = 0; i < children_.size(); ++i) {
    const std::string step =
        keys_.empty() ? absl::StrCat("[", i, "]") : absl::StrCat(".", keys_[i]);
    children_[i].AddPaths(prefix + step, paths);
  }
}

std::vector<std::string> TreeShape::LeafPaths() const {
  std::vector<std::string> paths;
  AddPaths("", &paths);
  return paths;
}

std::string TreeShape::ToString() const {
  std::vector<std::string> parts;
  for (size_t i = 0; i < children_.size(); ++i) {
    parts.push_back(
        keys_.empty() ? children_[i].ToString()
                      : absl::StrCat(keys_[i], ": ", children_[i].ToString()));
  }
  const std::string inside = absl::StrJoin(parts, ", ");
  switch (kind_) {
    case TreeKind::kLeaf:
      return "*";
    case TreeKind::kTuple:
      return absl::StrCat("(", inside, parts.size() == 1 ? ",)" : ")");
    case TreeKind::kList:
      return absl::StrCat("[", inside, "]");
    case TreeKind::kMap:
      return absl::StrCat("{", inside, "}");
    case TreeKind::kStruct:
      return absl::StrCat("{{", inside, "}}");
  }
  return inside;
}

namespace {

// The shapes of trees, whose leaves are moved behind `leaves`.
std::vector<TreeShape> TakeLeaves(std::vector<Tree> children,
                                  std::vector<Tensor>* leaves) {
  std::vector<TreeShape> shapes;
  for (const Tree& child : children) {
    shapes.push_back(child.shape());
    leaves->insert(leaves->end(), child.leaves().begin(), child.leaves().end());
  }
  return shapes;
}

}  // namespace

Tree Tree::Tuple(std::vector<Tree> children) {
  std::vector<Tensor> leaves;
  TreeShape shape = TreeShape::Tuple(TakeLeaves(std::move(children), &leaves));
  return Tree(std::move(shape), std::move(leaves));
}

Tree Tree::List(std::vector<Tree> children) {
  std::vector<Tensor> leaves;
  TreeShape shape = TreeShape::List(TakeLeaves(std::move(children), &leaves));
  return Tree(std::move(shape), std::move(leaves));
}

Tree Tree::Map(std::map<std::string, Tree> children) {
  std::vector<Tensor> leaves;
  std::map<std::string, TreeShape> shapes;
  for (const auto& [key, child] : children) {
    shapes.emplace(key, child.shape());
    leaves.insert(leaves.end(), child.leaves().begin(), child.leaves().end());
  }
  return Tree(TreeShape::Map(std::move(shapes)), std::move(leaves));
}

Tree Tree::Struct(std::vector<std::pair<std::string, Tree>> children) {
  std::vector<Tensor> leaves;
  std::vector<std::pair<std::string, TreeShape>> shapes;
  for (const auto& [key, child] : children) {
    shapes.emplace_back(key, child.shape());
    leaves.insert(leaves.end(), child.leaves().begin(), child.leaves().end());
  }
  return Tree(TreeShape::Struct(std::move(shapes)), std::move(leaves));
}

std::vector<Tree> Tree::Children() const {
  std::vector<Tree> children;
  auto next = leaves_.begin();
  for (const TreeShape& shape : shape_.children()) {
    const auto end = next + shape.leaves();
    children.push_back(Tree(shape, std::vector<Tensor>(next, end)));
    next = end;
  }
  return children;
}

absl::StatusOr<Tree> Unflatten(const TreeShape& shape,
                               std::vector<Tensor> leaves) {
  if (static_cast<int64_t>(leaves.size()) != shape.leaves()) {
    return absl::InvalidArgumentError(
        absl::StrCat(leaves.size(), " tensors for the ", shape.leaves(),
                     " leaves of ", shape.ToString()));
  }
  return Tree(shape, std::move(leaves));
}

absl::Status CheckShape(const Tree& tree, const TreeShape& shape,
                        absl::string_view what) {
  if (tree.shape() == shape) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(what, " has the structure ",
                                                 tree.shape().ToString(),
                                                 ", not ", shape.ToString()));
}

namespace internal_tree {

std::vector<std::string> SplitNames(absl::string_view names) {
  std::vector<std::string> result;
  for (const absl::string_view name : absl::StrSplit(names, ',')) {
    result.emplace_back(absl::StripAsciiWhitespace(name));
  }
  return result;
}

absl::StatusOr<std::vector<Tree>> ChildrenOf(
    const Tree& tree, TreeKind kind, absl::string_view what,
    std::optional<size_t> count, const std::vector<std::string>* keys) {
  const TreeShape& shape = tree.shape();
  const bool fits = shape.kind() == kind &&
                    (!count.has_value() || shape.children().size() == *count) &&
                    (keys == nullptr || shape.keys() == *keys);
  if (fits) return tree.Children();
  std::string wanted(what);
  if (keys != nullptr) {
    absl::StrAppend(&wanted, " with members ", absl::StrJoin(*keys, ", "));
  } else if (count.has_value() && *count > 0) {
    absl::StrAppend(&wanted, " of ", *count);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a tree of structure ", shape.ToString(), " is not ", wanted));
}

}  // namespace internal_tree
}  // namespace cleave::functional
