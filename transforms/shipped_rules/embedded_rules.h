// The rule files as bytes of the program. A file that embed_rules writes as the
// program is built defines them.

#ifndef CLEAVE_TRANSFORMS_SHIPPED_RULES_EMBEDDED_RULES_H_
#define CLEAVE_TRANSFORMS_SHIPPED_RULES_EMBEDDED_RULES_H_

#include <cstddef>

namespace cleave {
namespace internal_shipped_rules {

struct EmbeddedFile {
  const char* name;  // "rules/core/activation.rules"
  const char* text;
  size_t size;
};

extern const EmbeddedFile kFiles[];
extern const size_t kFileCount;
// No mistake was found in them.
extern const bool kChecked;

}  // namespace internal_shipped_rules
}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_SHIPPED_RULES_EMBEDDED_RULES_H_
