#include "engine/codegen/rounds_of_batches.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/codegen/products_of_windows.h"
#include "engine/codegen/stored.h"
#include "engine/ir/filled_with.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/rewrite_graph.h"
#include "ops/check.h"
#include "ops/dim.h"
#include "ops/dtype.h"
#include "ops/primitive.h"
#include "ops/static_value.h"

namespace cleave {
namespace {

using Extents = std::vector<int64_t>;

std::optional<int64_t> Bytes(const TensorType& type) {
  int64_t bytes = ByteSize(type.dtype);
  for (const Dim& dim : type.shape) {
    const auto extent = dim.Value();
    if (!extent || __builtin_mul_overflow(bytes, *extent, &bytes)) {
      return std::nullopt;
    }
  }
  return bytes;
}

// The first extents of a contraction's result, which number its products;
// nullopt where not both operands have them in front.
std::optional<Extents> BatchOf(const Graph& graph, Value v) {
  if (graph.node(v).op != ToOpId(Primitive::kDotGeneral)) return std::nullopt;
  const auto batch = graph.attributes(v).GetInts("batch_a");
  std::vector<int64_t> first(batch.size());
  std::iota(first.begin(), first.end(), 0);
  if (first.empty() || batch != first ||
      graph.attributes(v).GetInts("batch_b") != first ||
      !FiniteOperands(graph, v).empty()) {
    return std::nullopt;
  }
  Extents extents;
  for (size_t d = 0; d < first.size(); ++d) {
    const auto extent = graph.type(v).shape[d].Value();
    if (!extent) return std::nullopt;
    extents.push_back(*extent);
  }
  return extents;
}

// The nodes of one batch, and what they read.
class Batch {
 public:
  Batch(const Graph& graph, Extents extents)
      : graph_(graph), extents_(std::move(extents)) {}

  int rank() const { return static_cast<int>(extents_.size()); }
  int64_t count() const {
    return std::accumulate(extents_.begin(), extents_.end(), int64_t{1},
                           std::multiplies<>());
  }

  // Whether a value has the batch in front.
  bool Leads(Value v) const {
    if (graph_.types(v).size() != 1) return false;
    const Shape& shape = graph_.type(v).shape;
    if (shape.size() < extents_.size()) return false;
    for (size_t d = 0; d < extents_.size(); ++d) {
      if (shape[d] != Dim(extents_[d])) return false;
    }
    return Bytes(graph_.type(v)).has_value();
  }

  // Whether a broadcast repeats its operand along the whole batch.
  bool IsUniform(Value v) const {
    if (graph_.node(v).op != ToOpId(Primitive::kBroadcastInDim)) return false;
    const auto axes = graph_.attributes(v).GetInts("axes");
    return std::all_of(axes.begin(), axes.end(),
                       [&](int64_t axis) { return axis >= rank(); });
  }

  // Whether a node computes each element of the batch by itself.
  bool Has(Value v) const {
    const OpId op = graph_.node(v).op;
    if (!IsPrimitive(op) || !Leads(v)) return false;
    const DType dtype = graph_.type(v).dtype;
    if (!IsFloat(dtype) && dtype != DType::kBool) return false;
    const Primitive primitive = ToPrimitive(op);
    if (primitive == Primitive::kBroadcastInDim) {
      if (FilledWith(graph_, v)) return false;
      return IsUniform(v) || KeepsBatch(v);
    }
    if (primitive == Primitive::kReshape) return Leads(graph_.operands(v)[0]);
    if (primitive == Primitive::kTranspose) return KeepsBatch(v);
    switch (ClassOf(primitive)) {
      case PrimitiveClass::kContraction:
        return BatchOf(graph_, v) == extents_;
      case PrimitiveClass::kPointwise:
        return true;
      case PrimitiveClass::kReduction: {
        const auto axes = graph_.attributes(v).GetInts("axes");
        return Leads(graph_.operands(v)[0]) &&
               std::all_of(axes.begin(), axes.end(),
                           [&](int64_t axis) { return axis >= rank(); });
      }
      default:
        return false;
    }
  }

