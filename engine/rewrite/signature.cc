#include "engine/rewrite/signature.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/rewrite/elaborator.h"
#include "ops/check.h"
#include "ops/status_macros.h"

namespace cleave {
namespace {

using Kind = RuleValue::Kind;

// Binds one call, in this order: attributes as given; axes, normalised; sizes,
// packs and dtypes of inputs; the other attributes with their defaults; lets;
// errors; results.
class Binder_ {
 public:
  Binder_(const Callable& callable, const GivenArguments& arguments,
          const BindOptions& options, Elaborator& elaborator)
      : callable_(callable),
        arguments_(arguments),
        options_(options),
        elaborator_(elaborator) {}

  absl::StatusOr<Binding> Run() {
    CLEAVE_RETURN_IF_ERROR(Place());
    CLEAVE_RETURN_IF_ERROR(BindSizeAttributes());
    CLEAVE_RETURN_IF_ERROR(BindDTypes());
    CLEAVE_RETURN_IF_ERROR(BindAxes());
    CLEAVE_RETURN_IF_ERROR(BindShapes());
    CLEAVE_RETURN_IF_ERROR(BindAttributes());
    CLEAVE_RETURN_IF_ERROR(BindInputs());
    for (const NamedExpr& let : callable_.item->lets) {
      absl::StatusOr<RuleValue> value =
          elaborator_.Eval(*let.value, binding_.scope);
      if (!value.ok()) {
        // What is declared as an error may be why.
        if (options_.check_errors) CLEAVE_RETURN_IF_ERROR(CheckErrors(true));
        return value.status();
      }
      binding_.scope.Set(let.name, *std::move(value));
    }
    if (options_.check_errors) {
      CLEAVE_RETURN_IF_ERROR(CheckWhere(callable_, binding_));
      CLEAVE_RETURN_IF_ERROR(CheckErrors(false));
    }
    if (callable_.has_result_types) CLEAVE_RETURN_IF_ERROR(BindResults());
    return std::move(binding_);
  }

 private:
  absl::Status Wrong(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("`", callable_.name, "`: ", what));
  }

  // Matches arguments to declared names.
  absl::Status Place() {
    if (arguments_.positional.size() > callable_.positional.size()) {
      return Wrong(absl::StrCat("takes ", callable_.positional.size(),
                                " arguments by position, not ",
                                arguments_.positional.size()));
    }
    for (size_t i = 0; i < arguments_.positional.size(); ++i) {
      given_[callable_.positional[i]] = arguments_.positional[i];
    }
    for (const auto& [name, value] : arguments_.named) {
      if (!IsDeclared(name) && !absl::StartsWith(name, kNewPrefix)) {
        std::vector<std::string> names;
        for (const InputDecl& input : callable_.inputs) {
          names.push_back(input.name);
        }
        for (const AttributeDecl& attribute : callable_.attributes) {
          names.push_back(attribute.name);
        }
        const std::string closest = ClosestName(name, names);
        return Wrong(absl::StrCat(
            "has no argument `", name, "`",
            closest.empty() ? ""
                            : absl::StrCat("; did you mean `", closest, "`?")));
      }
      if (given_.count(name) > 0) {
        return Wrong(absl::StrCat("argument `", name, "` is given twice"));
      }
      given_[name] = value;
    }
    for (const InputDecl& input : callable_.inputs) {
      RuleValue value;
      const auto it = given_.find(input.name);
      if (it != given_.end()) value = it->second;
      if (value.Is(Kind::kAbsent) && !input.optional &&
          input.variadic_index.empty()) {
        return Wrong(absl::StrCat("argument `", input.name, "` is missing"));
      }
      CLEAVE_ASSIGN_OR_RETURN(value, AsInput(input, value));
      binding_.inputs.push_back(std::move(value));
    }
    return absl::OkStatus();
  }

  bool IsDeclared(const std::string& name) const {
    for (const InputDecl& input : callable_.inputs) {
      if (input.name == name) return true;
    }
    for (const AttributeDecl& attribute : callable_.attributes) {
      if (attribute.name == name) return true;
    }
    return false;
  }

