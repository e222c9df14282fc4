// The version of the interfaces, for C++ (cleave.h), for C
// (engine/embed/cleave.h) and for what is made of them.

#ifndef CLEAVE_OPS_VERSION_H_
#define CLEAVE_OPS_VERSION_H_

// MAJOR changes where programs must, MINOR where there is more to call, PATCH
// where neither is so.
#define CLEAVE_VERSION_MAJOR 0
#define CLEAVE_VERSION_MINOR 1
#define CLEAVE_VERSION_PATCH 0
#define CLEAVE_VERSION_STRING "0.1.0"

#endif  // CLEAVE_OPS_VERSION_H_
