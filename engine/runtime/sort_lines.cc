#include "engine/runtime/sort_lines.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "ops/check.h"

namespace cleave::internal_kernel {
namespace {

// Below this many elements comparisons are faster than passes over digits.
constexpr int64_t kShort = 96;

constexpr int kDigitBits = 8;
constexpr int kDigits = 1 << kDigitBits;

// An unsigned number for each element, in the order of the elements.
template <typename Key>
Key FromSigned(Key bits) {
  return bits ^ (Key{1} << (8 * sizeof(Key) - 1));
}

// `infinity` has the bits of the dtype's infinity.
template <typename Key>
Key FromFloat(Key bits, Key infinity) {
  constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
  const Key size = bits & static_cast<Key>(~kSign);
  if (size > infinity) return static_cast<Key>(-1);  // NaN
  if (size == 0) return kSign;                       // either zero
  return static_cast<Key>((bits & kSign) != 0 ? ~bits : bits | kSign);
}

template <typename Key>
struct Keyed {
  Key key;
  uint32_t index;
};

// One after the other by digits, the lowest first, which keeps equal ones in
// order. The result is in `line`; `other` has as much room.
template <typename Key>
void SortByDigits(absl::Span<Keyed<Key>>& line, absl::Span<Keyed<Key>>& other) {
  std::array<std::array<uint32_t, kDigits>, sizeof(Key)> counts = {};
  for (const Keyed<Key>& one : line) {
    for (size_t d = 0; d < sizeof(Key); ++d) {
      ++counts[d][(one.key >> (kDigitBits * d)) & (kDigits - 1)];
    }
  }
  for (size_t d = 0; d < sizeof(Key); ++d) {
    std::array<uint32_t, kDigits>& places = counts[d];
    const auto digit = [d](const Keyed<Key>& one) {
      return (one.key >> (kDigitBits * d)) & (kDigits - 1);
    };
    // All have that digit in common.
    if (places[digit(line[0])] == line.size()) continue;
    uint32_t next = 0;
    for (uint32_t& place : places) {
      const uint32_t count = place;
      place = next;
      next += count;
    }
    for (const Keyed<Key>& one : line) other[places[digit(one)]++] = one;
    std::swap(line, other);
  }
}

// Whether a precedes b, which no other element has the index of.
template <typename Key>
bool Precedes(const Keyed<Key>& a, const Keyed<Key>& b) {
  return a.key != b.key ? a.key < b.key : a.index < b.index;
}

template <typename Key>
void SortKeyed(absl::Span<Keyed<Key>>& line, absl::Span<Keyed<Key>>& other) {
  if (static_cast<int64_t>(line.size()) >= kShort) {
    SortByDigits(line, other);
    return;
  }
  std::sort(line.begin(), line.end(), Precedes<Key>);
}

// Elements that are looked at together: mostly none is among the first.
constexpr int64_t kBlock = 32;
// Up to this many are kept in order while the others go by.
constexpr int64_t kFew = 64;

// The first `count` elements of a line of at least as many, in order, by
// `key_at` the key of each.
template <typename Key, typename KeyAt>
void TakeFirst(int64_t length, int64_t count, KeyAt key_at, Keyed<Key>* first) {
  int64_t taken = 0;
  // An equal one that comes later is none of the first.
  const auto take = [&](Key key, int64_t index) {
    if (taken == count && key >= first[count - 1].key) return;
    int64_t place = taken < count ? taken++ : count - 1;
    for (; place > 0 && key < first[place - 1].key; --place) {
      first[place] = first[place - 1];
    }
    first[place] = {key, static_cast<uint32_t>(index)};
  };
  int64_t i = 0;
  for (; i < count; ++i) take(key_at(i), i);
  for (; i + kBlock <= length; i += kBlock) {
    std::array<Key, kBlock> keys;
    for (int64_t k = 0; k < kBlock; ++k) keys[k] = key_at(i + k);
    const Key last = first[count - 1].key;
    bool any = false;
    for (int64_t k = 0; k < kBlock; ++k) any |= keys[k] < last;
    if (!any) continue;
    for (int64_t k = 0; k < kBlock; ++k) take(keys[k], i + k);
  }
  for (; i < length; ++i) take(key_at(i), i);
}

// The first `count` elements of `line` in order: those of the result.
template <typename Key>
void SortFirst(int64_t count, absl::Span<Keyed<Key>>& line,
               absl::Span<Keyed<Key>>& other) {
  if (2 * count >= static_cast<int64_t>(line.size())) {
    SortKeyed(line, other);
    return;
  }
  std::nth_element(line.begin(), line.begin() + count, line.end(),
                   Precedes<Key>);
  std::sort(line.begin(), line.begin() + count, Precedes<Key>);
}

// Sorts by `key_of` the bits of an element.
template <typename Key, typename KeyOf>
absl::Status Sort(const SortedArray& array, KernelCall& call, KeyOf key_of) {
  const int64_t length = array.shape[array.axis];
  int64_t lines = 1;
  int64_t step = 1;
  for (size_t d = 0; d < array.shape.size(); ++d) {
    if (static_cast<int64_t>(d) == array.axis) continue;
    lines *= array.shape[d];
    if (static_cast<int64_t>(d) > array.axis) step *= array.shape[d];
  }
  const int64_t count = std::min(length, array.limit);
  if (count == 0) return absl::OkStatus();
  CLEAVE_CHECK(length <= UINT32_MAX) << length;
  const size_t bytes = 2 * length * sizeof(Keyed<Key>);
  std::atomic<bool> refused{false};
  const auto* const x = static_cast<const Key*>(array.x);
  auto* const values = static_cast<Key*>(array.values);
  call.ParallelFor(lines, [&](int64_t begin, int64_t end) {
    void* const room = call.Allocate(bytes);
    if (room == nullptr) {
      refused = true;
      return;
    }
    auto* const keyed = static_cast<Keyed<Key>*>(room);
    absl::Span<Keyed<Key>> line(keyed, length);
    absl::Span<Keyed<Key>> other(keyed + length, length);
    for (int64_t l = begin; l < end; ++l) {
      const int64_t first = l / step * step * length + l % step;
      const Key turned = array.descending ? static_cast<Key>(-1) : Key{0};
      const auto key_at = [&](int64_t i) {
        return static_cast<Key>(key_of(x[first + i * step]) ^ turned);
      };
      if (count <= kFew && count < length) {
        TakeFirst<Key>(length, count, key_at, line.data());
      } else {
        for (int64_t i = 0; i < length; ++i) {
          line[i] = {key_at(i), static_cast<uint32_t>(i)};
        }
        SortFirst(count, line, other);
      }
      for (int64_t i = 0; i < count; ++i) {
        const int64_t at = first + i * step;
        if (values != nullptr) values[at] = x[first + line[i].index * step];
        if (array.indices != nullptr) array.indices[at] = line[i].index;
      }
    }
    KernelCall::Free(room);
  });
  if (!refused) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("no memory for ", bytes, " bytes, to sort"));
}

template <typename Key>
absl::Status SortIntegers(const SortedArray& array, KernelCall& call) {
  if (IsInt(array.dtype) && IsSigned(array.dtype)) {
    return Sort<Key>(array, call, [](Key bits) { return FromSigned(bits); });
  }
  return Sort<Key>(array, call, [](Key bits) { return bits; });
}

template <typename Key>
absl::Status SortFloats(const SortedArray& array, KernelCall& call,
                        Key infinity) {
  return Sort<Key>(array, call,
                   [infinity](Key bits) { return FromFloat(bits, infinity); });
}

}  // namespace

absl::Status SortLines(const SortedArray& array, KernelCall& call) {
  switch (array.dtype) {
    case DType::kF16:
      return SortFloats<uint16_t>(array, call, 0x7c00);
    case DType::kBF16:
      return SortFloats<uint16_t>(array, call, 0x7f80);
    case DType::kF32:
      return SortFloats<uint32_t>(array, call, 0x7f800000);
    case DType::kF64:
      return SortFloats<uint64_t>(array, call, 0x7ff0000000000000);
    default:
      break;
  }
  switch (ByteSize(array.dtype)) {
    case 1:
      return SortIntegers<uint8_t>(array, call);
    case 2:
      return SortIntegers<uint16_t>(array, call);
    case 4:
      return SortIntegers<uint32_t>(array, call);
    default:
      CLEAVE_CHECK(ByteSize(array.dtype) == 8) << DTypeName(array.dtype);
      return SortIntegers<uint64_t>(array, call);
  }
}

}  // namespace cleave::internal_kernel
