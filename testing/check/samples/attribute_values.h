// AttributeValues: the values at which an attribute of a declaration is tried.

#ifndef CLEAVE_TESTING_CHECK_SAMPLES_ATTRIBUTE_VALUES_H_
#define CLEAVE_TESTING_CHECK_SAMPLES_ATTRIBUTE_VALUES_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/lang/ast.h"
#include "ops/dtype.h"
#include "ops/static_value.h"

namespace cleave {

// The dtypes of samples: all but complex ones and keys.
inline constexpr DType kSampledDTypes[] = {
    DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64,
    DType::kI32, DType::kU8,  DType::kI8,  DType::kU16,  DType::kI16,
    DType::kU32, DType::kU64, DType::kBool};

// == != < <= > >=.
const std::set<std::string>& ComparisonOperators();

// By the name of an attribute, constants.
using ComparedValues = std::map<std::string, std::vector<StaticValue>>;

// The literals with which an expression of the op compares an attribute: 20 for
// `threshold` in `if threshold < 20 then ..` and in `min(threshold, 20)`;
// numbers, also negative ones, infinities and strings. Where the sides are
// linear in one attribute, its value at which they are equal: 0 for `c` in
// `max(c, -c)`, 3 in `2 * c - 1 > 5`.
ComparedValues ComparedConstants(const Item& item);
// By the name of a size of the signature, the extents that it must have for the
// errors of the op: 3 where `n != 3` is one.
std::map<std::string, std::vector<int64_t>> RequiredSizes(const Item& item);

// The classes that the body or the spec asks of a dtype variable behind the
// first: bool of M in `if M is bool then ..`.
std::map<std::string, std::vector<DTypeClass>> AskedClasses(const Item& item);

// Each value of an enum or a bool, some numbers and those that `compared` has
// for it, dtypes that the `where` clause allows. Strings are those that
// `compared` has, and one more. Empty for axes.
std::vector<StaticValue> AttributeValues(const Item& item,
                                         const AttributeDecl& attribute,
                                         const ComparedValues& compared);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_SAMPLES_ATTRIBUTE_VALUES_H_
