// The process that loads an oracle's library. Internal to this folder.

#ifndef CLEAVE_TOOLS_ORACLE_WORKER_H_
#define CLEAVE_TOOLS_ORACLE_WORKER_H_

namespace cleave {

// The first argument of the worker, before the library and the symbol; no verb
// has such a name.
inline constexpr char kWorkerFlag[] = "--oracle-worker";

}  // namespace cleave

#endif  // CLEAVE_TOOLS_ORACLE_WORKER_H_
