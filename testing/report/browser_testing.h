// A headless Chromium, where the machine has one: tests look at pages with it.

#ifndef CLEAVE_TESTING_REPORT_BROWSER_TESTING_H_
#define CLEAVE_TESTING_REPORT_BROWSER_TESTING_H_

#include <string>
#include <vector>

namespace cleave {

// Its path; empty where there is none: then the test is skipped.
std::string Chromium();

// The words that the script of `probe`, an HTML page which becomes a file of
// the folder, leaves in the attribute data-found of its body; none, and the
// test fails, where it leaves nothing. Files of the folder may read
// one another; the browser's profile is kept there.
std::vector<std::string> FoundBy(const std::string& probe,
                                 const std::string& folder, bool dark);

}  // namespace cleave

#endif  // CLEAVE_TESTING_REPORT_BROWSER_TESTING_H_
