// Lowering: the state of one group on its way to Halide. Internal to
// this folder: lower_group.cc makes it, lower_movement.cc, lower_product.cc,
// lower_reduction.cc, lower_structured.cc, lower_totals.cc, tiled_dot.cc,
// found_dot.cc and skip_blocks.cc are its parts, schedule.cc orders its loops.

#ifndef CLEAVE_ENGINE_CODEGEN_HALIDE_LOWERING_H_
#define CLEAVE_ENGINE_CODEGEN_HALIDE_LOWERING_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "Halide.h"
#include "engine/codegen/halide/lower_group.h"
#include "engine/codegen/rare_sides.h"
#include "engine/codegen/reduction_spaces.h"
#include "engine/ir/graph.h"

namespace cleave {

// The coordinates of an element, one per axis of its tensor.
using Coordinates = std::vector<Halide::Expr>;

// Lanes that a row is reduced in, whatever the target's vectors are: the order
// of a sum is the same on all machines and for any number of threads.
inline constexpr int kReductionLanes = 64;
// Elements that one block of a reduction over everything takes.
inline constexpr int kReductionBlock = 16384;
// Rows that one block of a sum over axes before the last takes on a device,
// where a thread for each column would be few threads. Up to so many rows the
// order of a sum is that of the interpreter.
inline constexpr int kColumnBlock = 512;
// Terms of a product that tiles leave out together.
inline constexpr int kSkippedTerms = 32;
// Blocks of a reduction whose results one thread of a device reduces.
inline constexpr int kGroupedBlocks = 64;

// Sums of narrow floats are kept in f32.
inline DType SumType(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 ? DType::kF32 : dtype;
}

// A node with a Func of its own.
struct Stage {
  enum class Role {
    kStored,       // an expensive value, stored for the row
    kRow,          // a value per row
    kPartial,      // lanes or blocks of a reduction, with updates
    kHalving,      // a step of the tree over the lanes
    kSerial,       // a reduction, or a structured node, by its updates
    kWhole,        // needed everywhere: computed before all else
    kContraction,  // a structured node whose elements are sums of their own
    kWindow,       // such a node whose sums have few terms, a known number
    kScan,         // one element after the other along an axis
    kSequential,   // updates whose order matters
    kInline,       // no loops of its own
    kPanel,        // of a contraction: columns of its right side, side by side
    kTile,         // of a contraction: rows by columns, in registers
    kTileRows,     // of a reduction in tiles: what is computed of left rows
    kTileTotal,    // of a sum of tiles: those of successive terms added up
    kCopied,       // what a transpose reads: a tile of it in order
    kTurned,       // a tile of it, rows interleaved: the last has columns
    kFlag,         // of a contraction: whether a block of it counts
    kFlagLanes,    // lanes of that
    kBlock,        // of a contraction: the tiles of a panel and a task's rows
    kDraws,        // random numbers of one row, whole blocks of words
  };
  // The loop of a contraction that a flag is for.
  enum class Level { kTile, kBlock, kPanel };
  Halide::Func func;
  Role role = Role::kRow;
  Level level = Level::kTile;  // of kFlag
  size_t by_lane = 0;          // of kFlag: the number of its kFlagLanes
  int lanes = 0;       // of kPartial, kHalving, kFlagLanes; columns of kPanel
                       // and kTile
  int rows = 0;        // of kTile
  int block_rows = 0;  // of kTile: rows of a task, a multiple of its own
  bool panels_outermost = false;  // of kTile: many tasks read one panel
  bool of_windows = false;  // for kTile: its rows are images, or parts of them
  // For kTile: steps of the outermost of `reduced` that all tiles of a block of
  // rows take before the next ones, so that their part of the panel stays in
  // the first cache. 0: each tile takes all terms.
  int outermost_steps = 0;
  int per_block = 0;  // of kDraws: elements that one block of words makes
  std::vector<Halide::RVar> reduced;  // of the updates, innermost first
  Halide::RVar tail;  // of kPartial and kTile: what is left over
  bool has_tail = false;
  int scan_axis = -1;  // of kScan
  // For kSequential: axes along which no order matters, the outermost first.
  std::vector<Halide::Var> free;
  bool blocked = false;  // a block of what is reduced: computed in parallel
  // For kPanel: elements that lie side by side in memory go below each other.
  bool transposed = false;
};

// Two elements of a reduction by `primitive` as one, and what it begins with.
Halide::Expr CombineElements(Primitive primitive, DType dtype,
                             const Halide::Expr& a, const Halide::Expr& b);
Halide::Expr IdentityElement(Primitive primitive, DType dtype);

// One parallel loop over `task` and the axes around it, the innermost first;
// its variable (schedule.cc).
Halide::Var ParallelWith(Halide::Func out, Halide::Var task,
                         const std::vector<Halide::Var>& around);

struct TileVars;  // tile_vars.h

class Lowering {
 public:
  Lowering(const Graph& graph, GroupKind kind, const Halide::Target& target,
           bool plain_schedule);