  absl::StatusOr<RuleValue> AsInput(const InputDecl& input,
                                    const RuleValue& value) {
    const auto tensor = [&](const RuleValue& v) -> absl::StatusOr<RuleValue> {
      if (v.Is(Kind::kAbsent)) {
        if (input.optional) return v;
        return Wrong(
            absl::StrCat("an element of `", input.name, "` is absent"));
      }
      if (!v.IsDynamic() && !v.IsNumber() && !v.IsTruth()) {
        return Wrong(absl::StrCat("argument `", input.name,
                                  "` must be a tensor, not ", v.KindName()));
      }
      CLEAVE_ASSIGN_OR_RETURN(TermPtr term, elaborator_.ToTerm(v, input.range));
      RuleValue result(std::move(term));
      return input.optional ? std::move(result).Optional() : result;
    };
    if (input.is_static) {
      if (value.IsDynamic()) {
        return Wrong(absl::StrCat("argument `", input.name,
                                  "` must be known when the rule is expanded"));
      }
      RuleValue copy = value;
      return input.optional ? std::move(copy).Optional() : copy;
    }
    if (input.variadic_index.empty()) return tensor(value);
    RuleList list;
    if (value.Is(Kind::kList)) {
      for (const RuleValue& element : value.AsList()) {
        CLEAVE_ASSIGN_OR_RETURN(RuleValue x, tensor(element));
        list.push_back(std::move(x));
      }
    } else if (!value.Is(Kind::kAbsent)) {
      return Wrong(absl::StrCat("argument `", input.name,
                                "` must be a list of tensors"));
    }
    return RuleValue(std::move(list));
  }

  const RuleValue* Given(const std::string& name) const {
    const auto it = given_.find(name);
    return it == given_.end() || it->second.Is(Kind::kAbsent) ? nullptr
                                                              : &it->second;
  }

  // Attributes of type dim and dim[]: a size or a pack of that name.
  absl::Status BindSizeAttributes() {
    for (const AttributeDecl& attribute : callable_.attributes) {
      if (attribute.type != "dim") continue;
      CLEAVE_RETURN_IF_ERROR(BindAttribute(attribute));
    }
    return absl::OkStatus();
  }

  // The tensors of an input, with their place in a variadic one.
  static std::vector<std::pair<int, TermPtr>> Tensors(const RuleValue& value) {
    std::vector<std::pair<int, TermPtr>> tensors;
    if (value.Is(Kind::kTerm)) tensors.emplace_back(-1, value.AsTerm());
    if (value.Is(Kind::kList)) {
      for (size_t i = 0; i < value.AsList().size(); ++i) {
        if (value.AsList()[i].Is(Kind::kTerm)) {
          tensors.emplace_back(static_cast<int>(i), value.AsList()[i].AsTerm());
        }
      }
    }
    return tensors;
  }

  // Replaces a tensor of an input.
  void Replace(size_t input, int place, TermPtr term) {
    RuleValue& value = binding_.inputs[input];
    const bool optional = callable_.inputs[input].optional;
    RuleValue replaced(std::move(term));
    if (optional) replaced = std::move(replaced).Optional();
    if (place < 0) {
      value = std::move(replaced);
      return;
    }
    RuleList list = value.AsList();
    list[place] = std::move(replaced);
    value = RuleValue(std::move(list));
  }

  bool IsDTypeVariable(const std::string& name) const {
    for (const WhereClause& where : callable_.item->where) {
      if (where.variable == name) return true;
    }
    return !ParseDType(name).ok();
  }

  // Dtype variables: one per name, unified with the operands'.
  absl::Status BindDTypes() {
    for (const WhereClause& where : callable_.item->where) {
      bool is_attribute = false;
      for (const AttributeDecl& attribute : callable_.attributes) {
        is_attribute = is_attribute || attribute.name == where.variable;
      }
      if (!is_attribute) {
        binding_.scope.Set(where.variable, DTypeVariable::Open());
      }
    }
    for (size_t i = 0; i < callable_.inputs.size(); ++i) {
      const InputDecl& input = callable_.inputs[i];
      if (input.is_static || input.type.dtype == nullptr) continue;
      const Expr& dtype = *input.type.dtype;
      if (dtype.kind == ExprKind::kName && IsDTypeVariable(dtype.text) &&
          binding_.scope.Find(dtype.text) == nullptr) {
        binding_.scope.Set(dtype.text, DTypeVariable::Open());
      }
      if (dtype.kind != ExprKind::kName) continue;  // after the others
      CLEAVE_RETURN_IF_ERROR(UnifyInput(i));
    }
    for (size_t i = 0; i < callable_.inputs.size(); ++i) {
      const InputDecl& input = callable_.inputs[i];
      if (!input.is_static && input.type.dtype != nullptr &&
          input.type.dtype->kind != ExprKind::kName) {
        CLEAVE_RETURN_IF_ERROR(UnifyInput(i));
      }
    }
    return absl::OkStatus();
  }

