// The names that writing and reading certificates share. Internal to
// certificate.h.

#ifndef CLEAVE_TESTING_CERTIFICATE_CERTIFICATE_JSON_H_
#define CLEAVE_TESTING_CERTIFICATE_CERTIFICATE_JSON_H_

#include <string>

#include "nlohmann/json_fwd.hpp"

namespace cleave {

inline constexpr char kCertificateFormat[] = "cleave-certificates/1";

// On one line.
std::string Dump(const nlohmann::json& value);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CERTIFICATE_CERTIFICATE_JSON_H_
