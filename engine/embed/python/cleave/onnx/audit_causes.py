"""Why bodies that ONNX ships are off, as somebody found out by reading them."""

from ..auditing import CONVENTION, THEIRS, Cause

_VARIANCE = ("takes the variance as E[x^2] - E[x]^2, which cancels where the "
             "mean is large, and is below 0 then: its root is NaN")
_STAGE = "; of f64 it computes in f32, as `stash_type` says"
_ZERO_TIMES = "multiplies -inf by a factor that is 0 there; the limit is 0"

CAUSES = [
    Cause("Softplus", "*", THEIRS,
          "`log(exp(x) + 1)` overflows, and is 0 where exp(x) is far below 1"),
    Cause("Elu", "*", THEIRS, "`exp(x) - 1` cancels near 0"),
    Cause("Selu", "*", THEIRS, "`alpha * exp(x) - alpha` cancels near 0"),
    Cause("Gelu", "*", THEIRS,
          "`1 + erf(..)` and `1 + tanh(..)` cancel below 0, and -inf times 0 "
          "is NaN; its constants are numbers of f32"),
    Cause("HardSwish", "*", THEIRS,
          _ZERO_TIMES + ". 1/6 is a number of f32"),
    Cause("Mish Swish SwiGLU", "*", THEIRS,
          _ZERO_TIMES + ". In f16 and bf16 the factor has few digits where it "
          "is small"),
    Cause("Attention", "*", CONVENTION,
          "a row of scores that are all -inf is NaN; ours is 0, as PyTorch's "
          "and as where all are masked. Of f64 its scale is a number of f32"),
    Cause("CausalConvWithState", "*", THEIRS,
          "its silu " + _ZERO_TIMES),
    Cause("Softsign", "*", THEIRS, "inf / (1 + inf) is NaN; the limit is 1"),
    Cause("LogSoftmax", "*", THEIRS,
          "`(x - max) - log(sum)` cancels for the largest element, where the "
          "sum is little more than 1: it has no log1p"),
    Cause("LayerNormalization GroupNormalization", "*", THEIRS,
          _VARIANCE + _STAGE),
    Cause("MeanVarianceNormalization", "*", THEIRS,
          _VARIANCE + "; of other dtypes than f32 it has no types, since its "
          "constants are numbers of f32"),
    Cause("RMSNormalization", "*", CONVENTION,
          "of f64 it computes in f32, as `stash_type` says; ours keeps f64"),
    Cause("ReduceL2", "*", THEIRS, "of f64 it takes the root in f32"),
    Cause("ReduceLogSumExp", "*", THEIRS,
          "sums exp(x) without taking the largest x out: it overflows, also in "
          "the f64 that it computes in"),
    Cause("NegativeLogLikelihoodLoss", "*", CONVENTION,
          "without `ignore_index` a label of -1 has no meaning in ONNX: it "
          "takes the last class, ours leaves the element out"),
    Cause("SoftmaxCrossEntropyLoss", "*", THEIRS,
          "rounds the logarithm to f16 before it weighs it: a subnormal number "
          "has few digits"),
    Cause("Clip", "*", CONVENTION,
          "passes over a bound that is NaN; NumPy's clip, which ONNX's "
          "reference is, gives NaN"),
]
