// PairCover: rows of choices in which every two choices meet (a pairwise
// covering array), built row by row, since a caller may refuse a row.
//
//   PairCover cover({3, 2, 4});             // three factors
//   while (auto row = cover.Next(random)) { // {2, 0, 3}
//     if (Takes(*row)) cover.Accept(*row); else cover.Reject(*row);
//   }
//   cover.ToString();  // "26 of 26 pairs in 12 combinations"

#ifndef CLEAVE_TESTING_CHECK_SAMPLES_PAIR_COVER_H_
#define CLEAVE_TESTING_CHECK_SAMPLES_PAIR_COVER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace cleave {

class PairCover {
 public:
  // `sizes[f]` is the number of choices of factor f, at least 1.
  explicit PairCover(std::vector<int> sizes);

  // A row with a pair that no accepted row has, and as many others as a greedy
  // choice finds; the first one is all zeros. A pair that several rows were
  // refused with is given up. Nullopt where none is left.
  std::optional<std::vector<int>> Next(std::mt19937_64& random);
  void Accept(const std::vector<int>& row);
  void Reject(const std::vector<int>& row);
  // No row is taken that has all the choices of `row` at `factors`, one of them
  // or the two of a pair: such pairs are none, and rows are not built of them.
  void Forbid(const std::vector<int>& row, const std::vector<int>& factors);
  // The choice at `factor` may be why `row` is refused: one that many refused
  // rows had, and no accepted one, is given up with all its pairs.
  void Suspect(const std::vector<int>& row, int factor);
  // The factors of the pair that the last row was built around; all of them for
  // the first row, which is around none.
  std::vector<int> Kept() const;

  int64_t pairs() const { return total_; }
  int64_t covered() const {
    return total_ - static_cast<int64_t>(open_.size());
  }
  int64_t rows() const { return rows_; }
  // "26 of 26 pairs in 12 combinations". Forbidden pairs are none of them.
  std::string ToString() const;

 private:
  // Two choices of two factors; the factor of the first is the smaller one.
  using Choice = std::pair<int, int>;
  using Pair = std::pair<Choice, Choice>;

  static Pair PairOf(const std::vector<int>& row, int a, int b);

  std::vector<int> sizes_;
  // The pairs that no accepted row has, and how many refused rows had them.
  std::map<Pair, int> open_;
  std::set<Choice> forbidden_;
  std::set<Choice> accepted_;
  std::map<Choice, int> suspected_;
  // The pair that the last row was built around.
  std::optional<Pair> seed_;
  int64_t total_ = 0;
  int64_t rows_ = 0;
  bool begun_ = false;
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_SAMPLES_PAIR_COVER_H_
