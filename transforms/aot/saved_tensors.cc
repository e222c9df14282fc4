#include "transforms/aot/saved_tensors.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/ir/graph.h"
#include "ops/dtype.h"
#include "ops/status_macros.h"

namespace cleave::aot {
namespace {

std::string Origin(const Graph& graph, Value v) {
  Value node = v;
  if (graph.node(v).op == ToOpId(Primitive::kResult)) {
    node = graph.operands(v)[0];
  }
  std::string what(graph.context()->op_name(graph.node(node).op));
  const ProvenanceId id = graph.node(node).provenance;
  if (id == 0) return what;
  const Provenance& provenance = graph.context()->provenance(id);
  absl::StrAppend(&what, " of ", provenance.rule);
  if (!provenance.file.empty()) {
    absl::StrAppend(&what, ", ", provenance.file, ":", provenance.line);
  }
  return what;
}

}  // namespace

absl::StatusOr<std::vector<SavedTensor>> SavedTensors(
    const Partition& partition) {
  const Graph& forward = partition.forward;
  const size_t outputs = forward.outputs().size() - partition.saved;
  const auto named = [](const std::vector<NamedValue>& list, size_t end,
                        Value v) -> const NamedValue* {
    const auto last = list.begin() + end;
    const auto it = std::find_if(
        list.begin(), last, [&](const NamedValue& n) { return n.value == v; });
    return it == last ? nullptr : &*it;
  };
  std::vector<SavedTensor> saved;
  for (size_t i = outputs; i < forward.outputs().size(); ++i) {
    const NamedValue& output = forward.outputs()[i];
    SavedTensor tensor;
    tensor.name = output.name;
    tensor.type = forward.type(output.value);
    CLEAVE_ASSIGN_OR_RETURN(const Dim elements, NumElements(tensor.type.shape));
    CLEAVE_ASSIGN_OR_RETURN(
        tensor.bytes,
        Dim::CheckedMul(elements, Dim(ByteSize(tensor.type.dtype))));
    if (const NamedValue* input =
            named(forward.inputs(), forward.inputs().size(), output.value)) {
      tensor.what = absl::StrCat("the input ", input->name);
      tensor.free = true;
    } else if (const NamedValue* other =
                   named(forward.outputs(), outputs, output.value)) {
      tensor.what = absl::StrCat("the output ", other->name);
      tensor.free = true;
    } else {
      tensor.what = Origin(forward, output.value);
    }
    saved.push_back(std::move(tensor));
  }
  return saved;
}

absl::StatusOr<Dim> SavedBytes(const std::vector<SavedTensor>& saved) {
  Dim bytes;
  for (const SavedTensor& tensor : saved) {
    if (tensor.free) continue;
    CLEAVE_ASSIGN_OR_RETURN(bytes, Dim::CheckedAdd(bytes, tensor.bytes));
  }
  return bytes;
}

absl::StatusOr<std::string> PrintSavedTensors(const Partition& partition) {
  CLEAVE_ASSIGN_OR_RETURN(const std::vector<SavedTensor> saved,
                          SavedTensors(partition));
  CLEAVE_ASSIGN_OR_RETURN(const Dim bytes, SavedBytes(saved));
  const int64_t made =
      std::count_if(saved.begin(), saved.end(),
                    [](const SavedTensor& tensor) { return !tensor.free; });
  std::string out = absl::StrCat("saved for the backward: ", saved.size(),
                                 saved.size() == 1 ? " tensor" : " tensors",
                                 ", ", bytes.ToString(), " bytes in the ", made,
                                 " that are neither inputs nor outputs\n");
  size_t name_width = 0;
  size_t type_width = 0;
  size_t bytes_width = 0;
  for (const SavedTensor& tensor : saved) {
    name_width = std::max(name_width, tensor.name.size());
    type_width = std::max(type_width, tensor.type.ToString().size());
    bytes_width = std::max(bytes_width, tensor.bytes.ToString().size());
  }
  const auto padded = [](std::string text, size_t width) {
    text.resize(std::max(width, text.size()), ' ');
    return text;
  };
  for (const SavedTensor& tensor : saved) {
    absl::StrAppend(&out, "  ", padded(tensor.name, name_width), "  ",
                    padded(tensor.type.ToString(), type_width), "  ",
                    padded(tensor.bytes.ToString(), bytes_width), " bytes  ",
                    tensor.what, "\n");
  }
  return out;
}

}  // namespace cleave::aot