  absl::Status UnifyInput(size_t i) {
    const InputDecl& input = callable_.inputs[i];
    CLEAVE_ASSIGN_OR_RETURN(
        const DTypePtr wanted,
        elaborator_.EvalDType(*input.type.dtype, binding_.scope));
    for (const auto& [place, tensor] : Tensors(binding_.inputs[i])) {
      if (DTypeVariable::Unify(wanted, tensor->dtype)) continue;
      const DType is = *tensor->dtype->dtype();
      const DType want = *wanted->dtype();
      // Integers widen where an i64 is wanted.
      if (want == DType::kI64 && IsInt(is)) {
        CLEAVE_ASSIGN_OR_RETURN(TermPtr wide,
                                elaborator_.terms().Convert(tensor, wanted));
        Replace(i, place, std::move(wide));
        continue;
      }
      return Wrong(absl::StrCat("argument `", input.name, "` is ",
                                DTypeName(is), ", not ", DTypeName(want)));
    }
    return absl::OkStatus();
  }

  // The rank of an input, -1 if it is absent.
  int RankOf(const std::string& name) const {
    for (size_t i = 0; i < callable_.inputs.size(); ++i) {
      if (callable_.inputs[i].name != name) continue;
      const auto tensors = Tensors(binding_.inputs[i]);
      if (tensors.empty()) return -1;
      return static_cast<int>(tensors[0].second->shape.size());
    }
    return -1;
  }

  // Axis attributes, normalised: they split the packs of inputs.
  absl::Status BindAxes() {
    for (const AttributeDecl& attribute : callable_.attributes) {
      if (attribute.type == "axis") {
        CLEAVE_RETURN_IF_ERROR(BindAttribute(attribute));
      }
    }
    return absl::OkStatus();
  }

  absl::Status BindAttributes() {
    for (const AttributeDecl& attribute : callable_.attributes) {
      if (attribute.type != "axis" && attribute.type != "dim") {
        CLEAVE_RETURN_IF_ERROR(BindAttribute(attribute));
      }
    }
    return absl::OkStatus();
  }

  absl::Status BindAttribute(const AttributeDecl& attribute) {
    RuleValue value;
    if (const RuleValue* given = Given(attribute.name)) {
      value = *given;
    } else if (attribute.default_value != nullptr) {
      CLEAVE_ASSIGN_OR_RETURN(
          value, elaborator_.Eval(*attribute.default_value, binding_.scope));
    } else if (!attribute.optional) {
      return Wrong(absl::StrCat("attribute `", attribute.name, "` is missing"));
    }
    if (!value.Is(Kind::kAbsent)) {
      if (attribute.list || attribute.type == "axes") {
        CLEAVE_ASSIGN_OR_RETURN(value, AsList(attribute, value));
      } else {
        CLEAVE_ASSIGN_OR_RETURN(value, AsType(attribute, value));
      }
    }
    const absl::StatusOr<StaticValue> canonical = ToStatic(value);
    if (canonical.ok() && !canonical->is_none()) {
      binding_.attributes.Set(attribute.name, *canonical);
    }
    if (attribute.optional) value = std::move(value).Optional();
    binding_.scope.Set(attribute.name, std::move(value));
    return absl::OkStatus();
  }

  absl::StatusOr<RuleValue> AsList(const AttributeDecl& attribute,
                                   const RuleValue& value) {
    std::optional<int64_t> length;
    if (attribute.list_length != nullptr) {
      CLEAVE_ASSIGN_OR_RETURN(
          const Dim dim,
          elaborator_.EvalDim(*attribute.list_length, binding_.scope));
      length = dim.Value();
    }
    RuleList elements;
    if (value.Is(Kind::kList)) {
      elements = value.AsList();
    } else {
      elements.assign(attribute.type == "axes" ? 1 : length.value_or(1), value);
    }
    // In a host's `int[2] stride=[]` the length says how often one value counts
    // and no more: any other list is the host's own matter.
    if (callable_.item->kind == ItemKind::kAten && elements.size() != 1) {
      length.reset();
    }
    // One value counts for all.
    if (length.has_value() && elements.size() == 1 && *length != 1) {
      elements.assign(*length, RuleValue(elements[0]));
    }
    if (length.has_value() &&
        static_cast<int64_t>(elements.size()) != *length) {
      return Wrong(absl::StrCat("attribute `", attribute.name, "` has ",
                                elements.size(), " elements, not ", *length));
    }
    RuleList list;
    for (const RuleValue& element : elements) {
      CLEAVE_ASSIGN_OR_RETURN(RuleValue x, AsType(attribute, element));
      for (const RuleValue& other : list) {
        if (attribute.type == "axes" && other.AsDim() == x.AsDim()) {
          return Wrong(absl::StrCat("axis ", x.AsDim().ToString(),
                                    " is named twice in `", attribute.name,
                                    "`"));
        }
      }
      list.push_back(std::move(x));
    }
    return RuleValue(std::move(list));
  }

