#include "engine/rule_text/rule_names.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "engine/bind/builtins.h"
#include "engine/lang/lexer.h"
#include "engine/lang/precedence.h"
#include "engine/rules/rule_set_impl.h"
#include "ops/dim_internal.h"

namespace cleave {

RuleNames::RuleNames(const RuleSet& rules) {
  const Library& library = rules.impl().library;
  for (const auto& [name, unused] : library.callables()) foreign_.insert(name);
  for (const std::string& name : library.DefNames()) foreign_.insert(name);
  for (const std::string& word : library.enum_words()) foreign_.insert(word);
  for (const std::string& name : BuiltinNames()) foreign_.insert(name);
  for (const char* word : {"inf", "nan", "pi", "true", "false"}) {
    taken_.insert(word);
  }
}

std::string RuleNames::Own(absl::string_view wish) {
  std::string name(wish);
  for (int i = 1; internal::IsReservedWord(name) || !taken_.insert(name).second;
       ++i) {
    name = absl::StrCat(wish, "_", i);
  }
  return name;
}

std::string RuleNames::Fresh(char letter) {
  int& number = numbers_[letter];
  std::string name;
  do {
    name = absl::StrCat(std::string(1, letter), ++number);
  } while (foreign_.count(name) > 0 || !taken_.insert(name).second);
  return name;
}

std::string RuleNames::DimText(const Dim& dim) {
  const std::vector<DimTerm> terms = DimBuilder::Terms(dim);
  if (terms.empty()) return "0";
  std::string text;
  for (const DimTerm& term : terms) {
    std::vector<std::string> factors;
    if (term.coefficient != 1 || term.monomial.empty()) {
      factors.push_back(absl::StrCat(term.coefficient));
    }
    for (const DimFactor& factor : term.monomial) {
      const DimAtom& atom = *factor.atom;
      std::string part;
      if (atom.kind == DimAtom::Kind::kVariable) {
        auto known = variables_.find(atom.name);
        if (known == variables_.end()) {
          known =
              variables_
                  .emplace(atom.name,
                           Own(absl::StrReplaceAll(atom.name, {{".", "_"}})))
                  .first;
        }
        part = known->second;
      } else {
        std::vector<std::string> args;
        for (const Dim& arg : atom.args) args.push_back(DimText(arg));
        switch (atom.kind) {
          case DimAtom::Kind::kFloorDiv:
            part = absl::StrCat("((", args[0], ") // (", args[1], "))");
            break;
          case DimAtom::Kind::kMod:
            part = absl::StrCat("((", args[0], ") % (", args[1], "))");
            break;
          default:
            part = args[0];
            for (size_t i = 1; i < args.size(); ++i) {
              part = absl::StrCat(
                  atom.kind == DimAtom::Kind::kMin ? "min(" : "max(", part,
                  ", ", args[i], ")");
            }
        }
      }
      for (int i = 0; i < factor.power; ++i) factors.push_back(part);
    }
    absl::StrAppend(&text, text.empty() ? "" : " + ",
                    absl::StrJoin(factors, " * "));
  }
  return absl::StrReplaceAll(text, {{"+ -1 * ", "- "}, {"+ -", "- "}});
}

std::string RuleNames::ShapeText(const Shape& shape) {
  std::vector<std::string> extents;
  for (const Dim& extent : shape) extents.push_back(DimText(extent));
  return absl::StrCat("[", absl::StrJoin(extents, ", "), "]");
}

std::string RecordText(const std::vector<std::string>& names,
                       const std::vector<std::string>& values) {
  std::vector<std::string> fields;
  for (size_t i = 0; i < values.size(); ++i) {
    fields.push_back(absl::StrCat(names[i], " = ", values[i]));
  }
  return absl::StrCat("(", absl::StrJoin(fields, ", "), ")");
}

namespace {

// In decimal digits.
std::string Digits(mpz_srcptr integer) {
  char* const digits = mpz_get_str(nullptr, 10, integer);
  std::string text = digits;
  void (*release)(void*, size_t);
  mp_get_memory_functions(nullptr, nullptr, &release);
  release(digits, text.size() + 1);
  return text;
}

// An integer that is too long for a token, with its power of two apart:
// `2^1074`, `3 * 2^800`. `sign` joins the power: ` * ` above a fraction's line,
// ` / ` below.
std::string LongInteger(const std::string& digits, absl::string_view sign) {
  if (digits.size() <= kMaxNumberLength) return digits;
  mpz_t integer;
  mpz_init_set_str(integer, digits.c_str(), 10);
  const mp_bitcnt_t twos = mpz_scan1(integer, 0);
  mpz_tdiv_q_2exp(integer, integer, twos);
  std::string text = absl::StrCat("2^", static_cast<uint64_t>(twos));
  if (mpz_cmp_ui(integer, 1) != 0) {
    text = absl::StrCat(Digits(integer), sign, text);
  }
  mpz_clear(integer);
  return text;
}

}  // namespace

std::string NumberText(const Exact& value) {
  const std::string text = value.ToString();
  if (!absl::StartsWith(text, "#")) {
    if (text.size() <= kMaxNumberLength) return text;
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(text, absl::MaxSplits('/', 1));
    const std::string above = LongInteger(parts.first, " * ");
    if (parts.second.empty()) return above;
    return absl::StrCat(above, " / ", LongInteger(parts.second, " / "));
  }
  // An irrational one: its bits, as a fraction of integers.
  mpfr_t bits;
  mpfr_init2(bits, kExactBits);
  value.ToMpfr(bits);
  mpz_t integer;
  mpz_init(integer);
  const mpfr_exp_t exponent = mpfr_get_z_2exp(integer, bits);
  const std::string digits = Digits(integer);
  mpz_clear(integer);
  mpfr_clear(bits);
  return exponent >= 0 ? absl::StrCat(digits, " * 2^", exponent)
                       : absl::StrCat(digits, " / 2^", -exponent);
}

}  // namespace cleave