  // Adds Funcs for outputs of one shape: a tuple where there are several.
  void AddOutputs(const std::vector<Value>& outputs);

  // Sets `*exact` to whether vectors are what their elements are
  // (float_ramps.h).
  Halide::Module Finish(const std::string& name, bool* exact);

 private:
  // ---- Elements (lower_group.cc, lower_movement.cc).
  Halide::Expr Extent(const Dim& dim);
  Halide::Expr At(Value v, const Coordinates& at);
  Halide::Expr Compute(Value v, const Coordinates& at);
  Halide::Expr Movement(Value v, const Coordinates& at);
  Halide::Expr Pad(Value v, const Coordinates& at);
  Halide::Expr Concatenate(Value v, const Coordinates& at);
  Halide::Expr Windows(Value v, const Coordinates& at);
  Halide::Expr Gather(Value v, const Coordinates& at);
  Halide::Expr Reshape(Value v, const Coordinates& at);
  // The index that `index` holds at these leading coordinates for its
  // component k, and whether it is inside `extent`.
  Halide::Expr IndexAt(Value index, Coordinates leading, int k,
                       const Dim& extent, Halide::Expr* inside);
  // A coordinate inside of [0, extent), whatever `at` is; 0 where there is
  // none.
  Halide::Expr Clamp(const Halide::Expr& at, const Dim& extent);
  // The element of `x` at coordinates that were clamped, to be selected where
  // it is there.
  Halide::Expr AtClamped(Value x, const Coordinates& at);
  // The coordinates in the operand of a slice or a reversal `v`: within
  // AtClamped of what may be empty, clamped to it.
  Coordinates Inside(Coordinates at, Value v);

  // ---- Random numbers (lower_draws.cc).
  Halide::Expr Draw(Value v, const Coordinates& at);
  // Element `place` of a row, counted from the first element of the block of
  // words that its first element is in. `row`: all coordinates but the last.
  Halide::Expr DrawInRow(Value v, const Coordinates& row,
                         const Halide::Expr& place);
  // Where a row begins among the elements of its key.
  Halide::Expr RowStart(Value v, const Coordinates& row);
  // Whether the loops that an element of v is read in go along its rows: those
  // of the outputs, of a tile of them, or of a value stored for a row.
  bool GoesAlong(Value v, const Coordinates& at) const;
  // Makes blocks of words once for all of their elements, at the loop `level`.
  void ScheduleDraws(const Halide::LoopLevel& level, Halide::MemoryType memory);

  // ---- Values of rows and the totals of them (lower_totals.cc).
  void FindSpaces();
  // Stores the values of rows that totals read, before all else. From here on
  // the group is a reduction of everything.
  void AddRows();

  // ---- Transposes in tiles (lower_transpose.cc).
  // Finds transposed_ and makes copied_ and turned_.
  void TileTranspose(const std::vector<Value>& outputs);
  void TurnTiles();
  // The element of transposed_'s operand.
  Halide::Expr Transposed(const Coordinates& at);
  // The axis of the result that runs along the operand's rows.
  size_t AxisOfOperandRows() const;
  void ScheduleTransposed(Halide::Func out,
                          const std::vector<Halide::Var>& axes);
  void ScheduleDeviceTransposed(Halide::Func out,
                                const std::vector<Halide::Var>& axes);