  absl::StatusOr<RuleValue> AsType(const AttributeDecl& attribute,
                                   const RuleValue& value) {
    const std::string& type = attribute.type;
    const auto wrong = [&](absl::string_view wanted) {
      return Wrong(absl::StrCat("attribute `", attribute.name, "` must be ",
                                wanted, ", not ", value.KindName()));
    };
    if (type == "int" || type == "dim") {
      if (value.Is(Kind::kInt)) return value;
      if (value.Is(Kind::kBool)) return RuleValue(value.AsBool() ? 1 : 0);
      return wrong("an integer");
    }
    if (type == "real") {
      if (value.Is(Kind::kReal)) return value;
      if (std::optional<Exact> number = ToExact(value)) {
        return RuleValue(*std::move(number));
      }
      if (value.Is(Kind::kInt)) return value;  // an extent
      return wrong("a number");
    }
    if (type == "scalar") {
      if (value.IsNumber() || value.Is(Kind::kBool)) return value;
      return wrong("a number or a bool");
    }
    if (type == "bool") {
      if (value.IsTruth()) {
        if (value.Is(Kind::kBool)) return value;
        return Wrong(absl::StrCat("attribute `", attribute.name,
                                  "` rests on an unknown size"));
      }
      // Hosts give 0 and 1.
      if (value.Is(Kind::kInt) && value.AsDim().Value().has_value()) {
        return RuleValue(*value.AsDim().Value() != 0);
      }
      return wrong("a bool");
    }
    if (type == "str") {
      return value.Is(Kind::kString) ? absl::StatusOr<RuleValue>(value)
                                     : wrong("a string");
    }
    if (type == "dtype") {
      return value.Is(Kind::kDType) ? absl::StatusOr<RuleValue>(value)
                                    : wrong("a dtype");
    }
    if (type == "enum") {
      if (!value.Is(Kind::kString)) return wrong("a name");
      const std::vector<std::string>& values = attribute.enum_values;
      if (std::find(values.begin(), values.end(), value.AsString()) ==
          values.end()) {
        const std::string closest = ClosestName(value.AsString(), values);
        return Wrong(absl::StrCat(
            "attribute `", attribute.name, "` cannot be `", value.AsString(),
            "`",
            closest.empty() ? ""
                            : absl::StrCat("; did you mean `", closest, "`?")));
      }
      return value;
    }
    if (type == "axis" || type == "axes") {
      const std::optional<int64_t> axis =
          value.Is(Kind::kInt) ? value.AsDim().Value() : std::nullopt;
      if (!axis.has_value()) return wrong("a known axis");
      const int rank = RankOf(attribute.axis_of);
      if (rank < 0) return value;  // of an absent input
      const int64_t normal = *axis < 0 ? *axis + rank : *axis;
      if (normal < 0 || normal >= rank) {
        return Wrong(absl::StrCat("axis ", *axis, " of `", attribute.axis_of,
                                  "`, which has ", rank,
                                  rank == 1 ? " axis" : " axes"));
      }
      return RuleValue(Dim(normal));
    }
    return elaborator_.Fail(DiagnosticKind::kType, attribute.range,
                            absl::StrCat("`", type, "` is no type"));
  }

  // One axis of a declared type: what it wants, as far as it is bound.
  struct Wanted {
    const AxisExpr* axis;
    std::string single;          // a name to bind
    std::string pack;            // a name to bind
    std::optional<Shape> known;  // what it evaluates to
    int length = -1;
  };

