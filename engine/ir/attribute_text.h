// Attributes in the notation of graph text, for callers who name an op and its
// attributes.
//
//   ParseAttributes("axis: -1, beta: 0.5, dtype: f32", context);

#ifndef CLEAVE_ENGINE_IR_ATTRIBUTE_TEXT_H_
#define CLEAVE_ENGINE_IR_ATTRIBUTE_TEXT_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/ir/context.h"
#include "ops/static_value.h"

namespace cleave {

// Reads what Attributes::ToString prints (graph_text.h has the notation); blank
// text is no attributes. Regions are of `context`. InvalidArgument with the
// column for malformed text, and for a name that is given twice.
absl::StatusOr<Attributes> ParseAttributes(absl::string_view text,
                                           std::shared_ptr<Context> context);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_ATTRIBUTE_TEXT_H_
