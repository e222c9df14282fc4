// CallSearch: calls that an op accepts, found by proposing operand types and
// attributes. For declarations from which no symbolic call can be made: those
// of hosts, which have no shapes and partly no dtypes, and ops with attributes
// that have no default.
//
//   CallSearch search(rules, "aten.mm");
//   while (std::optional<Graph> call = search.Next()) ...

#ifndef CLEAVE_ENGINE_RULES_CALL_SEARCH_H_
#define CLEAVE_ENGINE_RULES_CALL_SEARCH_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/bind/library.h"
#include "engine/ir/graph.h"
#include "engine/rules/rule_set.h"

namespace cleave {

// Proposals made for one op, and those made once it has accepted one.
inline constexpr int kMaxProposals = 30000;
inline constexpr int kMaxFurtherProposals = 300;
// If an op accepted none of so many, further proposals are made from these, and
// mostly from those that were refused for a reason that few were refused for.
inline constexpr int kUnguidedProposals = 800;
// Accepted proposals whose calls are returned.
inline constexpr int kMaxFoundCalls = 8;
// The extent that most axes have in a concrete call: it can be halved twice.
inline constexpr int64_t kCommonExtent = 4;

// The extent that is one number in all of a call.
inline Dim CommonExtent() { return Dim::Variable("n"); }

// The same calls in each run: nothing is drawn by chance. Most extents of one
// call are equal, so that what must agree does. A call is returned with that
// extent as the variable `n` where the op accepts it so, then as the number 4;
// where no call is accepted, proposals are made again with 1 for it, then
// others.
class CallSearch {
 public:
  // `rules` must outlive the search. NotFound for no op.
  static absl::StatusOr<CallSearch> Create(const RuleSet& rules,
                                           absl::string_view op);

  // The next call, a graph of one node; nullopt when there are no more.
  std::optional<Graph> Next();

  // Why no call was found, for when the first Next() gave nothing:
  // Unimplemented where a proposal met something that is not supported, else
  // InvalidArgument with the commonest rejection.
  absl::Status Obstacle() const;

 private:
  struct Proposal {
    // By declared input: its tensors, nullopt where absent.
    std::vector<std::vector<std::optional<TensorType>>> inputs;
    Attributes attributes;  // and `static` inputs
  };

  CallSearch(const RuleSet& rules, const Callable& callable);
  uint64_t Draw(uint64_t count);  // 0 .. count - 1
  Proposal Propose();
  void Keep(std::string refusal, const Proposal& proposal);
  // One of those kept, with something else about it: an axis, an extent, a
  // dtype, the tensors of an input, an attribute.
  Proposal ProposeFromKept();
  // Sets the dtype of an input whose declaration leaves it open, and of the
  // other inputs with its dtype variable.
  void SetOpenDType(size_t input, DType dtype, Proposal& proposal) const;
  // The proposal with f32 in the place of dtypes that the declaration leaves
  // open: all at once, all but one, and one alone.
  std::vector<Proposal> InFloats(const Proposal& proposal) const;
  Proposal NextVariant();
  void ChangeInput(size_t input, Proposal& proposal);
  void ChangeAttribute(size_t attribute, Proposal& proposal);
  DType DrawDType(absl::string_view dtype_class);
  int64_t DrawRank(int rank, int pattern, int input);
  StaticValue DrawInteger();
  StaticValue DrawIntegers(int64_t length);
  StaticValue DrawScalar(const AttributeDecl& attribute, int rank);
  // A list is as long as `common_length`, or twice that.
  StaticValue DrawAttribute(const AttributeDecl& attribute,
                            int64_t common_length, int rank);
  void DrawInputs(int rank, bool plain, Proposal& proposal);
  void DrawAttributes(int rank, bool plain, Proposal& proposal);
  // A graph of the call, `common` for the extent `n`.
  absl::StatusOr<Graph> Make(const Proposal& proposal, const Dim& common) const;

  const RuleSet* rules_;
  const Callable* callable_;
  // Strings that the rules give to attributes of a name, and those that stand
  // in this op's own conditions.
  std::map<std::string, std::set<std::string>> given_strings_;
  std::set<std::string> own_strings_;
  uint64_t state_ = 1;
  int64_t extent_ = kCommonExtent;
  int attempt_ = 0;
  int proposals_ = 0;
  int last_proposal_ = kMaxProposals;
  int found_ = 0;
  bool guided_ = false;
  // Proposals by why they were refused, empty for those that were accepted, in
  // the order in which the reasons came up.
  struct Refused {
    std::string reason;
    int count = 0;
    std::vector<Proposal> proposals;
  };
  std::vector<Refused> kept_;
  std::vector<Proposal> variants_;  // of the first that was accepted
  std::optional<Graph> concrete_;   // of the call that was returned last
  std::set<std::string> seen_;
  std::optional<absl::Status> unsupported_;
  std::map<std::string, int> rejections_;
};

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RULES_CALL_SEARCH_H_
