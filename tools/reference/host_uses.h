// HostUses: the operators of PyTorch and ONNX that ops of the core stand
// behind.
//
//   const HostUses uses(files);
//   uses.Of("gelu")->names   // aten.gelu, onnx.Gelu: a call of it, no more
//   uses.Of("gelu")->callers // aten.gelu_backward: calls it among others

#ifndef CLEAVE_TOOLS_REFERENCE_HOST_USES_H_
#define CLEAVE_TOOLS_REFERENCE_HOST_USES_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "engine/lang/ast.h"
#include "engine/rules/rule_set.h"

namespace cleave {

struct HostUse {
  // Host ops whose result is one call of the op.
  std::set<std::string> names;
  // Others that call it, by defs or not.
  std::set<std::string> callers;
};

class HostUses {
 public:
  // Texts that parse; what does not is left out. O(their length).
  explicit HostUses(const std::vector<NamedSource>& sources);

  // Null where no host op uses it.
  const HostUse* Of(absl::string_view op) const;

 private:
  std::map<std::string, HostUse, std::less<>> uses_;
};

// The call that the body's one result is; null for another result.
const Expr* CallThatIsTheResult(const Item& item);

// Names of ops and defs that the body of an item calls.
std::set<std::string> CalleesOf(const Item& item);

}  // namespace cleave

#endif  // CLEAVE_TOOLS_REFERENCE_HOST_USES_H_
