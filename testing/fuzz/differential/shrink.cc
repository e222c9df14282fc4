#include "testing/fuzz/differential/shrink.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/lang/ast.h"
#include "engine/lang/parser.h"
#include "ops/check.h"

namespace cleave::fuzz {
namespace {

// A deep copy that may be changed: `slots` are its expressions, outer before
// inner ones, those of types left out.
class Copy {
 public:
  explicit Copy(const Item& item) : item_(item) {
    if (item_.body != nullptr) item_.body = CopyOf(item_.body);
  }

  Item& item() { return item_; }
  std::vector<ExprPtr*>& slots() { return slots_; }
  std::vector<Body*>& bodies() { return bodies_; }

 private:
  BodyPtr CopyOf(const BodyPtr& body) {
    auto made = std::make_shared<Body>(*body);
    bodies_.push_back(made.get());
    for (Statement& s : made->statements) Visit(s.equation);
    return made;
  }

  void Visit(Equation& equation) {
    for (Binder& binder : equation.indices) Visit(binder.bound);
    Visit(equation.value);
  }

  void Visit(ExprPtr& slot) {
    if (slot == nullptr) return;
    auto made = std::make_shared<Expr>(*slot);
    slot = made;
    slots_.push_back(&slot);
    for (ExprPtr& child : made->children) Visit(child);
    for (NamedExpr& named : made->named) Visit(named.value);
    for (ExprPtr& second : made->seconds) Visit(second);
    for (Equation& field : made->fields) Visit(field);
    for (Binder& binder : made->binders) Visit(binder.bound);
    if (made->body != nullptr) made->body = CopyOf(made->body);
    if (made->else_body != nullptr) made->else_body = CopyOf(made->else_body);
  }

  Item item_;
  std::vector<ExprPtr*> slots_;
  std::vector<Body*> bodies_;
};

ExprPtr NumberExpr(const std::string& text) {
  auto number = std::make_shared<Expr>();
  number->kind = ExprKind::kNumber;
  number->text = text;
  return number;
}

class Shrinker {
 public:
  Shrinker(FuzzCase one, int trials,
           absl::FunctionRef<bool(const FuzzCase&)> fails)
      : one_(std::move(one)), trials_(trials), fails_(fails) {}

  FuzzCase Run() {
    // One point, if one is enough.
    for (const Point& point : one_.points) {
      if (one_.points.size() > 1 && Try({one_.rules, {point}})) break;
    }
    bool smaller = true;
    while (smaller && trials_ > 0) {
      smaller = DropResults() || DropStatements() || DropInputs();
      smaller |= Simplify();
      smaller |= ShrinkExtents();
      smaller |= ShrinkValues();
    }
    return one_;
  }

 private:
  bool Try(const FuzzCase& trial) {
    if (trials_-- <= 0) return false;
    if (!fails_(trial)) return false;
    one_ = trial;
    return true;
  }

  // The file with one item changed by `change`, which may refuse.
  template <typename Change>
  bool TryChange(const Change& change) {
    const Source source("case", one_.rules);
    const ParseResult parsed = ParseRules(source);
    if (!parsed.ok()) return false;
    RuleFile file = parsed.file;
    for (RuleFile::Entry& entry : file.entries) {
      if (!entry.item.has_value() || entry.item->name != "f") continue;
      Copy copy(*entry.item);
      if (!change(copy)) return false;
      entry.item = copy.item();
    }
    const std::string text = PrintRuleFile(file);
    if (text == one_.rules) return false;
    FuzzCase trial = one_;
    trial.rules = text;
    return Try(trial);
  }

  static Expr* Record(Copy& copy) {
    for (Statement& s : const_cast<Body&>(*copy.item().body).statements) {
      if (s.kind != StatementKind::kResult || s.equation.value == nullptr) {
        continue;
      }
      if (s.equation.value->kind == ExprKind::kRecord) {
        return const_cast<Expr*>(s.equation.value.get());
      }
    }
    return nullptr;
  }

  bool DropResults() {
    bool any = false;
    for (size_t i = 0; i < 4; ++i) {
      while (TryChange([&](Copy& copy) {
        Expr* const record = Record(copy);
        if (record == nullptr || record->fields.size() < 2 ||
            i >= record->fields.size()) {
          return false;
        }
        record->fields.erase(record->fields.begin() + i);
        copy.item().results.erase(copy.item().results.begin() + i);
        return true;
      })) {
        any = true;
      }
    }
    return any;
  }

  bool DropStatements() {
    bool any = false;
    for (size_t i = 0; i < 12; ++i) {
      while (TryChange([&](Copy& copy) {
        auto& statements = const_cast<Body&>(*copy.item().body).statements;
        if (i + 1 >= statements.size()) return false;
        statements.erase(statements.begin() + i);
        return true;
      })) {
        any = true;
      }
    }
    return any;
  }

  bool DropInputs() {
    bool any = false;
    for (size_t i = 0; i < one_.points[0].size();) {
      const FuzzCase before = one_;
      FuzzCase trial = one_;
      for (Point& point : trial.points) point.erase(point.begin() + i);
      one_.points = trial.points;
      const bool dropped = TryChange([&](Copy& copy) {
        copy.item().inputs.erase(copy.item().inputs.begin() + i);
        return !copy.item().inputs.empty();
      });
      if (dropped) {
        any = true;
      } else {
        one_ = before;
        ++i;
      }
    }
    return any;
  }

  // Each expression by one of its parts, or a number.
  bool Simplify() {
    bool any = false;
    size_t slot = 0;
    size_t count = 1;
    while (slot < count && trials_ > 0) {
      bool changed = false;
      for (int choice = 0; choice < 8 && !changed; ++choice) {
        changed = TryChange([&](Copy& copy) {
          count = copy.slots().size();
          if (slot >= count) return false;
          return Replace(*copy.slots()[slot], choice);
        });
      }
      any |= changed;
      if (!changed) ++slot;
    }
    return any;
  }

