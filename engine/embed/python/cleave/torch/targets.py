"""The aten ops that lack a transform in PyTorch, and what patch_aten gives
them.

Measured with torch_opinfo.py: without the slow fallback of vmap, these have no
batching rule, no forward formula, no second derivative, or one that is wrong.
"""

from __future__ import annotations

import dataclasses
from typing import Callable


@dataclasses.dataclass(frozen=True)
class Target:
    """One overload, `packet.overload`.

    batch      gets a batching rule, where PyTorch has none
    autograd   leaves PyTorch's kernel where an input has a tangent
    second     does so where an input requires a gradient, too: PyTorch has no
               derivative of the op, or a zero
    composite  does so where an input belongs to a functorch transform: PyTorch
               decomposes the op into some that lack the transform
    gradient   the forward op, the inputs whose cotangents the op returns, the
               arguments that are cotangents, and those that are renamed
    when       a condition on the arguments
    updates    PyTorch's kernel runs as well, for the arguments that it updates
               and for the results that the rule does not have
    rule       the rule's name, where it is not the op's
    fixed      attributes of the rule that the op has no argument for
    own        the batching rule is PyTorch's own decomposition, which it does
               not use under vmap
    twin       the op without `_` whose result replaces the first argument
    """

    name: str
    batch: bool = True
    autograd: bool = False
    second: bool = False
    composite: bool = False
    gradient: tuple | None = None
    when: Callable | None = None
    updates: bool = False
    rule: str | None = None
    fixed: dict | None = None
    own: bool = False
    twin: str | None = None

    @property
    def plain(self) -> bool:
        """Whether a first derivative, in reverse, needs the entry."""
        return self.second and self.gradient is None

    @property
    def what(self) -> str:
        """The transforms under autograd, as the report has them."""
        if self.composite:
            return "all transforms of torch.func"
        return "jvp and second derivatives" if self.second else "jvp"


def _is_product(args, kwargs) -> bool:
    reduce = args[4] if len(args) > 4 else kwargs.get("reduce")
    return reduce == "prod"


def _trains(place: int) -> Callable:
    def when(args, kwargs):
        return args[place] if len(args) > place else kwargs["training"]
    return when


def _batch_norm(name: str, when: Callable | None) -> Target:
    """The derivatives of the batch's statistics are lost in PyTorch."""
    return Target(name, batch=False, autograd=True, when=when, updates=True,
                  rule="aten.native_batch_norm", fixed={"training": True})


def _backward(name: str, forward: str, wrt=("self",),
              cotangents=("grad_output",), renamed=None,
              second: bool = True) -> Target:
    return Target(name, autograd=True, second=second,
                  gradient=(forward, wrt, cotangents, renamed))


_POLYNOMIALS = tuple(
    Target(f"special_{family}_polynomial_{letter}", second=True)
    for family, letters in (("chebyshev", "tuvw"),
                            ("shifted_chebyshev", "tuvw"),
                            ("hermite", ("h", "he")), ("laguerre", "l"),
                            ("legendre", "p"))
    for letter in letters)

