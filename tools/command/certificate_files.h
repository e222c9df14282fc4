// Files of certificates, as verbs of the program read them.

#ifndef CLEAVE_TOOLS_COMMAND_CERTIFICATE_FILES_H_
#define CLEAVE_TOOLS_COMMAND_CERTIFICATE_FILES_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "testing/certificate/certificate.h"

namespace cleave {

// The file of certificates, where there is one: a device has none. One that
// cannot be read is an error.
absl::StatusOr<std::optional<CertificateFile>> ReadCertificates(
    const std::string& path);

// The certificates that came with the rules of the given folders, by the names
// of their files. A file that is damaged certifies nothing, and is complained
// of.
std::vector<std::pair<std::string, CertificateFile>> ReadShippedCertificates(
    const std::vector<std::string>& folders);

}  // namespace cleave

#endif  // CLEAVE_TOOLS_COMMAND_CERTIFICATE_FILES_H_
