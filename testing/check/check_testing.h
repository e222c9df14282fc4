// For tests of the checker: the verdicts on the ops of a rule text.

#ifndef CLEAVE_TESTING_CHECK_CHECK_TESTING_H_
#define CLEAVE_TESTING_CHECK_CHECK_TESTING_H_

#include <cstdint>
#include <memory>
#include <string>

#include "testing/check/check.h"

namespace cleave {

// Loads `text` as the file `name` beside shipped derivatives and numerics of
// primitives. A mistake in the rules fails the test; null is then returned.
std::shared_ptr<const RuleSet> LoadText(const std::string& name,
                                        const std::string& text);

// The report of CheckRules, whose error fails the test; it is then empty.
CheckReport CheckedRules(std::shared_ptr<const RuleSet> rules,
                         const CheckOptions& options);

// Loads `text` as the file `name` beside shipped derivatives and numerics of
// primitives, and checks the ops that `ops` matches, without a limit of time;
// with L6 if `kernels`. A mistake in the rules fails the test; the report is
// then empty.
CheckReport CheckText(const std::string& name, const std::string& text,
                      const std::string& ops, bool kernels = false);

// The same at another seed.
CheckReport CheckTextAt(const std::string& name, const std::string& text,
                        const std::string& ops, uint64_t seed);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_CHECK_TESTING_H_