  // A type with one axis of `count` in place of the batch.
  TensorType Round(TensorType type, int64_t count) const {
    type.shape.erase(type.shape.begin(), type.shape.begin() + rank());
    type.shape.insert(type.shape.begin(), Dim(count));
    return type;
  }

  // The attributes of a node over such values, of that type.
  Attributes RoundAttributes(Value v, const TensorType& type) const {
    Attributes attributes = graph_.attributes(v);
    const auto shift = [&](const char* name) {
      std::vector<int64_t> axes;
      for (const int64_t axis : graph_.attributes(v).GetInts(name)) {
        if (axis >= rank()) {
          axes.push_back(axis - rank() + 1);
        } else if (axis == 0) {
          axes.push_back(0);
        }
      }
      attributes.Set(name, StaticValue::Ints(axes));
    };
    switch (ToPrimitive(graph_.node(v).op)) {
      case Primitive::kDotGeneral:
        for (const char* name :
             {"batch_a", "batch_b", "contract_a", "contract_b"}) {
          shift(name);
        }
        break;
      case Primitive::kReshape:
        attributes.Set("shape", StaticValue::Dims(type.shape));
        break;
      case Primitive::kBroadcastInDim:
        attributes.Set("shape", StaticValue::Dims(type.shape));
        shift("axes");
        break;
      default:
        if (attributes.Find("axes") != nullptr) shift("axes");
    }
    return attributes;
  }

 private:
  // Whether a broadcast or a transpose leaves the batch in front.
  bool KeepsBatch(Value v) const {
    const auto axes = graph_.attributes(v).GetInts("axes");
    if (!Leads(graph_.operands(v)[0])) return false;
    for (int d = 0; d < rank(); ++d) {
      if (axes[d] != d) return false;
    }
    return true;
  }

  const Graph& graph_;
  const Extents extents_;
};

// Nodes that run in rounds together.
struct Rounds {
  std::set<Value> nodes;
  std::vector<Value> outputs;  // that others read
  int64_t matrices = 1;        // of one round
};

class Finder {
 public:
  Finder(const Graph& graph, const Batch& batch)
      : graph_(graph), batch_(batch), readers_(graph.size()) {
    for (uint32_t id = 0; id < graph.size(); ++id) {
      for (const Value operand : graph.operands(Value{id})) {
        readers_[operand.id].push_back(Value{id});
      }
    }
    for (const NamedValue& output : graph.outputs()) {
      returned_.insert(output.value);
    }
  }

  std::vector<Rounds> Find() {
    std::vector<Rounds> found;
    for (const std::set<Value>& nodes : Parts()) {
      std::optional<Rounds> rounds = RoundsOf(nodes);
      if (rounds.has_value()) found.push_back(*std::move(rounds));
    }
    return found;
  }

 private:
  // Sets of nodes that read each other, such that no value leaves a set and
  // comes back, and none is repeated along the whole batch within its set: the
  // axes that it has in front, should they have these extents, are others.
  std::vector<std::set<Value>> Parts() const {
    std::vector<int> set(graph_.size(), -1);
    std::vector<int> parent;
    const auto root = [&](int at) {
      while (parent[at] != at) at = parent[at];
      return at;
    };
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      if (!batch_.Has(Value{id})) continue;
      set[id] = static_cast<int>(parent.size());
      parent.push_back(set[id]);
      for (const Value operand : graph_.operands(Value{id})) {
        if (set[operand.id] < 0 || batch_.IsUniform(Value{id})) continue;
        parent[root(set[operand.id])] = root(set[id]);
      }
    }
    // How often a value on the way to a node left the node's set.
    std::vector<std::map<int, int>> exits(graph_.size());
    std::map<std::pair<int, int>, std::set<Value>> parts;
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      std::map<int, int>& mine = exits[id];
      const int own = set[id] < 0 ? -1 : root(set[id]);
      for (const Value operand : graph_.operands(Value{id})) {
        for (const auto& [of, count] : exits[operand.id]) {
          int& most = mine[of];
          most = std::max(most, count);
        }
        const int other = set[operand.id] < 0 ? -1 : root(set[operand.id]);
        if (other >= 0 && (other != own || batch_.IsUniform(Value{id}))) {
          int& most = mine[other];
          most = std::max(most, exits[operand.id][other] + 1);
        }
      }
      if (own >= 0) parts[{own, mine[own]}].insert(Value{id});
    }
    std::vector<std::set<Value>> result;
    for (auto& [key, nodes] : parts) result.push_back(std::move(nodes));
    return result;
  }

