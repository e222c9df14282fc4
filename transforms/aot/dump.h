// DumpGraph and DumpPartition: graphs as files of text, JSON, and pictures.

#ifndef CLEAVE_TRANSFORMS_AOT_DUMP_H_
#define CLEAVE_TRANSFORMS_AOT_DUMP_H_

#include <string>

#include "absl/status/status.h"
#include "engine/ir/graph.h"
#include "engine/ir/graph_dot.h"
#include "transforms/partition/partition.h"

namespace cleave::aot {

// Writes `<stem>.txt` (which ParseGraph reads), `.json`, `.dot` and, with
// `picture`, `.svg`. A picture needs Graphviz' `dot` on $PATH:
// FailedPrecondition if there is none. Else errors of the files.
absl::Status DumpGraph(const Graph& graph, const DotOptions& options,
                       const std::string& stem, bool picture);

// `forward.*` and `backward.*` in `folder`, which is made if it is not there;
// what is saved stands out.
absl::Status DumpPartition(const Partition& partition, const std::string& title,
                           const std::string& folder, bool picture = true);

}  // namespace cleave::aot

#endif  // CLEAVE_TRANSFORMS_AOT_DUMP_H_
