#include "engine/codegen/rounds_of_batches.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/codegen/batch_of_rounds.h"
#include "engine/codegen/panels.h"
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

using internal_rounds::Batch;
using internal_rounds::BytesOf;
using internal_rounds::Extents;
using internal_rounds::ExtentsOf;
using internal_rounds::Part;

// Nodes that run in rounds together.
struct Rounds {
  std::set<Value> nodes;
  std::vector<Value> outputs;  // that others read, totals first
  int64_t totals = 0;          // among them
  int64_t matrices = 1;        // or rows, of one round
  // Whether a node that is not in them reads an output before the last of them.
  bool early_reader = false;
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
        if (set[operands[i].id] < 0 || Leaves(Value{id}, i)) continue;
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
        if (other >= 0 && (other != own || Leaves(Value{id}, i))) {
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

  // Whether a node reads that operand when all rounds are done.
  bool Leaves(Value v, size_t operand) const {
    return batch_.ReadsWhole(v, operand) ||
           batch_.IsTotal(graph_.operands(v)[operand]);
  }

  std::optional<Rounds> RoundsOf(const std::set<Value>& nodes) const {
    Rounds rounds;
    const std::optional<int64_t> whole = ReadAsWhole(nodes);
    if (!whole.has_value()) return std::nullopt;
    int64_t largest = 0;
    int64_t largest_product = 0;  // that nothing outside reads
    int products = 0;
    int inner = 0;
    for (const Value v : nodes) {
      const bool product = graph_.node(v).op == ToOpId(Primitive::kDotGeneral);
      const bool output = IsReadOutside(v, nodes);
      const int64_t bytes = *BytesOf(graph_.type(v));
      products += product;
      // Integers are indices, which are computed where they are read.
      if (!IsInt(graph_.type(v).dtype) && !batch_.IsTotal(v)) {
        largest = std::max(largest, bytes);
      }
      if (product && !output) {
        ++inner;
        largest_product = std::max(largest_product, bytes);
      }
      if (output) rounds.outputs.push_back(v);
    }
    const RoundBytes& limits =
        BytesOf(batch_.part(), *whole <= inner * kSmallMatrices);
    if (products < 2 || inner == 0 || largest_product < limits.least_in_all) {
      return std::nullopt;
    }
    const Value last = *nodes.rbegin();
    for (const Value v : rounds.outputs) {
      for (const Value reader : readers_[v.id]) {
        rounds.early_reader |= nodes.count(reader) == 0 && reader.id < last.id;
      }
    }
    const auto behind =
        std::stable_partition(rounds.outputs.begin(), rounds.outputs.end(),
                              [&](Value v) { return batch_.IsTotal(v); });
    rounds.totals = behind - rounds.outputs.begin();
    const int64_t count = batch_.count();
    for (int64_t c = 1; c < count; ++c) {
      if (count % c == 0 && largest / count * c <= limits.most) {
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

  // The bytes of the right operands, which each round of rows reads; nullopt
  // where one of them is not small beside what it computes.
  std::optional<int64_t> ReadAsWhole(const std::set<Value>& nodes) const {
    int64_t all = 0;
    if (batch_.part() == Part::kBatch) return all;
    for (const Value v : nodes) {
      if (graph_.node(v).op != ToOpId(Primitive::kDotGeneral) ||
          batch_.IsTotal(v)) {
        continue;
      }
      const auto bytes = BytesOf(graph_.type(graph_.operands(v)[1]));
      if (!bytes.has_value() || *bytes > kMostReadAsWhole) {
        return std::nullopt;
      }
      all += *bytes;
    }
    return all;
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
    std::vector<Value> operands;
    for (const Const& read : consts_) operands.push_back(All(read));
    for (size_t i = 0; i < consts_.size(); ++i) {
      const TensorType& type = builder_.type(operands[i]);
      const Value input = body_.Input(absl::StrCat("c", i), type);
      const Const& read = consts_[i];
      whole_.push_back(
          read.contracted.has_value()
              ? MatrixOf(body_, input, read.type.shape[1 - *read.contracted])
              : input);
    }
    for (int64_t i = 0; i < rounds_.totals; ++i) {
      totals_.push_back(
          body_.Input(absl::StrCat("t", i), TotalType(rounds_.outputs[i])));
    }
    for (size_t i = 0; i < slices_.size(); ++i) {
      values_[slices_[i]] = body_.Input(
          absl::StrCat("x", i), batch_.Round(slices_[i], rounds_.matrices));
    }
    for (const Value v : rounds_.nodes) values_[v] = InBody(v);
    std::vector<NamedValue> outputs;
    for (const Value v : rounds_.outputs) {
      Value value = values_.at(v);
      const auto i = static_cast<int64_t>(outputs.size());
      if (i < rounds_.totals) {
        value = body_.Apply(Primitive::kAdd, {totals_[i], value});
      }
      outputs.push_back({absl::StrCat("y", i), value});
    }
    absl::StatusOr<Region> body = BuildRegion(std::move(body_), outputs);
    CLEAVE_CHECK(body.ok()) << body.status().message();
    const int64_t length = batch_.count() / rounds_.matrices;
    for (int64_t i = 0; i < rounds_.totals; ++i) {
      operands.push_back(builder_.Zeros(TotalType(rounds_.outputs[i])));
    }
    for (const Value v : slices_) operands.push_back(Sliced(v, length));
    Attributes attributes;
    attributes.Set("body", *std::move(body));
    attributes.Set("consts", static_cast<int>(consts_.size()));
    attributes.Set("carries", static_cast<int>(rounds_.totals));
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
  TensorType TotalType(Value v) const {
    return batch_.Round(v, rounds_.matrices);
  }

  // A value that all rounds read, as an input of that type, or as the panels
  // of such a matrix, which a product is summed over an axis of.
  struct Const {
    Value value;
    TensorType type;
    std::optional<int64_t> contracted;

    friend bool operator==(const Const& a, const Const& b) {
      return a.value == b.value && a.type == b.type &&
             a.contracted == b.contracted;
    }
  };

  Const ConstOf(Value reader, Value operand) const {
    Const read = {operand, batch_.Whole(reader, operand), std::nullopt};
    if (graph_.node(reader).op != ToOpId(Primitive::kDotGeneral)) return read;
    const Attributes attributes = batch_.RoundAttributes(reader, read.type);
    const auto contracted = attributes.GetInts("contract_b");
    if (contracted.size() == 1 && ColumnsOfPanels(read.type, contracted[0])) {
      read.contracted = contracted[0];
    }
    return read;
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
    Attributes attributes = batch_.RoundAttributes(v, type);
    if (node.op == ToOpId(Primitive::kDotGeneral) && batch_.ReadsWhole(v, 1) &&
        ConstOf(v, read[1]).contracted.has_value()) {
      attributes.Set("contract_b", StaticValue::Ints(std::vector<int64_t>{0}));
    }
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

  Value All(const Const& read) {
    const Shape& shape = read.type.shape;
    const Value x = shape == graph_.type(read.value).shape
                        ? copy_.of(read.value)
                        : builder_.Reshape(InOrder(read.value), shape);
    return read.contracted.has_value()
               ? StorePanels(builder_, x, *read.contracted)
               : x;
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
  std::vector<Value> totals_;      // of the rounds before
  std::map<Value, Value> values_;  // a round of the others
};

// The graph with what reads these nodes, by way of others, behind the last of
// them.
Graph WithReadersBehind(const Graph& graph, const std::set<Value>& nodes) {
  std::vector<bool> behind(graph.size());
  for (uint32_t id = 0; id < graph.size(); ++id) {
    if (nodes.count(Value{id}) > 0) continue;
    for (const Value operand : graph.operands(Value{id})) {
      behind[id] = behind[id] || behind[operand.id] || nodes.count(operand) > 0;
    }
  }
  GraphCopy copy(graph);
  for (const bool second : {false, true}) {
    for (uint32_t id = 0; id < graph.size(); ++id) {
      const Value v{id};
      if (behind[id] == second && !copy.IsDone(v)) copy.Set(v, copy.Keep(v));
    }
  }
  absl::StatusOr<Graph> result = std::move(copy).Build();
  CLEAVE_CHECK(result.ok()) << result.status().message();
  return *std::move(result);
}

Graph InRounds(Graph graph, const Extents& extents, Part part) {
  std::vector<Rounds> all;
  const auto is_early = [](const Rounds& rounds) {
    return rounds.early_reader;
  };
  for (size_t tries = 0;; ++tries) {
    all = Finder(graph, Batch(graph, extents, part)).Find();
    const auto early = std::find_if(all.begin(), all.end(), is_early);
    if (early == all.end()) break;
    if (tries == all.size()) {
      // Some read each other's results: no order serves them.
      all.erase(std::remove_if(all.begin(), all.end(), is_early), all.end());
      break;
    }
    graph = WithReadersBehind(graph, early->nodes);
  }
  if (all.empty()) return graph;
  const Batch batch(graph, extents, part);
  return RewriteGraph(graph, [&](GraphCopy& copy, Value v) {
    for (const Rounds& rounds : all) {
      if (rounds.nodes.count(v) == 0) continue;
      // The scan takes the place of the last node.
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
      const auto bytes = BytesOf(result.type(Value{id}));
      if (bytes &&
          *bytes >= BytesOf(part, /*beside_small=*/true).least_in_all) {
        all.insert(*extents);
      }
    }
    for (const Extents& extents : all) result = InRounds(result, extents, part);
  }
  return result;
}

}  // namespace cleave
