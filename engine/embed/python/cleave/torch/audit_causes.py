"""Why PyTorch's decompositions and derivatives are off, as somebody found out by
reading their formulas."""

from cleave.auditing import CONVENTION, THEIRS, Cause

_TAIL = "`1 + erf(..)` cancels below 0, and -inf times 0 is NaN"
_MEANS = ("derivatives of mean and rstd are taken for 0; else digits are lost "
          "beside a large mean or weight")
_FOLDED = ("folds the mean into the bias, `x * s + (b - mean * s)`, which "
           "cancels")
_UPDATED = ("updates the mean element by element: inf - inf after the first "
            "infinity")

CAUSES = [
    # -- decompositions -------------------------------------------------------
    Cause("addcmul", "decomposition, kernel", THEIRS,
          "rounds the product before it adds: it overflows alone"),
    Cause("binary_cross_entropy_with_logits", "decomposition, kernel", THEIRS,
          "`(1 - t) x - log_sigmoid(x)` is inf - inf at infinite logits, and "
          "cancels at large ones"),
    Cause("gelu", "decomposition", THEIRS, _TAIL),
    Cause("gelu_backward", "decomposition", THEIRS,
          "the density is subnormal, and so has few digits, before the "
          "cotangent enlarges it"),
    Cause("group_norm native_group_norm", "decomposition", THEIRS, _FOLDED),
    Cause("hardswish", "decomposition, kernel", THEIRS,
          "multiplies -inf by 0; the limit is 0"),
    Cause("layer_norm native_layer_norm", "decomposition, kernel", THEIRS,
          "subtracts a mean that is rounded, and " + _UPDATED),
    Cause("*batch_norm*", "decomposition, kernel", THEIRS,
          "subtracts a mean that is rounded, and " + _UPDATED),
    Cause("var_mean* std*", "decomposition, kernel", THEIRS,
          "subtracts a mean that is rounded, and " + _UPDATED),
    Cause("lerp.*", "decomposition, kernel", THEIRS,
          "`end - start` overflows"),
    Cause("linalg_eigh _linalg_eigh linalg_svd _linalg_svd svd", "*",
          CONVENTION, "the signs of vectors, and the bases of equal values, "
          "are a library's"),
    Cause("lgamma", "decomposition, kernel", THEIRS,
          "overflows a little before the result does"),
    Cause("log_softmax*", "decomposition, kernel", THEIRS,
          "`(x - max) - log(sum)` cancels for the largest element"),
    Cause("mish", "decomposition, kernel", THEIRS,
          "-inf times 0 is NaN; the limit is 0. `tanh(log1p(exp(x)))` is "
          "subnormal before x enlarges it"),
    Cause("sigmoid", "decomposition, kernel", THEIRS,
          "`1 / (1 + exp(-x))`: exp overflows where the result is subnormal"),
    Cause("silu", "decomposition, kernel", THEIRS,
          "`x / (1 + exp(-x))`: exp overflows below -88, and -inf / inf is "
          "NaN; the limit is 0"),
    Cause("sinc", "*", THEIRS,
          "rounds pi x before it takes the sine or cosine: integers are no "
          "zeros, and all is lost at large x"),
    Cause("soft_margin_loss", "*", THEIRS,
          "`log1p(exp(-t x))` overflows, and its derivative is inf / inf"),
    Cause("special_log_ndtr", "decomposition, kernel", THEIRS,
          "`log(erfcx(..))` near 0, where erfcx of f32 is 4 ulp off"),
    Cause("grid_sampler_2d", "decomposition", CONVENTION,
          "what coordinates of NaN mean, and an infinite pixel without a "
          "weight", "not finite, special, lost NaN"),
    Cause("grid_sampler_2d", "*", THEIRS,
          "weights are differences of rounded coordinates", "inaccurate"),
    Cause("max_unpool*", "decomposition", CONVENTION,
          "an index below 0, which the kernel refuses, counts from behind"),
    # -- derivatives ----------------------------------------------------------
    Cause("asinh", "vjp, jvp", THEIRS,
          "`rsqrt(x^2 + 1)`: x^2 overflows from 1.8e19 on"),
    Cause("atan", "vjp, jvp", THEIRS,
          "`1 / (x^2 + 1)`: x^2 overflows where the result is subnormal"),
    Cause("binary_cross_entropy", "vjp, jvp", THEIRS,
          "the derivative in the target does not clamp the logarithms, as the "
          "loss does: inf times 0 at 0 and 1"),
    Cause("clamp.Tensor", "vjp, jvp", CONVENTION,
          "a value on a bound shares its derivative with the bound; "
          "rules/conventions.md", "inaccurate"),
    Cause("cosine_similarity", "vjp, jvp", THEIRS,
          "digits of a difference of projections, which cancels"),
    Cause("cumprod", "vjp, jvp", CONVENTION,
          "products with infinities beside zeros, in another order"),
    Cause("digamma", "vjp, jvp", THEIRS,
          "trigamma by reflection takes the sine of a rounded pi x: it misses "
          "the poles, and is NaN at large x"),
    Cause("erfinv", "vjp, jvp", THEIRS,
          "`exp(y^2)` enlarges the rounding of y near 1"),
    Cause("gelu", "vjp, jvp", THEIRS,
          _TAIL + "; so is inf times a density of 0 at inf"),
    Cause("gelu_backward", "vjp, jvp", THEIRS, _TAIL),
    Cause("sigmoid", "vjp, jvp", THEIRS, "`1 - y` cancels where y is near 1"),
    Cause("glu", "vjp, jvp", THEIRS,
          "`1 - sigmoid(b)` cancels where the sigmoid is near 1"),
    Cause("tanh", "vjp, jvp", THEIRS, "`1 - y^2` cancels where |y| is near 1"),
    Cause("silu mish", "vjp, jvp", THEIRS,
          "x times a derivative that is 0 at infinities is NaN; far below 0 "
          "exp overflows or cancels"),
    Cause("hypot", "vjp, jvp", CONVENTION,
          "0 / 0 at the origin, inf / inf at infinity; rules/conventions.md"),
    Cause("layer_norm native_layer_norm *batch_norm* group_norm",
          "vjp, jvp", THEIRS, _MEANS, "inaccurate, not finite, special"),
    Cause("*batch_norm*", "vjp", THEIRS,
          "divides the number of elements by that of channels, as integers: "
          "where there are none the process ends", "crash"),
    Cause("logaddexp", "vjp, jvp", THEIRS,
          "`1 / (1 + exp(b - a))`: exp overflows where the result is "
          "subnormal"),
    Cause("logcumsumexp", "vjp, jvp", THEIRS,
          "takes the cotangents through their logarithms, which costs digits"),
    Cause("logit", "vjp, jvp", CONVENTION,
          "outside (0, 1), where the value is NaN, ours is 1 / (x (1 - x)), as "
          "1 / x is for log"),
    Cause("renorm", "vjp, jvp", THEIRS,
          "digits of a difference that cancels where a row has one element"),
    Cause("rsqrt", "vjp, jvp", THEIRS,
          "`-y^3 / 2`: y^3 overflows below 1e-25; at -0 the sign is that of "
          "the zero"),
    Cause("softmax*", "vjp, jvp", THEIRS,
          "`y (dy - sum(dy y))` cancels where y is near 1"),
    Cause("std* var*", "vjp, jvp", THEIRS,
          "subtracts a mean that is rounded"),
    Cause("conv2d", "vjp, jvp", THEIRS, "digits of a sum in f32"),
    Cause("special_log_ndtr", "vjp, jvp", THEIRS,
          "`exp(-(y + x^2 / 2))` cancels far below 0"),
    Cause("triplet_margin_loss", "vjp, jvp", THEIRS,
          "digits of a difference of directions, which cancels"),
    Cause("xlogy.Tensor", "vjp, jvp", CONVENTION,
          "0 / 0 at 0; rules/conventions.md", "not finite, special"),
    Cause("topk sort*", "vjp, jvp", CONVENTION,
          "which of equal elements stands first"),
    Cause("max_unpool*", "vjp, jvp", THEIRS,
          "where an index occurs twice it is not the transpose of jvp"),
    Cause("*", "vjp, jvp", CONVENTION,
          "where the argument, a bound or the value is NaN, ours has no slope, "
          "and theirs passes the derivative on or stops it", "lost NaN"),
]
