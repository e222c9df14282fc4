"""What the linker is told so that calls go through testing/broken/broken.cc."""

_FUNCTIONS = [
    "_ZN6cleave13EvalReferenceENS_9PrimitiveERKNS_10AttributesEN4absl7debian34SpanIKNS_6TensorEEE",
    "_ZN6cleave8EvalRealENS_9PrimitiveERKNS_10AttributesEN4absl7debian34SpanIKNS_10RealTensorEEEi",
    "_ZN6cleave12EvalIntervalENS_9PrimitiveERKNS_10AttributesEN4absl7debian34SpanIKNS_14IntervalTensorEEEi",
    "_ZN6cleave12JvpPrimitiveERKNS_7JvpNodeE",
    "_ZN6cleave18TransposePrimitiveERKNS_13TransposeNodeE",
    "_ZN6cleave14BatchPrimitiveERKNS_9BatchNodeE",
    "_ZN6cleave7CompileERKNS_5GraphERKNS_7RuleSetERKNS_14CompileOptionsE",
]

BROKEN_LINKS = ["-Wl,--wrap=" + function for function in _FUNCTIONS]
