// TransformOptions: what all transforms of a graph are told alike.
//
//   Vjp(f, {true}, rules, {/*keep_identity=*/true, /*recompute_loops=*/true})

#ifndef CLEAVE_TRANSFORMS_TABLE_TRANSFORM_OPTIONS_H_
#define CLEAVE_TRANSFORMS_TABLE_TRANSFORM_OPTIONS_H_

namespace cleave {

struct TransformOptions {
  // Batched composites stay calls where they can. Without it all of them become
  // what their bodies do: for measuring and testing what keeping them is worth.
  bool keep_identity = true;
  // Reverse mode saves the carries before each step of a scan, and computes the
  // rest of the step again, instead of saving what its derivative needs: less
  // memory for about one more run of the loop.
  bool recompute_loops = false;
  // Rules are simplified when they are made (engine/rewrite/simplify.h).
  bool simplify = true;
};

}  // namespace cleave

#endif  // CLEAVE_TRANSFORMS_TABLE_TRANSFORM_OPTIONS_H_
