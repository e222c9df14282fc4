#include "tools/command/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

namespace cleave {

int TerminalWidth() {
  constexpr int kDefaultWidth = 80;
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return kDefaultWidth;
  }
  return size.ws_col;
}

}  // namespace cleave