TARGETS = (
    # Losses.
    Target("soft_margin_loss"),
    _backward("soft_margin_loss_backward", "soft_margin_loss"),
    Target("multi_margin_loss", autograd=True),
    _backward("multi_margin_loss_backward", "multi_margin_loss"),
    Target("multilabel_margin_loss"),
    Target("multilabel_margin_loss_forward", autograd=True),
    _backward("multilabel_margin_loss_backward",
              "multilabel_margin_loss_forward",
              cotangents=("grad_output", None)),
    Target("margin_ranking_loss"),
    Target("kl_div"),
    # Its derivative meets infinities that PyTorch's ops make NaN of.
    Target("ctc_loss.IntList"),
    Target("ctc_loss.Tensor"),
    Target("triplet_margin_loss"),
    _backward("huber_loss_backward", "huber_loss", second=False),
    # Activations.
    Target("glu", batch=False, autograd=True),
    _backward("hardsigmoid_backward", "hardsigmoid", second=False),
    Target("native_dropout_backward", batch=False, autograd=True),
    # Attention.
    Target("_scaled_dot_product_flash_attention_for_cpu", autograd=True),
    _backward("_scaled_dot_product_flash_attention_for_cpu_backward",
              "_scaled_dot_product_flash_attention_for_cpu",
              ("query", "key", "value"), ("grad_out", None)),
    # Distances.
    Target("renorm"),
    Target("_cdist_forward", batch=False, autograd=True),
    _backward("_cdist_backward", "_cdist_forward", ("x1",)),
    Target("_pdist_forward", autograd=True),
    _backward("_pdist_backward", "_pdist_forward"),
    Target("pdist"),
    # Indexing.
    Target("take"),
    Target("put"),
    Target("masked_scatter"),
    Target("masked_scatter_backward", autograd=True),
    Target("nonzero_static"),
    Target("histc"),
    Target("segment_reduce", autograd=True, composite=True),
    Target("embedding_bag.padding_idx", composite=True),
    Target("max_unpool2d", autograd=True),
    Target("max_unpool3d", autograd=True),
    Target("cummaxmin_backward", composite=True),
    Target("unfold_backward", autograd=True),
    Target("index_reduce", autograd=True, composite=True),
    Target("scatter_reduce.two", batch=False, autograd=True, composite=True,
           when=_is_product),
    Target("isin.Tensor_Tensor"),
    Target("diagflat"),
    Target("column_stack"),
    _backward("grid_sampler_2d_backward", "grid_sampler_2d", ("input", "grid"),
              second=False),
    _backward("grid_sampler_3d_backward", "grid_sampler_3d", ("input", "grid"),
              second=False),
    Target("as_strided_scatter", autograd=True, composite=True),
    Target("_chunk_cat"),
    Target("fractional_max_pool2d", autograd=True),
    Target("fractional_max_pool2d_backward", autograd=True),
    Target("fractional_max_pool3d", autograd=True),
    Target("fractional_max_pool3d_backward", autograd=True),
    # Frames.
    Target("stft"),
    Target("stft.center"),
    Target("istft"),
    # Reductions and comparisons.
    Target("histogram.bin_ct"),
    Target("histogram.bins_tensor"),
    Target("_histogramdd_bin_edges"),
    Target("_histogramdd_from_bin_cts"),
    Target("_histogramdd_from_bin_tensors"),
    Target("hash_tensor"),
    Target("nanquantile", composite=True),
    Target("nanquantile.scalar", composite=True),
    Target("quantile", composite=True),
    Target("quantile.scalar", composite=True),
    Target("isclose"),
    # Contractions and sampling.
    Target("bilinear", composite=True),
    Target("_upsample_nearest_exact1d"),
    Target("_upsample_nearest_exact1d.vec"),
    Target("_upsample_nearest_exact1d_backward"),
    Target("_conj_physical"),
    # Right derivatives for wrong ones.
    Target("native_layer_norm", batch=False, autograd=True),
    Target("cumprod", batch=False, autograd=True),
    _batch_norm("native_batch_norm", _trains(5)),
    _batch_norm("_native_batch_norm_legit", _trains(5)),
    _batch_norm("_native_batch_norm_legit.no_stats", _trains(3)),
    _batch_norm("_batch_norm_with_update", None),
    # Composites that PyTorch itself does not take apart under vmap.
    Target("fft_ihfft2", own=True),
    Target("fft_ihfftn", own=True),
    Target("linalg_tensorsolve", own=True),
    Target("lu_solve", own=True),
    Target("histogramdd", own=True),
    Target("histogramdd.int_bins", own=True),
    Target("histogramdd.TensorList_bins", own=True),
    Target("chalf", own=True),
    # Special functions, whose derivative PyTorch takes for 0.
    Target("special_log_ndtr"),
    Target("special_airy_ai"),
    # Factorizations.
    Target("ormqr", autograd=True),
    Target("linalg_lu"),
    Target("linalg_ldl_factor_ex", autograd=True),
    Target("linalg_ldl_solve", autograd=True),
    # PyTorch takes the derivatives of Householder products by these.
    Target("tril_", twin="tril"),
    Target("triu_", twin="triu"),
    *_POLYNOMIALS,
)
