// Regions: graphs that a node owns. Internal to transforms.

#ifndef CLEAVE_TRANSFORMS_REGION_H_
#define CLEAVE_TRANSFORMS_REGION_H_

#include <memory>
#include <utility>

#include "engine/ir/graph.h"
#include "engine/ir/graph_text.h"
#include "ops/static_value.h"

namespace cleave {

inline Region ToRegion(Graph graph) {
  auto shared = std::make_shared<const Graph>(std::move(graph));
  return Region{shared, PrintGraph(*shared)};
}

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_REGION_H_
