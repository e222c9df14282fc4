// RuleTexts: rule files of which single items are replaced.
//
//   RuleTexts texts = *RuleTexts::Make(sources);
//   for (const RuleTexts::Place& place : texts.Items()) {
//     Item mutant = .. of texts.item(place) ..
//     LoadResult loaded =
//         texts.LoadWith(mutant, place, {}, std::make_shared<Context>());
//   }
//
// The files are known to be right, so that a load parses them (20 ms for the
// shipped ones) and checks the replaced item alone, and others that are asked
// for: those that use it.

#ifndef CLEAVE_TESTING_MUTATE_RULE_TEXTS_H_
#define CLEAVE_TESTING_MUTATE_RULE_TEXTS_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/ir/context.h"
#include "engine/lang/ast.h"
#include "engine/lang/source.h"
#include "engine/rules/rule_set.h"

namespace cleave {

class RuleTexts {
 public:
  // An item: its file, and its place among the entries there.
  struct Place {
    size_t file = 0;
    size_t entry = 0;
    friend bool operator<(const Place& a, const Place& b) {
      return a.file != b.file ? a.file < b.file : a.entry < b.entry;
    }
  };

  // InvalidArgument for what does not parse. The sources load without mistakes.
  static absl::StatusOr<RuleTexts> Make(std::vector<NamedSource> sources);

  std::vector<Place> Items() const;
  const Item& item(const Place& place) const {
    return *files_[place.file].file.entries[place.entry].item;
  }
  const std::string& file(const Place& place) const {
    return files_[place.file].source.name();
  }
  // "rules/core/activation.rules:97:12" of a place in the item's file.
  std::string PositionOf(const Place& place, const SourceRange& range) const;

  // All files as they are.
  LoadResult Load(std::shared_ptr<Context> context) const;
  // `item` in the place of another. The loader checks `item`, and the items in
  // `checked`.
  LoadResult LoadWith(const Item& item, const Place& replaced,
                      const std::set<Place>& checked,
                      std::shared_ptr<Context> context) const;

 private:
  struct File {
    Source source;
    RuleFile file;
    std::string text;
  };
  std::vector<File> files_;
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_MUTATE_RULE_TEXTS_H_