  // ---- Stages.
  void AddStages(const std::vector<Value>& needed);
  bool IsFull(Value v) const { return graph_.type(v).shape == space_.shape; }
  void StoreValue(Value v, Stage::Role role);
  // Whether the memory that a block of a device's threads shares has room for
  // the values of one row of v, beside those that are stored there already.
  // Where it has none the threads compute them again.
  bool FitsBlock(Value v) const;
  static Halide::Expr ForEach(const Halide::RDom& domain,
                              const Halide::Expr& value);
  // The value, whose relation to the loops Halide does not see.
  static Halide::Expr Opaque(const Halide::Expr& value);
  // Elements of v are read from the stage's Func from here on.
  void AddStage(Value v, Stage stage);
  // A domain of these extents, and its variables, innermost first.
  static Halide::RDom Domain(const std::vector<Halide::Expr>& extents,
                             const std::string& name);
  static std::vector<Halide::RVar> Variables(const Halide::RDom& domain);
  // The elements that the reduction v reads for its element at `vars`: the
  // domain of its axes, the last innermost (one point if there are none), and
  // the coordinates in the operand.
  struct Reduced {
    Halide::RDom domain;
    std::vector<Halide::Expr> extents;
    Coordinates at;
  };
  Reduced ReducedBy(Value v, const std::vector<Halide::Var>& vars);
  // A line of the last axis, or each block of it, as lanes take it: each has
  // every `count`-th element, and the first ones what is left over.
  struct LineLanes {
    int count;
    bool blocked;
    std::vector<Halide::Var> pure;  // the lane, the outputs' axes, the block
    Halide::RDom domain;            // of all lanes
    Halide::RDom tail;              // of what is left over, by lane
    Halide::Expr at;                // the place of an element of the domain
    Halide::Expr rest;              // the same of the tail
    Halide::Expr blocks;            // how many there are, at least one
    bool has_tail;                  // unless it is known to be empty

