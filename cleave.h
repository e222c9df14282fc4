// Cleave: an operator decomposition and transform rule engine. This header is
// all that a program needs: rules in, graphs out, run and checked.
//
//   #include "cleave.h"
//
//   auto rules = *cleave::ShippedRulesWith(R"(language 1
//   fn f(x: f32[n]) -> f32[n] = silu(x)
//   )");
//   cleave::Graph f = *rules->Function("f");
//   cleave::Graph jvp = cleave::Jvp(f, {true}, *rules)->graph;
//   auto y = cleave::Evaluate(jvp, *rules, {x, dx});   // y and its tangent
//
// The shipped rules are in the program. Each call returns a status where it
// fails, which a program looks at before it takes the value by `*`.
//
// In Bazel it is the target //:cleave. Parts of it stand by themselves, each
// with a header that says what it is for; a program that wants less includes
// these instead.

#ifndef CLEAVE_CLEAVE_H_
#define CLEAVE_CLEAVE_H_

// Graphs of operations: built, printed, parsed, run.
#include "engine/ir/graph.h"
#include "engine/ir/graph_text.h"
#include "engine/ir/host_kernel.h"
#include "engine/ir/interpreter.h"

// Rules: loaded, extended, expanded to primitives, simplified, evaluated.
#include "engine/rewrite/evaluate.h"
#include "engine/rewrite/expand.h"
#include "engine/rewrite/simplify.h"
#include "engine/rules/rule_files.h"
#include "engine/rules/rule_set.h"

// Transforms of graphs, and how each op gets them.
#include "transforms/derived_rules.h"
#include "transforms/jvp/jvp.h"
#include "transforms/report/coverage.h"
#include "transforms/shipped_rules/shipped_rules.h"
#include "transforms/vjp/derivatives.h"
#include "transforms/vjp/vjp.h"
#include "transforms/vmap/vmap.h"

// Whether rules mean what their ops mean.
#include "testing/check/check.h"
#include "testing/check/layers/check_kernels.h"

// CLEAVE_VERSION_STRING, and its numbers.
#include "ops/version.h"

#endif  // CLEAVE_CLEAVE_H_
