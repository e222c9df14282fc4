// Sha256: the hash of rules, which nobody can make another rule's.
//
//   Sha256("abc");  // "ba7816bf8f01cfea414140de5dae2223b00361a3.."

#ifndef CLEAVE_TESTING_CERTIFICATE_SHA256_H_
#define CLEAVE_TESTING_CERTIFICATE_SHA256_H_

#include <string>

#include "absl/strings/string_view.h"

namespace cleave {

// 64 hexadecimal digits.
std::string Sha256(absl::string_view bytes);

}  // namespace cleave

#endif  // CLEAVE_TESTING_CERTIFICATE_SHA256_H_
