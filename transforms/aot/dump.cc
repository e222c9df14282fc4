#include "transforms/aot/dump.h"

#include <sys/types.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/files/file.h"
#include "engine/ir/graph_json.h"
#include "engine/ir/graph_text.h"
#include "engine/runtime/memory_file.h"
#include "engine/runtime/program.h"
#include "ops/status_macros.h"

namespace cleave::aot {
namespace {

// Graphviz' picture of a digraph.
absl::StatusOr<std::string> Svg(const std::string& digraph) {
  const std::string program = FindProgram("dot");
  if (program.empty()) {
    return absl::FailedPreconditionError(
        "drawing a graph needs `dot`, of Debian's package graphviz");
  }
  CLEAVE_ASSIGN_OR_RETURN(const MemoryFile input, MemoryFile::Create(digraph));
  CLEAVE_ASSIGN_OR_RETURN(const MemoryFile output, MemoryFile::Create(""));
  CLEAVE_ASSIGN_OR_RETURN(const MemoryFile messages, MemoryFile::Create(""));
  CLEAVE_ASSIGN_OR_RETURN(
      const pid_t child,
      StartProgram({program, "-Tsvg", "-o", ChildFile(1), ChildFile(0)},
                   {input.descriptor(), output.descriptor()},
                   messages.descriptor()));
  const std::string failure = WaitForProgram(child);
  if (!failure.empty()) {
    CLEAVE_ASSIGN_OR_RETURN(const std::string said, messages.Read());
    return absl::InternalError(absl::StrCat(program, " ", failure, ": ",
                                            absl::StripAsciiWhitespace(said)));
  }
  return output.Read();
}

}  // namespace

absl::Status DumpGraph(const Graph& graph, const DotOptions& options,
                       const std::string& stem, bool picture) {
  CLEAVE_RETURN_IF_ERROR(
      WriteFileAtomically(absl::StrCat(stem, ".txt"), PrintGraph(graph)));
  CLEAVE_RETURN_IF_ERROR(
      WriteFileAtomically(absl::StrCat(stem, ".json"), GraphToJson(graph)));
  const std::string digraph = GraphToDot(graph, options);
  CLEAVE_RETURN_IF_ERROR(
      WriteFileAtomically(absl::StrCat(stem, ".dot"), digraph));
  if (!picture) return absl::OkStatus();
  CLEAVE_ASSIGN_OR_RETURN(const std::string svg, Svg(digraph));
  return WriteFileAtomically(absl::StrCat(stem, ".svg"), svg);
}

absl::Status DumpPartition(const Partition& partition, const std::string& title,
                           const std::string& folder, bool picture) {
  CLEAVE_RETURN_IF_ERROR(MakeFolder(folder));
  DotOptions options;
  const std::vector<NamedValue>& outputs = partition.forward.outputs();
  for (size_t i = outputs.size() - partition.saved; i < outputs.size(); ++i) {
    options.emphasized.insert(outputs[i].name);
  }
  options.title = absl::StrCat(title, ": forward");
  CLEAVE_RETURN_IF_ERROR(DumpGraph(partition.forward, options,
                                   absl::StrCat(folder, "/forward"), picture));
  options.title = absl::StrCat(title, ": backward");
  return DumpGraph(partition.backward, options,
                   absl::StrCat(folder, "/backward"), picture);
}

}  // namespace cleave::aot
