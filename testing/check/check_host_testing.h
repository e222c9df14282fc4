// For tests of the layer of host kernels: verdicts on kernels of the op
// `checked` that a rule text declares, and kernels in a few lines.

#ifndef CLEAVE_TESTING_CHECK_CHECK_HOST_TESTING_H_
#define CLEAVE_TESTING_CHECK_CHECK_HOST_TESTING_H_

#include <functional>
#include <string>
#include <vector>

#include "engine/ir/host_kernel.h"
#include "testing/check/check.h"
#include "testing/check/compare/verdict.h"

namespace cleave {

// The options for the layer of host kernels alone, with this one for `checked`.
CheckOptions WithKernel(HostFunction kernel);

// The verdict on the kernel of `checked`, which `text` declares without the
// line of the language. No verdict is a failure of the test.
Verdict CheckHost(const std::string& text, const CheckOptions& options);
Verdict CheckHost(const std::string& text, HostFunction kernel);

// For messages of failures.
std::string Shown(const Verdict& verdict);

// f of each element of the operands, which have one shape, rounded once.
HostFunction Pointwise(
    std::function<double(const std::vector<double>&, const HostCall&)> f);
HostFunction OfOne(double (*f)(double));

// f of each lane along the attribute `axis` (or along the axis that it would be
// counted from behind): its elements, or the one that is left of them.
HostFunction AlongAxis(
    std::function<std::vector<double>(const std::vector<double>& lane,
                                      const HostCall& call)>
        f,
    bool wrong_axis = false);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_CHECK_HOST_TESTING_H_
