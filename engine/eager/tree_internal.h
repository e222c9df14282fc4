// The templates of tree.h. Include that instead.

#ifndef CLEAVE_ENGINE_EAGER_TREE_INTERNAL_H_
#define CLEAVE_ENGINE_EAGER_TREE_INTERNAL_H_

// IWYU pragma: private, include "engine/eager/tree.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/eager/tree.h"

// std::tie of value.member for each member.
#define CLEAVE_TREE_TIE(value, ...)                                   \
  std::tie(CLEAVE_TREE_PICK(                                          \
      __VA_ARGS__, CLEAVE_TREE_16, CLEAVE_TREE_15, CLEAVE_TREE_14,    \
      CLEAVE_TREE_13, CLEAVE_TREE_12, CLEAVE_TREE_11, CLEAVE_TREE_10, \
      CLEAVE_TREE_9, CLEAVE_TREE_8, CLEAVE_TREE_7, CLEAVE_TREE_6,     \
      CLEAVE_TREE_5, CLEAVE_TREE_4, CLEAVE_TREE_3, CLEAVE_TREE_2,     \
      CLEAVE_TREE_1, unused)(value, __VA_ARGS__))
#define CLEAVE_TREE_PICK(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, name, \
                         ...)                                                  \
  name
#define CLEAVE_TREE_1(v, a) v.a
#define CLEAVE_TREE_2(v, a, ...) v.a, CLEAVE_TREE_1(v, __VA_ARGS__)
#define CLEAVE_TREE_3(v, a, ...) v.a, CLEAVE_TREE_2(v, __VA_ARGS__)
#define CLEAVE_TREE_4(v, a, ...) v.a, CLEAVE_TREE_3(v, __VA_ARGS__)
#define CLEAVE_TREE_5(v, a, ...) v.a, CLEAVE_TREE_4(v, __VA_ARGS__)
#define CLEAVE_TREE_6(v, a, ...) v.a, CLEAVE_TREE_5(v, __VA_ARGS__)
#define CLEAVE_TREE_7(v, a, ...) v.a, CLEAVE_TREE_6(v, __VA_ARGS__)
#define CLEAVE_TREE_8(v, a, ...) v.a, CLEAVE_TREE_7(v, __VA_ARGS__)
#define CLEAVE_TREE_9(v, a, ...) v.a, CLEAVE_TREE_8(v, __VA_ARGS__)
#define CLEAVE_TREE_10(v, a, ...) v.a, CLEAVE_TREE_9(v, __VA_ARGS__)
#define CLEAVE_TREE_11(v, a, ...) v.a, CLEAVE_TREE_10(v, __VA_ARGS__)
#define CLEAVE_TREE_12(v, a, ...) v.a, CLEAVE_TREE_11(v, __VA_ARGS__)
#define CLEAVE_TREE_13(v, a, ...) v.a, CLEAVE_TREE_12(v, __VA_ARGS__)
#define CLEAVE_TREE_14(v, a, ...) v.a, CLEAVE_TREE_13(v, __VA_ARGS__)
#define CLEAVE_TREE_15(v, a, ...) v.a, CLEAVE_TREE_14(v, __VA_ARGS__)
#define CLEAVE_TREE_16(v, a, ...) v.a, CLEAVE_TREE_15(v, __VA_ARGS__)