  // A name, or `n[i]` of a variadic input: (name, whether it is indexed).
  std::optional<std::pair<std::string, bool>> BindableName(
      const Expr& e, const InputDecl& input) const {
    if (e.kind == ExprKind::kName) return std::make_pair(e.text, false);
    if (e.kind == ExprKind::kIndex && e.children.size() == 2 &&
        e.children[0]->kind == ExprKind::kName &&
        e.children[1]->kind == ExprKind::kName &&
        !input.variadic_index.empty() &&
        e.children[1]->text == input.variadic_index) {
      return std::make_pair(e.children[0]->text, true);
    }
    return std::nullopt;
  }

  absl::Status BindShapes() {
    struct Task {
      size_t input;
      int place;
      TermPtr tensor;
    };
    std::vector<Task> tasks;
    for (size_t i = 0; i < callable_.inputs.size(); ++i) {
      const InputDecl& input = callable_.inputs[i];
      if (input.is_static) continue;
      if (!input.type.has_shape) {
        // `key: key` is one key; a host's tensor has any shape.
        continue;
      }
      const auto tensors = Tensors(binding_.inputs[i]);
      if (!input.variadic_index.empty()) {
        PrepareIndexedNames(input, binding_.inputs[i].AsList().size());
      }
      for (const auto& [place, tensor] : tensors) {
        tasks.push_back({i, place, tensor});
      }
    }
    // Inputs whose packs are not settled wait for others.
    while (!tasks.empty()) {
      std::vector<Task> waiting;
      for (Task& task : tasks) {
        CLEAVE_ASSIGN_OR_RETURN(
            const bool done, BindShape(callable_.inputs[task.input], task.place,
                                       task.tensor->shape));
        if (!done) waiting.push_back(std::move(task));
      }
      if (waiting.size() == tasks.size()) {
        return Wrong(absl::StrCat("the sizes of `",
                                  callable_.inputs[waiting[0].input].name,
                                  "` are not determined by the arguments"));
      }
      tasks = std::move(waiting);
    }
    // Of an absent input the packs are empty.
    for (const InputDecl& input : callable_.inputs) {
      for (const AxisExpr& axis : input.type.axes) {
        if (axis.size->kind != ExprKind::kSpread) continue;
        const auto name = BindableName(*axis.size->children[0], input);
        if (name.has_value() && !name->second &&
            binding_.scope.Find(name->first) == nullptr) {
          binding_.scope.Set(name->first, RuleList{});
        }
      }
    }
    for (const auto& [name, list] : indexed_) binding_.scope.Set(name, list);
    return absl::OkStatus();
  }

  void PrepareIndexedNames(const InputDecl& input, size_t count) {
    for (const AxisExpr& axis : input.type.axes) {
      const bool pack = axis.size->kind == ExprKind::kSpread;
      const auto name =
          BindableName(pack ? *axis.size->children[0] : *axis.size, input);
      if (name.has_value() && name->second) {
        indexed_[name->first] =
            RuleList(count, pack ? RuleValue(RuleList{}) : RuleValue());
      }
    }
  }

