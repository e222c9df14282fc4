#include "testing/check/samples/pair_cover.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace cleave {
namespace {

// Refused rows after which a pair is taken for one that no call has.
constexpr int kMaxRefusals = 4;
// The same of a choice.
constexpr int kMaxSuspicions = 24;

}  // namespace

PairCover::PairCover(std::vector<int> sizes) : sizes_(std::move(sizes)) {
  // The choices of a single factor meet the only one of another.
  while (sizes_.size() < 2) sizes_.push_back(1);
  const int factors = static_cast<int>(sizes_.size());
  for (int a = 0; a < factors; ++a) {
    for (int b = a + 1; b < factors; ++b) {
      for (int i = 0; i < sizes_[a]; ++i) {
        for (int j = 0; j < sizes_[b]; ++j) open_[{{a, i}, {b, j}}] = 0;
      }
    }
  }
  total_ = static_cast<int64_t>(open_.size());
}

PairCover::Pair PairCover::PairOf(const std::vector<int>& row, int a, int b) {
  return {{a, row[a]}, {b, row[b]}};
}

std::optional<std::vector<int>> PairCover::Next(std::mt19937_64& random) {
  const int factors = static_cast<int>(sizes_.size());
  if (!begun_) {
    begun_ = true;
    seed_.reset();
    return std::vector<int>(factors, 0);
  }
  // Pairs that were not refused yet come first.
  int fewest = kMaxRefusals;
  std::vector<Pair> candidates;
  for (const auto& [pair, refusals] : open_) {
    if (refusals > fewest || refusals >= kMaxRefusals) continue;
    if (refusals < fewest) candidates.clear();
    fewest = refusals;
    candidates.push_back(pair);
  }
  if (candidates.empty()) return std::nullopt;
  seed_ = candidates[random() % candidates.size()];
  std::vector<int> row(factors, -1);
  row[seed_->first.first] = seed_->first.second;
  row[seed_->second.first] = seed_->second.second;
  std::vector<int> order;
  for (int f = 0; f < factors; ++f) {
    if (row[f] < 0) order.push_back(f);
  }
  std::shuffle(order.begin(), order.end(), random);
  for (int f : order) {
    // A row that was refused may be taken where the others are the first
    // choices, the defaults.
    if (fewest > 1) {
      row[f] = 0;
      continue;
    }
    int best = -1;
    int chosen = 0;
    const int first = static_cast<int>(random() % sizes_[f]);
    for (int k = 0; k < sizes_[f]; ++k) {
      const int choice = (first + k) % sizes_[f];
      if (forbidden_.count({f, choice}) != 0) continue;
      row[f] = choice;
      int gain = 0;
      for (int other = 0; other < factors; ++other) {
        if (other == f || row[other] < 0) continue;
        const auto it =
            open_.find(PairOf(row, std::min(f, other), std::max(f, other)));
        gain += it != open_.end() && it->second == 0;
      }
      if (gain > best) {
        best = gain;
        chosen = choice;
      }
    }
    row[f] = chosen;
  }
  return row;
}

void PairCover::Accept(const std::vector<int>& row) {
  ++rows_;
  for (size_t f = 0; f < row.size(); ++f) {
    accepted_.insert({static_cast<int>(f), row[f]});
  }
  for (size_t a = 0; a < sizes_.size(); ++a) {
    for (size_t b = a + 1; b < sizes_.size(); ++b) {
      open_.erase(PairOf(row, static_cast<int>(a), static_cast<int>(b)));
    }
  }
}

void PairCover::Reject(const std::vector<int>& row) {
  if (seed_) {
    const auto it = open_.find(*seed_);
    if (it != open_.end()) ++it->second;
    return;
  }
  // The defaults, around no pair: others may be taken.
  for (size_t a = 0; a < sizes_.size(); ++a) {
    for (size_t b = a + 1; b < sizes_.size(); ++b) {
      const auto it =
          open_.find(PairOf(row, static_cast<int>(a), static_cast<int>(b)));
      if (it != open_.end()) ++it->second;
    }
  }
}

void PairCover::Forbid(const std::vector<int>& row,
                       const std::vector<int>& factors) {
  const auto has = [&row](const Choice& choice) {
    return row[choice.first] == choice.second;
  };
  const auto among = [&factors](int factor) {
    return std::find(factors.begin(), factors.end(), factor) != factors.end();
  };
  if (factors.size() == 1) {
    forbidden_.insert({factors[0], row[factors[0]]});
  }
  for (auto it = open_.begin(); it != open_.end();) {
    const auto& [a, b] = it->first;
    const bool first = among(a.first) && has(a);
    const bool second = among(b.first) && has(b);
    if (factors.size() == 1 ? first || second : first && second) {
      it = open_.erase(it);
      --total_;
    } else {
      ++it;
    }
  }
}

void PairCover::Suspect(const std::vector<int>& row, int factor) {
  const Choice choice = {factor, row[factor]};
  if (accepted_.count(choice) != 0) return;
  if (++suspected_[choice] != kMaxSuspicions) return;
  forbidden_.insert(choice);
  for (auto& [pair, refusals] : open_) {
    if (pair.first == choice || pair.second == choice) refusals = kMaxRefusals;
  }
}

std::vector<int> PairCover::Kept() const {
  if (seed_) return {seed_->first.first, seed_->second.first};
  std::vector<int> all;
  for (size_t f = 0; f < sizes_.size(); ++f) all.push_back(static_cast<int>(f));
  return all;
}

std::string PairCover::ToString() const {
  return absl::StrCat(covered(), " of ", pairs(), " pairs in ", rows(),
                      " combinations");
}

}  // namespace cleave
