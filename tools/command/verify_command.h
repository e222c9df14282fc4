// The verb `verify-certificate`: is a file of certificates true?

#ifndef CLEAVE_TOOLS_COMMAND_VERIFY_COMMAND_H_
#define CLEAVE_TOOLS_COMMAND_VERIFY_COMMAND_H_

#include "tools/command/check_command.h"
#include "tools/command/command_line.h"

namespace cleave {

void AddVerifyCertificate(CommandLine& line, const KernelLayer& kernels);

}  // namespace cleave

#endif  // CLEAVE_TOOLS_COMMAND_VERIFY_COMMAND_H_