  std::optional<Rounds> RoundsOf(const std::set<Value>& nodes) const {
    Rounds rounds;
    int64_t largest = 0;
    int products = 0;
    bool pays = false;
    for (const Value v : nodes) {
      const bool product = graph_.node(v).op == ToOpId(Primitive::kDotGeneral);
      const bool output = IsReadOutside(v, nodes);
      const int64_t bytes = *Bytes(graph_.type(v));
      products += product;
      largest = std::max(largest, bytes);
      pays |= product && !output && bytes >= kLeastBytesInRounds;
      if (output) rounds.outputs.push_back(v);
    }
    if (products < 2 || !pays) return std::nullopt;
    // The scan takes the place of the last node.
    const Value last = *nodes.rbegin();
    for (const Value v : rounds.outputs) {
      for (const Value reader : readers_[v.id]) {
        if (nodes.count(reader) == 0 && reader.id < last.id) {
          return std::nullopt;
        }
      }
    }
    const int64_t count = batch_.count();
    for (int64_t c = 1; c < count; ++c) {
      if (count % c == 0 && largest / count * c <= kRoundBytes) {
        rounds.matrices = c;
      }
    }
    if (count < 2) return std::nullopt;
    rounds.nodes = nodes;
    return rounds;
  }

  bool IsReadOutside(Value v, const std::set<Value>& nodes) const {
    if (returned_.count(v) > 0) return true;
    return std::any_of(readers_[v.id].begin(), readers_[v.id].end(),
                       [&](Value reader) { return nodes.count(reader) == 0; });
  }

  const Graph& graph_;
  const Batch& batch_;
  std::vector<std::vector<Value>> readers_;
  std::set<Value> returned_;
};

// Writes the scan of some rounds.
class Writer {
 public:
  Writer(GraphCopy& copy, const Batch& batch, const Rounds& rounds)
      : graph_(copy.graph()),
        copy_(copy),
        builder_(copy.builder()),
        batch_(batch),
        rounds_(rounds),
        body_(builder_.context()) {}

  // Sets the copies of the outputs.
  void Write() {
    for (const Value v : rounds_.nodes) FindInputs(v);
    for (size_t i = 0; i < consts_.size(); ++i) {
      whole_[consts_[i]] =
          body_.Input(absl::StrCat("c", i), graph_.type(consts_[i]));
    }
    for (size_t i = 0; i < slices_.size(); ++i) {
      values_[slices_[i]] =
          body_.Input(absl::StrCat("x", i),
                      batch_.Round(graph_.type(slices_[i]), rounds_.matrices));
    }
    for (const Value v : rounds_.nodes) values_[v] = InBody(v);
    std::vector<NamedValue> outputs;
    for (const Value v : rounds_.outputs) {
      outputs.push_back({absl::StrCat("y", outputs.size()), values_.at(v)});
    }
    absl::StatusOr<Region> body = BuildRegion(std::move(body_), outputs);
    CLEAVE_CHECK(body.ok()) << body.status().message();
    const int64_t length = batch_.count() / rounds_.matrices;
    std::vector<Value> operands;
    for (const Value v : consts_) operands.push_back(copy_.of(v));
    for (const Value v : slices_) operands.push_back(Sliced(v, length));
    Attributes attributes;
    attributes.Set("body", *std::move(body));
    attributes.Set("consts", static_cast<int>(consts_.size()));
    attributes.Set("carries", 0);
    attributes.Set("length", Dim(length));
    attributes.Set("reverse", false);
    const Value scan = builder_.Apply(Primitive::kScan, operands, attributes);
    for (size_t i = 0; i < rounds_.outputs.size(); ++i) {
      const Value v = rounds_.outputs[i];
      const Value result = builder_.Result(scan, static_cast<int>(i));
      copy_.Set(v, builder_.Reshape(result, graph_.type(v).shape));
    }
  }