namespace cleave::functional {
namespace internal_tree {

// The names in `a, b, c`.
std::vector<std::string> SplitNames(absl::string_view names);
// The children of a tree that is to be a value of a kind, with so many children
// (any number if nullopt); keys must be those given, if any are.
absl::StatusOr<std::vector<Tree>> ChildrenOf(
    const Tree& tree, TreeKind kind, absl::string_view what,
    std::optional<size_t> count,
    const std::vector<std::string>* keys = nullptr);

template <typename... Members>
Tree StructToTree(absl::string_view names,
                  const std::tuple<Members&...>& members) {
  const std::vector<std::string> keys = SplitNames(names);
  std::vector<std::pair<std::string, Tree>> children;
  std::apply(
      [&](const auto&... member) {
        (children.emplace_back(keys[children.size()], ToTree(member)), ...);
      },
      members);
  return Tree::Struct(std::move(children));
}

// Assigns FromTree(children[k]) to each target; the first error.
template <typename... Targets>
absl::Status AssignAll(const std::vector<Tree>& children,
                       const std::tuple<Targets&...>& targets) {
  absl::Status status;
  size_t next = 0;
  const auto assign = [&](auto& target) {
    using Target = std::decay_t<decltype(target)>;
    const size_t child = next++;
    if (!status.ok()) return;
    absl::StatusOr<Target> value = FromTree<Target>(children[child]);
    if (value.ok()) {
      target = *std::move(value);
    } else {
      status = value.status();
    }
  };
  std::apply([&](auto&... target) { (assign(target), ...); }, targets);
  return status;
}

template <typename... Members>
absl::Status StructFromTree(absl::string_view type, absl::string_view names,
                            const Tree& tree,
                            const std::tuple<Members&...>& members) {
  const std::vector<std::string> keys = SplitNames(names);
  CLEAVE_ASSIGN_OR_RETURN(
      const std::vector<Tree> children,
      ChildrenOf(tree, TreeKind::kStruct, type, keys.size(), &keys));
  return AssignAll(children, members);
}

template <typename T, typename = void>
struct IsListed : std::false_type {};
template <typename T>
struct IsListed<T,
                std::void_t<decltype(CleaveToTree(std::declval<const T&>()))>>
    : std::true_type {};

// The parameters and the result of a callable.
template <typename Fn>
struct CallTraits : CallTraits<decltype(&Fn::operator())> {};
template <typename R, typename... A>
struct CallTraits<R (*)(A...)> {
  using Result = R;
  using Arguments = std::tuple<std::decay_t<A>...>;
};
template <typename C, typename R, typename... A>
struct CallTraits<R (C::*)(A...)> : CallTraits<R (*)(A...)> {};
template <typename C, typename R, typename... A>
struct CallTraits<R (C::*)(A...) const> : CallTraits<R (*)(A...)> {};

template <typename R, typename... A>
struct CallTraits<R (*)(A...) noexcept> : CallTraits<R (*)(A...)> {};
template <typename C, typename R, typename... A>
struct CallTraits<R (C::*)(A...) noexcept> : CallTraits<R (*)(A...)> {};
template <typename C, typename R, typename... A>
struct CallTraits<R (C::*)(A...) const noexcept> : CallTraits<R (*)(A...)> {};

// Whether the parameters of a callable are known: a function, or an object with
// one call operator that is no template.
template <typename Fn, typename = void>
struct HasKnownParameters : std::is_function<std::remove_pointer_t<Fn>> {};
template <typename Fn>
struct HasKnownParameters<Fn, std::void_t<decltype(&Fn::operator())>>
    : std::true_type {};

template <typename T>
struct IsStatusOr : std::false_type {};
template <typename T>
struct IsStatusOr<absl::StatusOr<T>> : std::true_type {};

template <typename Result>
absl::StatusOr<Tree> ResultToTree(Result result) {
  if constexpr (IsStatusOr<Result>::value) {
    if (!result.ok()) return result.status();
    return ToTree(*result);
  } else {
    return ToTree(result);
  }
}

}  // namespace internal_tree

template <>
struct TreeTraits<Tree> {
  static Tree To(const Tree& tree) { return tree; }
  static absl::StatusOr<Tree> From(const Tree& tree) { return tree; }
};

template <>
struct TreeTraits<Tensor> {
  static Tree To(const Tensor& x) { return Tree(x); }
  static absl::StatusOr<Tensor> From(const Tree& tree) {
    CLEAVE_RETURN_IF_ERROR(
        internal_tree::ChildrenOf(tree, TreeKind::kLeaf, "a tensor", 0)
            .status());
    return tree.leaves()[0];
  }
};

template <typename T>
struct TreeTraits<std::vector<T>> {
  static Tree To(const std::vector<T>& values) {
    std::vector<Tree> children;
    for (const T& value : values) children.push_back(ToTree(value));
    return Tree::List(std::move(children));
  }
  static absl::StatusOr<std::vector<T>> From(const Tree& tree) {
    CLEAVE_ASSIGN_OR_RETURN(const std::vector<Tree> children,
                            internal_tree::ChildrenOf(tree, TreeKind::kList,
                                                      "a list", std::nullopt));
    std::vector<T> values;
    for (const Tree& child : children) {
      CLEAVE_ASSIGN_OR_RETURN(T value, FromTree<T>(child));
      values.push_back(std::move(value));
    }
    return values;
  }
};

template <typename T>
struct TreeTraits<std::map<std::string, T>> {
  static Tree To(const std::map<std::string, T>& values) {
    std::map<std::string, Tree> children;
    for (const auto& [key, value] : values) {
      children.emplace(key, ToTree(value));
    }
    return Tree::Map(std::move(children));
  }
  static absl::StatusOr<std::map<std::string, T>> From(const Tree& tree) {
    CLEAVE_ASSIGN_OR_RETURN(
        const std::vector<Tree> children,
        internal_tree::ChildrenOf(tree, TreeKind::kMap, "a map", std::nullopt));
    std::map<std::string, T> values;
    for (size_t i = 0; i < children.size(); ++i) {
      CLEAVE_ASSIGN_OR_RETURN(T value, FromTree<T>(children[i]));
      values.emplace(tree.shape().keys()[i], std::move(value));
    }
    return values;
  }
};

template <typename... Ts>
struct TreeTraits<std::tuple<Ts...>> {
  static Tree To(const std::tuple<Ts...>& values) {
    return std::apply(
        [](const Ts&... value) {
          return Tree::Tuple(std::vector<Tree>{ToTree(value)...});
        },
        values);
  }
  static absl::StatusOr<std::tuple<Ts...>> From(const Tree& tree) {
    CLEAVE_ASSIGN_OR_RETURN(
        const std::vector<Tree> children,
        internal_tree::ChildrenOf(tree, TreeKind::kTuple, "a tuple",
                                  sizeof...(Ts)));
    std::tuple<Ts...> values;
    CLEAVE_RETURN_IF_ERROR(std::apply(
        [&](Ts&... value) {
          return internal_tree::AssignAll(children, std::tie(value...));
        },
        values));
    return values;
  }
};

template <typename A, typename B>
struct TreeTraits<std::pair<A, B>> {
  static Tree To(const std::pair<A, B>& values) {
    return Tree::Tuple({ToTree(values.first), ToTree(values.second)});
  }
  static absl::StatusOr<std::pair<A, B>> From(const Tree& tree) {
    CLEAVE_ASSIGN_OR_RETURN(
        const std::vector<Tree> children,
        internal_tree::ChildrenOf(tree, TreeKind::kTuple, "a pair", 2));
    std::pair<A, B> values;
    CLEAVE_RETURN_IF_ERROR(internal_tree::AssignAll(
        children, std::tie(values.first, values.second)));
    return values;
  }
};

template <typename T, size_t n>
struct TreeTraits<std::array<T, n>> {
  static Tree To(const std::array<T, n>& values) {
    std::vector<Tree> children;
    for (const T& value : values) children.push_back(ToTree(value));
    return Tree::List(std::move(children));
  }
  static absl::StatusOr<std::array<T, n>> From(const Tree& tree) {
    CLEAVE_ASSIGN_OR_RETURN(
        const std::vector<Tree> children,
        internal_tree::ChildrenOf(tree, TreeKind::kList, "an array", n));
    std::array<T, n> values;
    for (size_t i = 0; i < n; ++i) {
      CLEAVE_ASSIGN_OR_RETURN(values[i], FromTree<T>(children[i]));
    }
    return values;
  }
};

template <typename T>
struct TreeTraits<std::optional<T>> {
  static Tree To(const std::optional<T>& value) {
    return Tree::Tuple(value.has_value() ? std::vector<Tree>{ToTree(*value)}
                                         : std::vector<Tree>{});
  }
  static absl::StatusOr<std::optional<T>> From(const Tree& tree) {
    CLEAVE_ASSIGN_OR_RETURN(
        const std::vector<Tree> children,
        internal_tree::ChildrenOf(tree, TreeKind::kTuple, "an optional value",
                                  std::nullopt));
    if (children.empty()) return std::optional<T>();
    CLEAVE_RETURN_IF_ERROR(internal_tree::ChildrenOf(tree, TreeKind::kTuple,
                                                     "an optional value", 1)
                               .status());
    CLEAVE_ASSIGN_OR_RETURN(T value, FromTree<T>(children[0]));
    return std::optional<T>(std::move(value));
  }
};

// Structs that CLEAVE_TREE lists.
template <typename T>
struct TreeTraits<T, std::enable_if_t<internal_tree::IsListed<T>::value>> {
  static Tree To(const T& value) { return CleaveToTree(value); }
  static absl::StatusOr<T> From(const Tree& tree) {
    T value;
    CLEAVE_RETURN_IF_ERROR(CleaveFromTree(tree, &value));
    return value;
  }
};

template <typename Fn>
TreeFunction ToTreeFunction(Fn fn) {
  constexpr bool kKnown = internal_tree::HasKnownParameters<Fn>::value;
  static_assert(kKnown,
                "the parameters of the function are not known: write the type "
                "of each parameter of a lambda, as in [](const Tensor& x, "
                "const Layer& layer) {..}, where `auto` stands");
  if constexpr (kKnown) {
    using Arguments = typename internal_tree::CallTraits<Fn>::Arguments;
    return [fn = std::move(fn)](const Tree& tree) -> absl::StatusOr<Tree> {
      Arguments arguments;
      if constexpr (std::tuple_size_v<Arguments> == 1) {
        CLEAVE_ASSIGN_OR_RETURN(
            std::get<0>(arguments),
            (FromTree<std::tuple_element_t<0, Arguments>>(tree)));
      } else {
        CLEAVE_ASSIGN_OR_RETURN(arguments, FromTree<Arguments>(tree));
      }
      return internal_tree::ResultToTree(std::apply(fn, std::move(arguments)));
    };
  } else {
    return nullptr;
  }
}

}  // namespace cleave::functional

#endif  // CLEAVE_ENGINE_EAGER_TREE_INTERNAL_H_