  // False if packs are not settled yet.
  absl::StatusOr<bool> BindShape(const InputDecl& input, int place,
                                 const Shape& shape) {
    const int rank = static_cast<int>(shape.size());
    std::vector<Wanted> wanted;
    for (const AxisExpr& axis : input.type.axes) {
      Wanted w{&axis, "", "", std::nullopt, -1};
      const bool spread = axis.size->kind == ExprKind::kSpread;
      const Expr& e = spread ? *axis.size->children[0] : *axis.size;
      const auto name = BindableName(e, input);
      const bool is_indexed = name.has_value() && name->second;
      const RuleValue* bound = name.has_value() && !is_indexed
                                   ? binding_.scope.Find(name->first)
                                   : nullptr;
      if (is_indexed || (name.has_value() && bound == nullptr)) {
        (spread ? w.pack : w.single) = name->first;
        if (!spread) w.length = 1;
      } else if (spread) {
        Scope scope(&binding_.scope);
        if (!AllBound(e)) return false;
        CLEAVE_ASSIGN_OR_RETURN(w.known, elaborator_.EvalDims(e, scope));
        w.length = static_cast<int>(w.known->size());
      } else {
        w.length = 1;
        if (AllBound(e)) {
          CLEAVE_ASSIGN_OR_RETURN(const Dim dim,
                                  elaborator_.EvalDim(e, binding_.scope));
          w.known = Shape{dim};
        } else {
          return false;
        }
      }
      wanted.push_back(std::move(w));
    }
    if (!Settle(wanted, rank)) {
      if (OpenPacks(wanted) > 1) return false;
      return Wrong(absl::StrCat("argument `", input.name, "` has ", rank,
                                rank == 1 ? " axis" : " axes",
                                "; its type does not"));
    }
    int axis = 0;
    for (const Wanted& w : wanted) {
      const Shape part(shape.begin() + axis, shape.begin() + axis + w.length);
      axis += w.length;
      if (w.known.has_value()) {
        for (int d = 0; d < w.length; ++d) {
          if (!elaborator_.terms().RequireEqual(
                  (*w.known)[d], part[d],
                  absl::StrCat("`", callable_.name, "`: an axis of `",
                               input.name, "`"))) {
            return Wrong(absl::StrCat(
                "argument `", input.name, "` has shape ", ShapeToString(shape),
                "; an axis should "
                "have extent ",
                (*w.known)[d].ToString(), ", not ", part[d].ToString()));
          }
        }
        continue;
      }
      const bool is_pack = !w.pack.empty();
      const std::string& name = is_pack ? w.pack : w.single;
      RuleValue value = is_pack ? DimList(part) : RuleValue(part[0]);
      const auto indexed = indexed_.find(name);
      if (indexed != indexed_.end()) {
        indexed->second[place] = std::move(value);
        continue;
      }
      const RuleValue* bound = binding_.scope.Find(name);
      if (bound == nullptr) {
        binding_.scope.Set(name, std::move(value));
      } else if (!is_pack && !elaborator_.terms().RequireEqual(
                                 bound->AsDim(), part[0], callable_.name)) {
        return Wrong(absl::StrCat("argument `", input.name, "`: `", name,
                                  "` is ", bound->AsDim().ToString(), " and ",
                                  part[0].ToString()));
      }
    }
    return true;
  }

  bool AllBound(const Expr& e) const {
    if (e.kind == ExprKind::kName && binding_.scope.Find(e.text) == nullptr &&
        IsSizeName(e.text)) {
      return false;
    }
    for (const ExprPtr& child : e.children) {
      if (!AllBound(*child)) return false;
    }
    return true;
  }

  // Whether some input binds this name.
  bool IsSizeName(const std::string& name) const {
    for (const InputDecl& input : callable_.inputs) {
      for (const AxisExpr& axis : input.type.axes) {
        const Expr& e = axis.size->kind == ExprKind::kSpread
                            ? *axis.size->children[0]
                            : *axis.size;
        const auto bindable = BindableName(e, input);
        if (bindable.has_value() && bindable->first == name) return true;
      }
    }
    return false;
  }

  static int OpenPacks(const std::vector<Wanted>& wanted) {
    int open = 0;
    for (const Wanted& w : wanted) open += w.length < 0;
    return open;
  }

  // Finds the lengths of packs: `n@axis` says where the axis stands, so that
  // one pack on either side of it can be open.
  bool Settle(std::vector<Wanted>& wanted, int rank) const {
    int begin = 0;
    size_t first = 0;
    const auto settle = [&](size_t from, size_t to, int total) {
      int open = 0;
      int taken = 0;
      for (size_t i = from; i < to; ++i) {
        open += wanted[i].length < 0;
        taken += std::max(wanted[i].length, 0);
      }
      if (open > 1 || taken > total || (open == 0 && taken != total)) {
        return false;
      }
      for (size_t i = from; i < to; ++i) {
        if (wanted[i].length < 0) wanted[i].length = total - taken;
      }
      return true;
    };
    for (size_t i = 0; i < wanted.size(); ++i) {
      if (wanted[i].axis->at.empty()) continue;
      const RuleValue* at = binding_.scope.Find(wanted[i].axis->at);
      if (at == nullptr || !at->Is(Kind::kInt)) continue;
      const std::optional<int64_t> axis = at->AsDim().Value();
      if (!axis.has_value() || *axis < begin || *axis >= rank) return false;
      if (!settle(first, i, static_cast<int>(*axis) - begin)) return false;
      first = i + 1;
      begin = static_cast<int>(*axis) + 1;
    }
    return settle(first, wanted.size(), rank - begin);
  }

  absl::Status BindInputs() {
    for (size_t i = 0; i < callable_.inputs.size(); ++i) {
      const InputDecl& input = callable_.inputs[i];
      RuleValue& value = binding_.inputs[i];
      if (input.is_static) {
        CLEAVE_RETURN_IF_ERROR(BindStatic(input, value));
        const absl::StatusOr<StaticValue> canonical = ToStatic(value);
        if (!canonical.ok()) {
          return Wrong(
              absl::StrCat("argument `", input.name, "` is not static"));
        }
        if (!canonical->is_none()) {
          binding_.attributes.Set(input.name, *canonical);
        }
      } else if (input.type.has_shape) {
        WriteGroups(i);
      }
      binding_.scope.Set(input.name, value);
    }
    return absl::OkStatus();
  }

