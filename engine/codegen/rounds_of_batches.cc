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

// A round has a part of these.
enum class Part {
  kBatch,  // the products
  kRows,   // the rows of one product's left operand: the right one is read
           // whole
};

const RoundBytes& BytesOf(Part part) {
  return part == Part::kBatch ? kRoundsOfMatrices : kRoundsOfRows;
}

// The first extents of a contraction's result, which number its products, or
// its only product's rows; nullopt where not both operands have them in front.
std::optional<Extents> ExtentsOf(const Graph& graph, Value v, Part part) {
  if (graph.node(v).op != ToOpId(Primitive::kDotGeneral)) return std::nullopt;
  const Attributes& attributes = graph.attributes(v);
  const auto batch = attributes.GetInts("batch_a");
  std::vector<int64_t> first(batch.size());
  std::iota(first.begin(), first.end(), 0);
  if (batch != first || attributes.GetInts("batch_b") != first ||
      !FiniteOperands(graph, v).empty()) {
    return std::nullopt;
  }
  Extents extents;
  for (const Dim& dim : graph.type(v).shape) {
    const auto extent = dim.Value();
    if (!extent) return std::nullopt;
    extents.push_back(*extent);
  }
  const size_t rank = first.size();
  if (part == Part::kBatch) {
    if (rank == 0) return std::nullopt;
    extents.resize(rank);
    return extents;
  }
  const auto contracted = attributes.GetInts("contract_a");
  const size_t left = graph.type(graph.operands(v)[0]).shape.size();
  if (rank == left || std::count(contracted.begin(), contracted.end(), rank) ||
      std::count(extents.begin(), extents.begin() + rank, 1) !=
          static_cast<int64_t>(rank)) {
    return std::nullopt;
  }
  extents.resize(rank + 1);
  return extents;
}

// The nodes of one batch, or of one product's rows, and what they read.
class Batch {
 public:
  Batch(const Graph& graph, Extents extents, Part part)
      : graph_(graph), extents_(std::move(extents)), part_(part) {}

  Part part() const { return part_; }
  const RoundBytes& bytes() const { return BytesOf(part_); }
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

  // Whether a node of the batch reads that operand as a whole: a broadcast that
  // repeats it along the batch, or a product of rows its right one.
  bool ReadsWhole(Value v, int operand) const {
    if (graph_.node(v).op == ToOpId(Primitive::kDotGeneral)) {
      return part_ == Part::kRows && operand == 1;
    }
    return IsUniform(v);
  }

  // How many axes of a value that is read in parts number them: all in front,
  // or the rows alone, which a broadcast puts behind axes of 1.
  int Leading(Value v) const { return Leads(v) ? rank() : 1; }

  // Whether a broadcast repeats its operand along the whole batch.
  bool IsUniform(Value v) const {
    if (graph_.node(v).op != ToOpId(Primitive::kBroadcastInDim)) return false;
    const auto axes = graph_.attributes(v).GetInts("axes");
    return std::all_of(axes.begin(), axes.end(), [&](int64_t axis) {
      return axis >= rank() || (part_ == Part::kRows && axis != rank() - 1);
    });
  }

