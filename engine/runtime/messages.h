// Where the runtime says what no status of a caller can: that the interpreter
// computes in place of kernels, and what a kernel prints.

#ifndef CLEAVE_ENGINE_RUNTIME_MESSAGES_H_
#define CLEAVE_ENGINE_RUNTIME_MESSAGES_H_

#include <string>

namespace cleave {

// Gets a message of one or more lines, without the last line end. Called by any
// thread, one at a time; it must not set the sink.
using MessageSink = void (*)(void* context, const char* message);

// For the whole process. Null stands for standard error, where messages go
// until a sink is set. When it returns, the sink before is not called any more.
void SetMessageSink(MessageSink sink, void* context);

void Say(const std::string& message);

}  // namespace cleave

#endif  // CLEAVE_ENGINE_RUNTIME_MESSAGES_H_