  // The value of a static input: a number where no axes are declared
  // (`k: i64[]`), else the list of its elements. One element may be given as
  // either.
  absl::Status BindStatic(const InputDecl& input, RuleValue& value) {
    const bool number = input.type.has_shape && input.type.axes.empty();
    if (number && value.Is(Kind::kList)) {
      if (value.AsList().size() != 1) {
        return Wrong(
            absl::StrCat("argument `", input.name, "` must be one number"));
      }
      value = RuleValue(value.AsList()[0]);
    } else if (!number && value.IsNumber()) {
      value = RuleValue(RuleList{value});
    }
    return absl::OkStatus();
  }

  // Tells index notation how the axes of a tensor were declared.
  void WriteGroups(size_t i) {
    const InputDecl& input = callable_.inputs[i];
    for (const auto& [place, tensor] : Tensors(binding_.inputs[i])) {
      std::vector<AxisGroup> groups = GroupsOf(input.type, place);
      int total = 0;
      for (const AxisGroup& group : groups) total += group.length;
      if (total != static_cast<int>(tensor->shape.size())) continue;
      Replace(i, place,
              elaborator_.terms().WithGroups(tensor, std::move(groups)));
    }
  }

  // Lengths of the packs of a declared type, now that all names are bound.
  std::vector<AxisGroup> GroupsOf(const TypeExpr& type, int place) {
    std::vector<AxisGroup> groups;
    for (const AxisExpr& axis : type.axes) {
      if (axis.size->kind != ExprKind::kSpread) {
        groups.push_back({false, 1});
        continue;
      }
      const Expr& e = *axis.size->children[0];
      std::optional<int> length;
      if (e.kind == ExprKind::kIndex && place >= 0 &&
          e.children[0]->kind == ExprKind::kName) {
        const auto it = indexed_.find(e.children[0]->text);
        if (it != indexed_.end()) {
          length = static_cast<int>(it->second[place].AsList().size());
        }
      } else if (const absl::StatusOr<Shape> dims =
                     elaborator_.EvalDims(e, binding_.scope);
                 dims.ok()) {
        length = static_cast<int>(dims->size());
      }
      if (!length.has_value()) return {};
      groups.push_back({true, *length});
    }
    return groups;
  }

  // `partial`: not all names are bound; what cannot be evaluated is left out.
  absl::Status CheckErrors(bool partial) {
    for (const ErrorClause& error : callable_.item->errors) {
      const auto truth =
          elaborator_.EvalTruth(*error.condition, binding_.scope);
      if (partial && !truth.ok()) continue;
      CLEAVE_RETURN_IF_ERROR(truth.status());
      if (const bool* known = std::get_if<bool>(&*truth)) {
        if (!*known) continue;
        absl::Status status = absl::InvalidArgumentError(
            absl::StrCat(error.kind, ": ", error.message));
        status.SetPayload(kErrorClausePayload, absl::Cord(error.kind));
        return status;
      }
      const Condition fine = Negate(std::get<Condition>(*truth));
      elaborator_.guards().push_back(
          {fine.lhs, fine.op, fine.rhs,
           absl::StrCat(error.kind, ": ", error.message)});
    }
    return absl::OkStatus();
  }

