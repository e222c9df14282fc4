#include "testing/mutate/rule_texts.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/lang/json_rule.h"
#include "engine/lang/parser.h"
#include "transforms/derived_rules.h"

namespace cleave {
namespace {

// Nothing is remembered of mutants.
LoadOptions Trusted() {
  LoadOptions options = WithTransforms();
  options.trusted = true;
  options.cache_folder = "";
  return options;
}

}  // namespace

absl::StatusOr<RuleTexts> RuleTexts::Make(std::vector<NamedSource> sources) {
  RuleTexts texts;
  for (NamedSource& named : sources) {
    Source source(named.name, named.text);
    ParseResult parsed =
        named.json ? ParseJsonRules(source) : ParseRules(source);
    if (!parsed.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(named.name, " does not parse"));
    }
    if (named.json) {
      // Places are those of the canonical text.
      source = Source(named.name, PrintRuleFile(parsed.file));
      parsed = ParseRules(source);
    }
    std::string text = source.text();
    texts.files_.push_back(
        {std::move(source), std::move(parsed.file), std::move(text)});
  }
  return texts;
}

std::vector<RuleTexts::Place> RuleTexts::Items() const {
  std::vector<Place> places;
  for (size_t f = 0; f < files_.size(); ++f) {
    for (size_t e = 0; e < files_[f].file.entries.size(); ++e) {
      if (files_[f].file.entries[e].item.has_value()) places.push_back({f, e});
    }
  }
  return places;
}

std::string RuleTexts::PositionOf(const Place& place,
                                  const SourceRange& range) const {
  const Source& source = files_[place.file].source;
  const Source::Position position = source.PositionOf(range.begin);
  return absl::StrCat(source.name(), ":", position.line, ":", position.column);
}

LoadResult RuleTexts::Load(std::shared_ptr<Context> context) const {
  std::vector<NamedSource> sources;
  for (const File& file : files_) {
    sources.push_back({file.source.name(), file.text});
  }
  return LoadRules(sources, std::move(context), Trusted());
}

LoadResult RuleTexts::LoadWith(const Item& item, const Place& replaced,
                               const std::set<Place>& checked,
                               std::shared_ptr<Context> context) const {
  std::set<Place> moved = checked;
  moved.insert(replaced);
  RuleFile others;
  const auto add = [&](const Item& one) {
    RuleFile::Entry entry;
    entry.item = one;
    others.entries.push_back(std::move(entry));
  };
  add(item);
  for (const Place& place : checked) {
    if (replaced < place || place < replaced) add(this->item(place));
  }
  std::vector<NamedSource> sources;
  for (size_t f = 0; f < files_.size(); ++f) {
    const auto first = moved.lower_bound({f, 0});
    if (first == moved.end() || first->file != f) {
      sources.push_back({files_[f].source.name(), files_[f].text});
      continue;
    }
    RuleFile rest;
    for (size_t e = 0; e < files_[f].file.entries.size(); ++e) {
      if (moved.count({f, e}) == 0) {
        rest.entries.push_back(files_[f].file.entries[e]);
      }
    }
    sources.push_back({files_[f].source.name(), PrintRuleFile(rest)});
  }
  LoadResult base = LoadRules(sources, std::move(context), Trusted());
  if (base.rules == nullptr) return base;
  return ExtendRules(std::move(base.rules),
                     {"mutant.rules", PrintRuleFile(others)});
}

}  // namespace cleave
