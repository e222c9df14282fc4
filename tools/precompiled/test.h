// The headers that the files of tests start with: common.h and GoogleTest.

#ifndef CLEAVE_TOOLS_PRECOMPILED_TEST_H_
#define CLEAVE_TOOLS_PRECOMPILED_TEST_H_

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/precompiled/common.h"

#endif  // CLEAVE_TOOLS_PRECOMPILED_TEST_H_
