// A headless Chromium, where the machine has one: tests look at pages with it.

#ifndef CLEAVE_TESTING_REPORT_BROWSER_TESTING_H_
#define CLEAVE_TESTING_REPORT_BROWSER_TESTING_H_

#include <string>

#include "absl/strings/string_view.h"

namespace cleave {

// Its path; empty where there is none: then the test is skipped.
std::string Chromium();

// The document of a file of `folder` after its scripts ran, as HTML, and what
// the browser complains of. Its profile is kept in the folder. Files may read
// one another.
std::string DumpDom(const std::string& folder, absl::string_view file,
                    bool dark);

}  // namespace cleave

#endif  // CLEAVE_TESTING_REPORT_BROWSER_TESTING_H_
