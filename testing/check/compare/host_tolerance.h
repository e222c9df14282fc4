// HostTolerance: how far a host kernel may be from the body of its op.
//
// Integers, bools and keys are to be what the body gives. So are NaN and the
// infinities, where nothing else is asked for; an infinity counts as the number
// behind the largest finite one where the body gives a finite number. A finite
// float is compared with what the body gives over the reals. It may be
//
//   ulp       units in the last place away, of its dtype, at that result (below
//             the normal numbers: of the smallest of them)
//   + spread  the sum, over the elements of the inputs, of how far the result
//             over the reals moves where that element moves by `input_ulp`
//             units in its last place: up and down, and the smaller one counts
//   + absolute
//
// The spread is a difference of two results, which were computed, and no
// condition number: it is small where the result is 0 and at a kink, and 0 at a
// jump. Where a result over the reals is not finite the element adds nothing.
//
// A kernel is right, too, where it gives the very value that the body gives in
// floating point, as where both overflow on the way: the notes of the verdict
// count these elements.

#ifndef CLEAVE_TESTING_CHECK_COMPARE_HOST_TOLERANCE_H_
#define CLEAVE_TESTING_CHECK_COMPARE_HOST_TOLERANCE_H_

namespace cleave {

struct HostTolerance {
  // Negative numbers and NaN count as 0.
  double ulp = 4;
  double input_ulp = 4;
  double absolute = 0;
  // False for kernels that promise nothing there: elements are left out, and
  // counted, where the body gives NaN or an infinity, and calls with one among
  // their inputs (of pointwise ops: elements). A kernel that gives NaN where
  // the body gives a number is wrong all the same.
  bool special_values = true;
  // True: zeros have the sign that the body's have. False: zeros of the other
  // sign are right, and counted.
  bool signed_zeros = false;
};

}  // namespace cleave

#endif  // CLEAVE_TESTING_CHECK_COMPARE_HOST_TOLERANCE_H_
