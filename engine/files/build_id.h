// BuildIdOf: which build of a program or shared library this is.
//
//   std::string id = BuildIdOf(reinterpret_cast<const void*>(&SomeFunction));
//
// A linker notes a hash of all that it linked in what it writes (`ld
// --build-id`, which GCC asks for on Debian). Results that a process keeps for
// the next one name it, so that those of other code are not taken.

#ifndef CLEAVE_ENGINE_FILES_BUILD_ID_H_
#define CLEAVE_ENGINE_FILES_BUILD_ID_H_

#include <string>

namespace cleave {

// The bytes of the build id of the loaded program or shared library that
// `address` lies in. Empty where it lies in none, or where the linker noted no
// id. Microseconds: nothing is read from disk.
std::string BuildIdOf(const void* address);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_FILES_BUILD_ID_H_
