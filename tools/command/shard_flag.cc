#include "tools/command/shard_flag.h"

#include <algorithm>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ops/check.h"
#include "testing/certificate/sha256.h"

namespace cleave {
namespace {

std::optional<std::pair<int, int>> Parse(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, '/');
  int shard = 0;
  int shards = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &shard) ||
      !absl::SimpleAtoi(parts[1], &shards) || shard < 1 || shard > shards) {
    return std::nullopt;
  }
  return std::make_pair(shard, shards);
}

}  // namespace

Option AddShardFlag(Verb& verb, std::string& shard, const std::string& what) {
  return verb
      .Add("--shard", shard,
           absl::StrCat("2/4: the second of four parts of the ", what,
                        "; `cleave merge` makes one of their --json reports"))
      .Check([](const std::string& text) {
        return Parse(text) ? std::string()
                           : text + " is no shard as 2/4 is one";
      });
}

std::pair<int, int> ParsedShard(const std::string& shard) {
  if (shard.empty()) return {1, 1};
  const std::optional<std::pair<int, int>> parsed = Parse(shard);
  CLEAVE_CHECK(parsed.has_value()) << shard;
  return *parsed;
}

std::string HashOfTexts(const std::vector<NamedSource>& texts) {
  std::vector<std::string> hashes;
  for (const NamedSource& source : texts) {
    hashes.push_back(Sha256(absl::StrCat(source.name, "\n", source.text)));
  }
  std::sort(hashes.begin(), hashes.end());
  std::string all;
  for (const std::string& hash : hashes) absl::StrAppend(&all, hash, "\n");
  return Sha256(all);
}

}  // namespace cleave