  absl::Status BindResults() {
    for (const ResultDecl& result : callable_.results) {
      if (result.condition != nullptr) {
        CLEAVE_ASSIGN_OR_RETURN(
            const bool present,
            elaborator_.EvalCondition(*result.condition, binding_.scope,
                                      "a result is there by this size"));
        if (!present) {
          binding_.results.push_back(std::nullopt);
          continue;
        }
      }
      TermType type;
      CLEAVE_ASSIGN_OR_RETURN(
          type.dtype,
          elaborator_.EvalDType(*result.type.dtype, binding_.scope));
      for (const AxisExpr& axis : result.type.axes) {
        if (axis.is_new) {
          CLEAVE_ASSIGN_OR_RETURN(
              const Dim bound,
              elaborator_.EvalDim(*axis.bound, binding_.scope));
          const std::string& name = axis.size->text;
          const RuleValue* size = binding_.scope.Find(name);
          if (size == nullptr) {
            Dim fresh =
                Dim::Variable(absl::StrCat(options_.fresh_prefix, ".", name));
            if (const RuleValue* given =
                    Given(absl::StrCat(kNewPrefix, name))) {
              fresh = given->AsDim();
            }
            binding_.fresh.emplace_back(name, fresh);
            binding_.scope.Set(name, fresh);
            elaborator_.guards().push_back(
                {fresh, CompareOp::kLe, bound,
                 absl::StrCat("`", callable_.name, "`: the extent `", name,
                              "` is bounded")});
            type.shape.push_back(fresh);
          } else {
            type.shape.push_back(size->AsDim());
          }
          type.groups.push_back({false, 1});
        } else if (axis.size->kind == ExprKind::kSpread) {
          CLEAVE_ASSIGN_OR_RETURN(
              const Shape dims,
              elaborator_.EvalDims(*axis.size->children[0], binding_.scope));
          type.shape.insert(type.shape.end(), dims.begin(), dims.end());
          type.groups.push_back({true, static_cast<int>(dims.size())});
        } else {
          CLEAVE_ASSIGN_OR_RETURN(
              const Dim dim, elaborator_.EvalDim(*axis.size, binding_.scope));
          type.shape.push_back(dim);
          type.groups.push_back({false, 1});
        }
      }
      binding_.results.push_back(std::move(type));
    }
    return absl::OkStatus();
  }

  const Callable& callable_;
  const GivenArguments& arguments_;
  const BindOptions& options_;
  Elaborator& elaborator_;
  Binding binding_;
  std::map<std::string, RuleValue> given_;
  std::map<std::string, RuleList> indexed_;  // `n[i]`, `S[i]` of variadics
};

}  // namespace

absl::StatusOr<Binding> Bind(const Callable& callable,
                             const GivenArguments& arguments,
                             const BindOptions& options,
                             Elaborator& elaborator) {
  return Binder_(callable, arguments, options, elaborator).Run();
}

std::set<std::string> NewVariables(
    const Binding& binding,
    const std::vector<std::optional<TermType>>& results) {
  std::set<std::string> known;
  std::set<std::string> found;
  const auto collect = [](const Shape& shape, std::set<std::string>* names) {
    for (const Dim& dim : shape) {
      const std::set<std::string> variables = dim.Variables();
      names->insert(variables.begin(), variables.end());
    }
  };
  for (const RuleValue& input : binding.inputs) {
    if (input.Is(Kind::kTerm)) collect(input.AsTerm()->shape, &known);
    if (!input.Is(Kind::kList)) continue;
    for (const RuleValue& element : input.AsList()) {
      if (element.Is(Kind::kTerm)) collect(element.AsTerm()->shape, &known);
    }
  }
  for (const auto& [name, value] : binding.attributes.values()) {
    if (value.kind() == StaticValue::Kind::kInt) {
      collect({value.AsDim()}, &known);
    } else if (value.kind() == StaticValue::Kind::kList) {
      for (const StaticValue& element : value.AsList()) {
        if (element.kind() == StaticValue::Kind::kInt) {
          collect({element.AsDim()}, &known);
        }
      }
    }
  }
  for (const std::optional<TermType>& type : results) {
    if (type.has_value()) collect(type->shape, &found);
  }
  for (const std::string& name : known) found.erase(name);
  return found;
}

absl::Status CheckWhere(const Callable& callable, const Binding& binding) {
  for (const WhereClause& where : callable.item->where) {
    const RuleValue* value = binding.scope.Find(where.variable);
    if (value == nullptr || !value->Is(Kind::kDType)) continue;
    const absl::StatusOr<DTypeClass> wanted =
        ParseDTypeClass(where.dtype_class);
    if (!wanted.ok()) return wanted.status();
    const DTypePtr& variable = value->AsDType();
    if (!variable->dtype().has_value() && InClass(DType::kI64, *wanted)) {
      DTypeVariable::Unify(variable, DTypeVariable::Known(DType::kI64));
    }
    const std::optional<DType> dtype = variable->dtype();
    // A variable of absent inputs alone has no dtype.
    if (!dtype.has_value()) continue;
    if (!InClass(*dtype, *wanted)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "`", callable.name, "`: ", where.variable, " is ", DTypeName(*dtype),
          ", which is not of class ", where.dtype_class));
    }
  }
  return absl::OkStatus();
}

}  // namespace cleave