    std::vector<Halide::Expr> At(const Halide::Expr& lane) const;
    // The stage of all lanes, which updates over the domain and the tail fill.
    Stage Partial(Halide::Func func) const;
    // Half as many lanes.
    Stage Half(Halide::Func func, int lanes) const;
  };
  // `steps` divides the elements of a lane: `at` is the first of so many.
  LineLanes LanesOfLine(const std::vector<Halide::Var>& vars, int count,
                        bool blocked, int steps = 1);
  void AddReduction(Value v);  // lower_reduction.cc
  void AddLaneReduction(Value v);
  Coordinates InLine(const std::vector<Halide::Var>& kept,
                     const Halide::RDom& r, const Halide::Expr& last) const;
  bool SumsProducts(Value v) const;
  void AddSerialReduction(Value v);
  void AddColumnBlocks(Value v);
  void FinishReduction(Value v, Stage stage);
  bool SplitsColumns() const;
  // Whether rows are so long that blocks of them are reduced in parallel, on a
  // device.
  bool SplitsRows() const;
  // On a device: a stage that reduces what `element` gives for each so many of
  // `count` blocks, so that no thread waits for all. Then `element` and `count`
  // are the stage's.
  void GroupBlocks(Value v, std::function<Halide::Expr(Halide::Expr)>* element,
                   Halide::Expr* count);
  // The stage that reduces them, one after the other.
  Stage OverBlocks(Value v,
                   const std::function<Halide::Expr(Halide::Expr)>& element,
                   const Halide::Expr& count);
  void AddArgReduction(Value v);
  void AddProduct(Value v);     // lower_product.cc
  void AddStructured(Value v);  // lower_structured.cc
  void AddDot(Value v);
  // The right operand of the product v with its columns beside each other, for
  // the threads of a device; null where they are, or where it is read by few
  // rows.
  Halide::Func CopiedColumns(Value v);
  void AddConvolution(Value v);
  void AddWindowsAdd(Value v);
  // Where step domain.x of a scan along the attribute `axis` writes, and where
  // the step before it wrote.
  std::pair<Coordinates, Coordinates> ScanPlaces(
      Value v, const Halide::RDom& domain,
      const std::vector<Halide::Var>& vars);
  void AddLinearScan(Value v);
  void AddCumulative(Value v);
  void AddScatter(Value v);
  bool AddTiledDot(Value v);  // tiled_dot.cc
  bool AddFoundDot(Value v);  // found_dot.cc
  bool AddTiledReduction(Value v);
  void AddTileResult(Value v, const TileVars& vars);
  // ---- Blocks of products that are left out (skip_blocks.cc).
  Halide::Func AddLargest(
      const std::vector<Halide::Var>& places, int lanes,
      const std::vector<Halide::Expr>& points, Stage::Level level,
      const std::function<Halide::Expr(const Halide::Expr& lane,
                                       const Halide::RDom& point)>& element);
  void ScheduleFlag(Stage& flag, const Halide::LoopLevel& level);
  Halide::Expr WantsTile(Value v, const TileVars& of, int rows, int columns);
  int SkippedBlocks(Value v) const;
  // A product whose blocks of terms may be left out.
  struct SkippedTerms {
    DType dtype;
    int blocks;         // of kSkippedTerms
    int height;         // rows of the left side
    int rows;           // of a tile
    int columns;        // of a panel
    int rows_of_block;  // of a task
    bool along_terms;   // a row's terms lie side by side in memory
  };
  Halide::RDom TermsThatCount(
      const TileVars& of, const SkippedTerms& skipped,
      const std::function<Halide::Expr(const Halide::Expr& k,
                                       const Halide::Expr& m)>& left,
      const std::function<Halide::Expr(const Halide::Expr& k,
                                       const Halide::Expr& i)>& right);
  Halide::Expr AddProductTo(DType dtype, const Halide::Expr& sum,
                            const Halide::Expr& a, const Halide::Expr& b) const;
  void FinishStage(Value v, Stage stage,
                   Stage::Role rounded_role = Stage::Role::kInline);
  Halide::Func MakeFunc(const std::string& what);
  std::vector<Halide::Var> VarsOf(Value v) const;
  // Calls a Func that is defined over the axes of v.
  static Halide::FuncRef Call(Halide::Func func, const Coordinates& at);
  // The order of Halide's dimensions: the last axis first.
  template <typename T>
  static std::vector<T> Reversed(const std::vector<T>& axes) {
    return {axes.rbegin(), axes.rend()};
  }

