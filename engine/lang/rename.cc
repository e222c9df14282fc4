#include "engine/lang/rename.h"

#include <utility>

namespace cleave {
namespace {

class Renamer {
 public:
  explicit Renamer(const std::map<std::string, std::string>& names)
      : names_(names) {}

  void Rename(Item& item) {
    switch (item.kind) {
      case ItemKind::kOp:
      case ItemKind::kDef:
      case ItemKind::kFn:
      case ItemKind::kOverride:
        RenameName(item.name);
        break;
      default:
        break;
    }
    for (InputDecl& input : item.inputs) Rename(input.type);
    for (AttributeDecl& attribute : item.attributes) {
      Rename(attribute.list_length);
      Rename(attribute.default_value);
    }
    for (ResultDecl& result : item.results) {
      Rename(result.type);
      Rename(result.condition);
    }
    for (NamedExpr& let : item.lets) Rename(let.value);
    for (Equation& mutated : item.mutates) Rename(mutated);
    for (ErrorClause& error : item.errors) Rename(error.condition);
    for (DomainClause& domain : item.domains) Rename(domain.condition);
    Rename(item.spec);
    for (Law& law : item.laws) {
      Rename(law.relation);
      Rename(law.condition);
    }
    for (SpecialClause& special : item.specials) {
      Rename(special.equation);
      Rename(special.condition);
    }
    for (ApproximationClause& approximation : item.approximations) {
      Rename(approximation.bound);
      Rename(approximation.condition);
      Rename(approximation.on);
    }
    for (AccuracyClause& accuracy : item.accuracies) {
      Rename(accuracy.bound);
      Rename(accuracy.condition);
      Rename(accuracy.eps_of);
      Rename(accuracy.on);
    }
    Rename(item.body);
    Rename(item.left);
    Rename(item.right);
    Rename(item.within);
  }

 private:
  void RenameName(std::string& name) {
    const auto it = names_.find(name);
    if (it != names_.end()) name = it->second;
  }

  void Rename(TypeExpr& type) {
    Rename(type.dtype);
    for (AxisExpr& axis : type.axes) {
      Rename(axis.size);
      Rename(axis.bound);
    }
  }

  void Rename(std::vector<InputRange>& ranges) {
    for (InputRange& on : ranges) {
      Rename(on.low);
      Rename(on.high);
    }
  }

  void Rename(Equation& equation) {
    for (Binder& index : equation.indices) Rename(index.bound);
    Rename(equation.value);
  }

  // Trees are shared and constant: what changes is made anew.
  void Rename(ExprPtr& shared) {
    if (shared == nullptr) return;
    Expr e = *shared;
    if (e.kind == ExprKind::kCall) RenameName(e.text);
    if (e.kind == ExprKind::kTransformCall) RenameName(e.callee);
    for (ExprPtr& child : e.children) Rename(child);
    for (NamedExpr& named : e.named) Rename(named.value);
    for (ExprPtr& second : e.seconds) Rename(second);
    for (NamedExpr& named : e.named_seconds) Rename(named.value);
    for (Equation& field : e.fields) Rename(field);
    for (Binder& binder : e.binders) Rename(binder.bound);
    Rename(e.body);
    Rename(e.else_body);
    shared = std::make_shared<const Expr>(std::move(e));
  }

  void Rename(BodyPtr& shared) {
    if (shared == nullptr) return;
    Body body = *shared;
    for (Statement& statement : body.statements) Rename(statement.equation);
    shared = std::make_shared<const Body>(std::move(body));
  }

  const std::map<std::string, std::string>& names_;
};

}  // namespace

void RenameItems(const std::map<std::string, std::string>& names,
                 RuleFile* file) {
  Renamer renamer(names);
  for (RuleFile::Entry& entry : file->entries) {
    if (entry.item.has_value()) renamer.Rename(*entry.item);
  }
}

}  // namespace cleave
