// The headers that most of the project's files include, compiled once: each
// file starts with them (see precompiled.bzl), which saves a third of the time
// that a file takes to compile. A file still includes what it uses:
//
//   bazel build --config=includes //...
//
// compiles each file without this header, and finds the includes it lacks.

#ifndef CLEAVE_TOOLS_PRECOMPILED_COMMON_H_
#define CLEAVE_TOOLS_PRECOMPILED_COMMON_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#endif  // CLEAVE_TOOLS_PRECOMPILED_COMMON_H_