  static bool Replace(ExprPtr& slot, int choice) {
    const Expr& e = *slot;
    if (e.kind == ExprKind::kRecord || e.kind == ExprKind::kName) return false;
    if (choice < 2) {
      if (e.kind == ExprKind::kNumber && (e.text == "0" || e.text == "1")) {
        return false;
      }
      slot = NumberExpr(choice == 0 ? "0" : "1");
      return true;
    }
    if (choice == 7) {  // a reduction without its condition
      if (e.kind != ExprKind::kReduce || e.children.size() < 2) return false;
      auto made = std::make_shared<Expr>(e);
      made->children.resize(1);
      slot = made;
      return true;
    }
    if (e.kind == ExprKind::kIndex) return false;  // its parts are an array
    const size_t child = choice - 2;
    if (child >= e.children.size()) return false;
    const ExprPtr part = e.children[child];
    slot = part;
    return true;
  }

  // The value of each dimension variable that stands alone on an axis.
  bool ShrinkExtents() {
    const ParseResult parsed = ParseRules(Source("case", one_.rules));
    if (!parsed.ok()) return false;
    const Item* item = nullptr;
    for (const RuleFile::Entry& entry : parsed.file.entries) {
      if (entry.item.has_value() && entry.item->name == "f") {
        item = &*entry.item;
      }
    }
    if (item == nullptr) return false;
    std::map<std::string, int64_t> dims;
    const Point& point = one_.points[0];
    for (size_t i = 0; i < item->inputs.size() && i < point.size(); ++i) {
      const auto& axes = item->inputs[i].type.axes;
      for (size_t d = 0; d < axes.size(); ++d) {
        if (axes[d].size->kind == ExprKind::kName) {
          dims[axes[d].size->text] = point[i].second.shape()[d];
        }
      }
    }
    bool any = false;
    for (const auto& [name, value] : dims) {
      for (const int64_t smaller :
           {int64_t{0}, int64_t{1}, value / 2, value - 1}) {
        if (smaller < 0 || smaller >= value) continue;
        FuzzCase trial = one_;
        for (Point& p : trial.points) {
          for (size_t i = 0; i < p.size(); ++i) {
            std::vector<int64_t> shape = p[i].second.shape();
            const auto& axes = item->inputs[i].type.axes;
            for (size_t d = 0; d < axes.size(); ++d) {
              if (axes[d].size->kind == ExprKind::kName &&
                  axes[d].size->text == name) {
                shape[d] = std::min(shape[d], smaller);
              }
            }
            p[i].second = Corner(p[i].second, shape);
          }
        }
        if (Try(trial)) {
          any = true;
          break;
        }
      }
    }
    return any;
  }

  // The elements of the leading places.
  static Tensor Corner(const Tensor& tensor,
                       const std::vector<int64_t>& shape) {
    Tensor result(tensor.dtype(), shape);
    for (int64_t i = 0; i < result.size(); ++i) {
      int64_t from = 0, stride = 1, rest = i;
      for (size_t d = shape.size(); d-- > 0;) {
        from += rest % shape[d] * stride;
        rest /= shape[d];
        stride *= tensor.shape()[d];
      }
      CopyElement(tensor, from, result, i);
    }
    return result;
  }

  static void CopyElement(const Tensor& from, int64_t at, Tensor& to,
                          int64_t i) {
    if (IsFloat(from.dtype())) {
      to.SetDouble(i, from.GetDouble(at));
    } else if (IsComplex(from.dtype())) {
      to.SetComplex(i, from.GetComplex(at));
    } else {
      to.SetInt(i, from.GetInt(at));
    }
  }

  // All of an input, then single elements, to 0 and 1.
  bool ShrinkValues() {
    bool any = false;
    for (size_t i = 0; i < one_.points[0].size(); ++i) {
      const int64_t size = one_.points[0][i].second.size();
      for (int64_t at = -1; at < std::min<int64_t>(size, 40); ++at) {
        for (const int value : {0, 1}) {
          FuzzCase trial = one_;
          Tensor& old = trial.points[0][i].second;
          Tensor made(old.dtype(), old.shape());
          bool same = true;
          for (int64_t e = 0; e < size; ++e) {
            CopyElement(old, e, made, e);
            if (at >= 0 && e != at) continue;
            SetNumber(made, e, value);
            same &= SameElement(made, old, e);
          }
          if (same || size == 0) break;
          old = made;
          if (Try(trial)) {
            any = true;
            break;
          }
        }
      }
    }
    return any;
  }

  static void SetNumber(Tensor& tensor, int64_t i, int value) {
    if (IsFloat(tensor.dtype())) {
      tensor.SetDouble(i, value);
    } else if (IsComplex(tensor.dtype())) {
      tensor.SetComplex(i, value);
    } else {
      tensor.SetInt(i, value);
    }
  }

  static bool SameElement(const Tensor& a, const Tensor& b, int64_t i) {
    if (IsComplex(a.dtype())) return a.GetComplex(i) == b.GetComplex(i);
    return IsFloat(a.dtype()) ? a.GetDouble(i) == b.GetDouble(i)
                              : a.GetInt(i) == b.GetInt(i);
  }

  FuzzCase one_;
  int trials_;
  const absl::FunctionRef<bool(const FuzzCase&)> fails_;
};

}  // namespace

FuzzCase Shrink(FuzzCase one, int trials,
                absl::FunctionRef<bool(const FuzzCase&)> fails) {
  return Shrinker(std::move(one), trials, fails).Run();
}

}  // namespace cleave::fuzz