  // Whether a node computes each element of the batch by itself.
  bool Has(Value v) const {
    const OpId op = graph_.node(v).op;
    if (!IsPrimitive(op) || !Leads(v)) return false;
    const DType dtype = graph_.type(v).dtype;
    const bool is_index = part_ == Part::kRows && IsInt(dtype);
    if (!IsFloat(dtype) && dtype != DType::kBool && !is_index) return false;
    const Primitive primitive = ToPrimitive(op);
    if (primitive == Primitive::kBroadcastInDim) {
      if (FilledWith(graph_, v)) return false;
      return IsUniform(v) || KeepsBatch(v) || MovesRows(v);
    }
    if (primitive == Primitive::kReshape) return Leads(graph_.operands(v)[0]);
    if (primitive == Primitive::kTranspose) return KeepsBatch(v);
    switch (ClassOf(primitive)) {
      case PrimitiveClass::kContraction:
        return ExtentsOf(graph_, v, part_) == extents_;
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

  // The type of a value, with one axis of `count` in place of the batch.
  TensorType Round(Value v, int64_t count) const {
    TensorType type = graph_.type(v);
    type.shape.erase(type.shape.begin(), type.shape.begin() + Leading(v));
    type.shape.insert(type.shape.begin(), Dim(count));
    return type;
  }

  // The type of an operand that is read whole, without the axes of 1 in front
  // of the rows.
  TensorType Whole(Value reader, Value operand) const {
    TensorType type = graph_.type(operand);
    if (part_ == Part::kBatch) return type;
    int ones = rank() - 1;
    if (graph_.node(reader).op == ToOpId(Primitive::kBroadcastInDim)) {
      const auto axes = graph_.attributes(reader).GetInts("axes");
      ones = static_cast<int>(
          std::count_if(axes.begin(), axes.end(),
                        [&](int64_t axis) { return axis < rank() - 1; }));
    }
    type.shape.erase(type.shape.begin(), type.shape.begin() + ones);
    return type;
  }

  // The attributes of a node over such values, of that type.
  Attributes RoundAttributes(Value v, const TensorType& type) const {
    Attributes attributes = graph_.attributes(v);
    const int first = part_ == Part::kRows ? rank() - 1 : 0;
    const auto shift = [&](const char* name) {
      std::vector<int64_t> axes;
      for (const int64_t axis : graph_.attributes(v).GetInts(name)) {
        if (axis >= rank()) {
          axes.push_back(axis - rank() + 1);
        } else if (axis == first) {
          axes.push_back(0);
        }
      }
      attributes.Set(name, StaticValue::Ints(axes));
    };
    switch (ToPrimitive(graph_.node(v).op)) {
      case Primitive::kDotGeneral:
        if (part_ == Part::kRows) {
          std::vector<int64_t> right;
          for (const int64_t axis : attributes.GetInts("contract_b")) {
            right.push_back(axis - (rank() - 1));
          }
          attributes.Set("batch_a", StaticValue::Ints(std::vector<int64_t>()));
          attributes.Set("batch_b", StaticValue::Ints(std::vector<int64_t>()));
          attributes.Set("contract_b", StaticValue::Ints(right));
          shift("contract_a");
          break;
        }
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

  // Whether a broadcast puts rows that its operand begins with where those of
  // the product are.
  bool MovesRows(Value v) const {
    if (part_ != Part::kRows) return false;
    const auto axes = graph_.attributes(v).GetInts("axes");
    const Shape& shape = graph_.type(graph_.operands(v)[0]).shape;
    return !axes.empty() && axes[0] == rank() - 1 &&
           shape[0] == Dim(extents_.back());
  }

  const Graph& graph_;
  const Extents extents_;
  const Part part_;
};

// Nodes that run in rounds together.
struct Rounds {
  std::set<Value> nodes;
  std::vector<Value> outputs;  // that others read
  int64_t matrices = 1;        // or rows, of one round
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
      const auto operands = graph_.operands(Value{id});
      for (size_t i = 0; i < operands.size(); ++i) {
        if (set[operands[i].id] < 0 || batch_.ReadsWhole(Value{id}, i)) {
          continue;
        }
        parent[root(set[operands[i].id])] = root(set[id]);
      }
    }
    // How often a value on the way to a node left the node's set.
    std::vector<std::map<int, int>> exits(graph_.size());
    std::map<std::pair<int, int>, std::set<Value>> parts;
    for (uint32_t id = 0; id < graph_.size(); ++id) {
      std::map<int, int>& mine = exits[id];
      const int own = set[id] < 0 ? -1 : root(set[id]);
      const auto operands = graph_.operands(Value{id});
      for (size_t i = 0; i < operands.size(); ++i) {
        const Value operand = operands[i];
        for (const auto& [of, count] : exits[operand.id]) {
          int& most = mine[of];
          most = std::max(most, count);
        }
        const int other = set[operand.id] < 0 ? -1 : root(set[operand.id]);
        if (other >= 0 && (other != own || batch_.ReadsWhole(Value{id}, i))) {
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
      // Integers are indices, which are computed where they are read.
      if (!IsInt(graph_.type(v).dtype)) largest = std::max(largest, bytes);
      pays |= product && !output && bytes >= batch_.bytes().least_in_all;
      if (output) rounds.outputs.push_back(v);
    }
    if (products < 2 || !pays || !ReadsLittle(nodes)) return std::nullopt;
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
      if (count % c == 0 && largest / count * c <= batch_.bytes().most) {
        rounds.matrices = c;
      }
    }
    if (count < 2) return std::nullopt;
    if (batch_.part() == Part::kRows && rounds.matrices < kLeastRows) {
      return std::nullopt;
    }
    rounds.nodes = nodes;
    return rounds;
  }

  // Whether the right operands, which each round of rows puts in order again,
  // are small beside what it computes.
  bool ReadsLittle(const std::set<Value>& nodes) const {
    if (batch_.part() == Part::kBatch) return true;
    return std::all_of(nodes.begin(), nodes.end(), [&](Value v) {
      if (graph_.node(v).op != ToOpId(Primitive::kDotGeneral)) return true;
      const auto bytes = Bytes(graph_.type(graph_.operands(v)[1]));
      return bytes.has_value() && *bytes <= kRoundsOfRows.most;
    });
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
      whole_.push_back(body_.Input(absl::StrCat("c", i), consts_[i].second));
    }
    for (size_t i = 0; i < slices_.size(); ++i) {
      values_[slices_[i]] = body_.Input(
          absl::StrCat("x", i), batch_.Round(slices_[i], rounds_.matrices));
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
    for (const auto& [v, type] : consts_) operands.push_back(All(v, type));
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
  // A value that all rounds read, as an input of that type.
  using Const = std::pair<Value, TensorType>;

  Const ConstOf(Value reader, Value operand) const {
    return {operand, batch_.Whole(reader, operand)};
  }

  template <typename T>
  static void Add(std::vector<T>* inputs, const T& input) {
    if (std::count(inputs->begin(), inputs->end(), input) == 0) {
      inputs->push_back(input);
    }
  }

  void FindInputs(Value v) {
    const auto operands = graph_.operands(v);
    for (size_t i = 0; i < operands.size(); ++i) {
      if (batch_.ReadsWhole(v, i)) {
        Add(&consts_, ConstOf(v, operands[i]));
      } else if (rounds_.nodes.count(operands[i]) == 0 &&
                 !FilledWith(graph_, operands[i])) {
        Add(&slices_, operands[i]);
      }
    }
  }

  Value InBody(Value v) {
    const TensorType type = batch_.Round(v, rounds_.matrices);
    std::vector<Value> operands;
    const auto read = graph_.operands(v);
    for (size_t i = 0; i < read.size(); ++i) {
      const auto known = values_.find(read[i]);
      if (batch_.ReadsWhole(v, i)) {
        const auto at =
            std::find(consts_.begin(), consts_.end(), ConstOf(v, read[i]));
        operands.push_back(whole_[at - consts_.begin()]);
      } else if (known != values_.end()) {
        operands.push_back(known->second);
      } else {
        operands.push_back(
            body_.Constant(*FilledWith(graph_, read[i]),
                           batch_.Round(read[i], rounds_.matrices)));
      }
    }
    const Node& node = graph_.node(v);
    const Attributes attributes = batch_.RoundAttributes(v, type);
    return body_.AddTyped(node.op, body_.context()->Intern(attributes),
                          body_.context()->Intern(type), operands,
                          node.provenance);
  }

  // An operand in order in memory.
  Value InOrder(Value v) {
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
    return x;
  }

  Value Sliced(Value v, int64_t length) {
    Shape shape = batch_.Round(v, rounds_.matrices).shape;
    shape.insert(shape.begin(), Dim(length));
    return builder_.Reshape(InOrder(v), shape);
  }

  Value All(Value v, const TensorType& type) {
    if (type.shape == graph_.type(v).shape) return copy_.of(v);
    return builder_.Reshape(InOrder(v), type.shape);
  }

  const Graph& graph_;
  GraphCopy& copy_;
  GraphBuilder& builder_;
  const Batch& batch_;
  const Rounds& rounds_;
  GraphBuilder body_;
  std::vector<Const> consts_;
  std::vector<Value> slices_;
  std::vector<Value> whole_;       // the inputs of all rounds, `consts_`
  std::map<Value, Value> values_;  // a round of the others
};

Graph InRounds(const Graph& graph, const Extents& extents, Part part) {
  const Batch batch(graph, extents, part);
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
  Graph result = graph;
  for (const Part part : {Part::kBatch, Part::kRows}) {
    std::set<Extents> all;
    for (uint32_t id = 0; id < result.size(); ++id) {
      const auto extents = ExtentsOf(result, Value{id}, part);
      if (!extents) continue;
      const auto bytes = Bytes(result.type(Value{id}));
      if (bytes && *bytes >= BytesOf(part).least_in_all) all.insert(*extents);
    }
    for (const Extents& extents : all) result = InRounds(result, extents, part);
  }
  return result;
}

}  // namespace cleave
