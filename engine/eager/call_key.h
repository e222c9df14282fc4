// MakeCallKey: what a call of an op says, as bytes, so that a session finds the
// kernel of a call that it has run before, without a graph. Internal to
// engine/eager.
//
// The key has the op's name, the arguments' dtypes and shapes, which of them
// share a storage, its numbers and its attributes. Two calls of one key have
// one graph. Calls that say more have no key and go by the graph: tensors that
// wait for a run, views, sizes without a value, regions.

#ifndef CLEAVE_ENGINE_EAGER_CALL_KEY_H_
#define CLEAVE_ENGINE_EAGER_CALL_KEY_H_

#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "engine/eager/call.h"
#include "engine/eager/storage.h"
#include "ops/static_value.h"

namespace cleave::functional {

// The storages of the arguments' tensors, counted through lists.
using CallStorages = absl::InlinedVector<const Storage*, 8>;

// Sets `key` and `storages`, whatever they were before. False for a call that
// has no key. O(arguments and their ranks, and attributes).
bool MakeCallKey(absl::string_view op,
                 const std::vector<CallArgument>& arguments,
                 const Attributes& attributes, std::string* key,
                 CallStorages* storages);

}  // namespace cleave::functional

#endif  // CLEAVE_ENGINE_EAGER_CALL_KEY_H_