 private:
  void Add(std::vector<Value>* inputs, Value v) {
    if (std::count(inputs->begin(), inputs->end(), v) == 0) {
      inputs->push_back(v);
    }
  }

  void FindInputs(Value v) {
    if (batch_.IsUniform(v)) return Add(&consts_, graph_.operands(v)[0]);
    for (const Value operand : graph_.operands(v)) {
      if (rounds_.nodes.count(operand) > 0 || FilledWith(graph_, operand)) {
        continue;
      }
      Add(&slices_, operand);
    }
  }

  Value InBody(Value v) {
    const TensorType type = batch_.Round(graph_.type(v), rounds_.matrices);
    std::vector<Value> operands;
    for (const Value operand : graph_.operands(v)) {
      const auto known = values_.find(operand);
      if (batch_.IsUniform(v)) {
        operands.push_back(whole_.at(operand));
      } else if (known != values_.end()) {
        operands.push_back(known->second);
      } else {
        operands.push_back(body_.Constant(
            *FilledWith(graph_, operand),
            batch_.Round(graph_.type(operand), rounds_.matrices)));
      }
    }
    const Node& node = graph_.node(v);
    const Attributes attributes = batch_.RoundAttributes(v, type);
    return body_.AddTyped(node.op, body_.context()->Intern(attributes),
                          body_.context()->Intern(type), operands,
                          node.provenance);
  }

  // An operand as slices of one round, in order in memory.
  Value Sliced(Value v, int64_t length) {
    Value from = v;
    while (graph_.node(from).op == ToOpId(Primitive::kReshape)) {
      from = graph_.operands(from)[0];
    }
    const OpId op = graph_.node(from).op;
    Value x = copy_.of(v);
    if (IsPrimitive(op) &&
        ClassOf(ToPrimitive(op)) == PrimitiveClass::kMovement) {
      x = Stored(builder_, x);
    }
    Shape shape = batch_.Round(graph_.type(v), rounds_.matrices).shape;
    shape.insert(shape.begin(), Dim(length));
    return builder_.Reshape(x, shape);
  }

  const Graph& graph_;
  GraphCopy& copy_;
  GraphBuilder& builder_;
  const Batch& batch_;
  const Rounds& rounds_;
  GraphBuilder body_;
  std::vector<Value> consts_;
  std::vector<Value> slices_;
  std::map<Value, Value> whole_;   // the inputs of all rounds, `consts_`
  std::map<Value, Value> values_;  // a round of the others
};

Graph InRounds(const Graph& graph, const Extents& extents) {
  const Batch batch(graph, extents);
  const std::vector<Rounds> all = Finder(graph, batch).Find();
  if (all.empty()) return graph;
  return RewriteGraph(graph, [&](GraphCopy& copy, Value v) {
    for (const Rounds& rounds : all) {
      if (rounds.nodes.count(v) == 0) continue;
      if (v != *rounds.nodes.rbegin()) break;
      copy.builder().SetProvenance(graph.node(v).provenance);
      Writer(copy, batch, rounds).Write();
      if (copy.of(v).valid()) return copy.of(v);
    }
    // Nobody reads a node of rounds that is no output.
    return copy.Keep(v);
  });
}

}  // namespace

Graph RoundsOfBatches(const Graph& graph) {
  std::set<Extents> batches;
  for (uint32_t id = 0; id < graph.size(); ++id) {
    const std::optional<Extents> batch = BatchOf(graph, Value{id});
    if (!batch) continue;
    const auto bytes = Bytes(graph.type(Value{id}));
    if (bytes && *bytes >= kLeastBytesInRounds) batches.insert(*batch);
  }
  Graph result = graph;
  for (const Extents& extents : batches) result = InRounds(result, extents);
  return result;
}

}  // namespace cleave