  // ---- Schedules (schedule.cc).
  void Schedule(Halide::Func out, const std::vector<Halide::Var>& axes);
  bool ScheduleScan(Halide::Func out, const std::vector<Halide::Var>& axes);
  bool ScheduleLineScan(Halide::Func out, const std::vector<Halide::Var>& axes);
  void ScheduleSequential(Stage& stage);
  void ScheduleWindows(Halide::Func out, const std::vector<Halide::Var>& axes);
  int64_t PartOfLastAxis() const;
  void ScheduleJoined(Halide::Func out, const Halide::Var& x, int width) const;
  void SchedulePointwise(Halide::Func out,
                         const std::vector<Halide::Var>& axes);
  void ScheduleRows(Halide::Func out, const std::vector<Halide::Var>& axes);
  int TaskRows(int bytes) const;
  int ElementCost() const;
  // Whether f64 is what most of it computes, whatever it stores.
  bool ComputesInDoubles() const;
  int RowsOfColumns() const;
  void ScheduleColumns(Halide::Func out, const std::vector<Halide::Var>& axes,
                       bool full);
  void ScheduleStructured(Halide::Func out,
                          const std::vector<Halide::Var>& axes);
  void ScheduleTiles(  // tiled_dot.cc
      Halide::Func out, const std::vector<Halide::Var>& axes);
  void ScheduleWhole(Stage& stage);
  void ScheduleLanes(Stage& stage, const Halide::LoopLevel& level);
  // Blocks of threads (schedule_device.cc).
  void ScheduleOnDevice(Halide::Func out, const std::vector<Halide::Var>& axes);
  void ScheduleDeviceElements(Halide::Func out,
                              const std::vector<Halide::Var>& axes);
  void ScheduleDeviceRows(Halide::Func out,
                          const std::vector<Halide::Var>& axes);
  // The lanes of a row's reductions, 0 where none has any, and the rows that
  // one block takes. `full`: whether the output has the elements of the rows.
  int DeviceLanes() const;
  int DeviceBlockRows(int lanes) const;
  // The loop over the steps of a row, a lane for each thread.
  static void ScheduleDeviceSteps(Halide::Func f, const Halide::Var& x,
                                  const Halide::Var& thread, int lanes,
                                  std::vector<Halide::VarOrRVar>* order);
  void ScheduleDeviceColumns(Halide::Func out,
                             const std::vector<Halide::Var>& axes);
  void ScheduleDeviceContraction(Halide::Func out,
                                 const std::vector<Halide::Var>& axes);
  void ScheduleDeviceLaneBlocks();
  void ScheduleDeviceStage(Stage& stage);
  // A kernel for the blocks of each reduction, and one for their results.
  void ScheduleDeviceRowBlocks(Halide::Func out,
                               const std::vector<Halide::Var>& axes);
  // A kernel of its own for each stage.
  void ScheduleDeviceColumnBlocks(Halide::Func out,
                                  const std::vector<Halide::Var>& axes);
  static void ScheduleDeviceCopied(Stage& stage);
  // Whether `out` has the elements of one contraction, whose threads then make
  // tiles of them.
  bool IsTiledOnDevice(const std::vector<Halide::Var>& axes) const;
  // `rows`: whether a block takes several rows, along the stage's second axis.
  static void ScheduleDeviceLanes(Stage& stage, const Halide::LoopLevel& level,
                                  bool rows = false);
  // Bytes of the widest of a tuple's elements.
  static int WidestElement(const Halide::Func& f);
  // Lanes of a vector of elements of that many bytes.
  int VectorWidth(int bytes) const;
  // The lanes of a vector of f's elements along the last axis of `shape`: no
  // more than it has, where that is known.
  int WidthAlong(const Halide::Func& f, const Shape& shape) const;
  int OutermostAxis(int rank) const;
  void ParallelOver(Halide::Func out, const std::vector<Halide::Var>& axes);

  const Graph& graph_;
  const GroupKind kind_;
  const Halide::Target target_;
  const bool on_device_;
  const bool plain_schedule_;
  // Where the loops of a reduction group run: those that are added now.
  ReductionSpace space_;
  std::map<Value, Halide::Func> draws_;  // of the outputs in work
  Shape output_shape_;                   // theirs
  // The transpose of a pointwise group by which its loops are tiled.
  std::optional<Value> transposed_;
  Halide::Func copied_;  // its operand
  Halide::Func turned_;  // tiles of that with rows as columns, if any
  // Where the group reduces its rows' values to scalars.
  std::optional<RowsAndTotals> rows_and_totals_;

  std::map<std::string, Halide::Param<int>> extents_;
  std::vector<Halide::ImageParam> images_;
  std::map<Value, int> image_of_;

  // The elements of the outputs in work that have an expression already.
  std::map<std::pair<uint32_t, std::vector<const void*>>, Halide::Expr> memo_;
  int maybe_empty_ = 0;  // AtClamped of what may be empty, within each other
  std::vector<Coordinates> kept_;  // what the keys of memo_ point to
  std::map<Value, Halide::Func> funcs_;
  const std::vector<RareSide> rare_sides_;
  std::vector<Stage> stages_;
  std::vector<Halide::Func> outputs_;
  std::vector<Halide::Func> stored_;  // those that have elements
  int names_ = 0;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_CODEGEN_HALIDE_LOWERING_H_
