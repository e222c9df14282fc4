// ParseTypedGraph: ParseGraph for graphs that a pass has left, as they are.
//
//   Graph same = *ParseTypedGraph(PrintGraph(kernel), context);
//
// Passes behind the transforms give extents names of their own: `d2` for `d0 +
// d1`. Their graphs' types are no longer those that inference gives, which
// ParseGraph asks for.

#ifndef CLEAVE_ENGINE_IR_PARSE_TYPED_GRAPH_H_
#define CLEAVE_ENGINE_IR_PARSE_TYPED_GRAPH_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/ir/graph.h"

namespace cleave {

// As ParseGraph (graph_text.h), but that the types are those written, whatever
// the primitives are, and the guards those written alone: the text is to be
// PrintGraph's.
absl::StatusOr<Graph> ParseTypedGraph(absl::string_view text,
                                      std::shared_ptr<Context> context);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_IR_PARSE_TYPED_GRAPH_H_
