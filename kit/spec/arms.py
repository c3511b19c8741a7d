"""Arms: the server configurations that a spec compares, and the flags they share."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from kit.spec.strict import Name, StrictModel

__all__ = ["AdaptiveArm", "Arm", "BaselineArm", "Eagle3Arm", "Server", "ServerOverrides"]

AttentionBackend = Literal["triton", "flashinfer", "fa3", "torch_native"]


class Server(StrictModel):
    """SGLang flags that would otherwise be chosen for us, and differently with speculation on."""

    attention_backend: AttentionBackend
    """Attention kernels."""
    page_size: PositiveInt = 1
    """Tokens a KV page."""
    context_length: PositiveInt
    """Longest prompt plus output; at most what the draft was trained for."""
    max_running_requests: PositiveInt
    """Requests decoded at once; SGLang lowers it to 48 by itself once speculation is on."""
    max_total_tokens: PositiveInt | None = None
    """KV pool in tokens; null lets every arm size its own, which is reported."""
    mem_fraction_static: float | None = Field(default=None, gt=0, lt=1)
    """Share of GPU memory for weights and KV pool."""
    chunked_prefill_size: int | None = None
    """Tokens a prefill chunk; -1 switches chunking off."""
    cuda_graph_batch_sizes: tuple[PositiveInt, ...] | None = None
    """Batch sizes captured for decoding; null lets SGLang choose, which it does differently per arm."""
    disable_cuda_graph: bool = False
    """Decode without CUDA graphs, as on a CPU."""
    disable_prefill_cuda_graph: bool = False
    """Prefill without CUDA graphs; saves start-up time with small models."""
    sampling_backend: Literal["flashinfer", "pytorch"] | None = None
    """Sampling kernels."""
    tensor_parallel_size: PositiveInt = 1
    """GPUs that share each layer."""
    disable_custom_all_reduce: bool = False
    """Use NCCL for every all-reduce; SGLang switches its own off above two PCIe GPUs."""
    disable_allreduce_fusion: bool = True
    """Keep FlashInfer's fused all-reduce off, stated because some versions switch it on."""
    random_seed: int = 0
    """Seed of the server's own random numbers; drawn at each launch when not given."""
    extra_flags: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Further SGLang flags, without leading dashes; true gives a bare flag."""
    env: dict[str, str] = Field(default_factory=dict)
    """Environment of the server, NCCL settings for instance; never for secrets."""


class ServerOverrides(StrictModel):
    """Flags in which an arm differs from the shared ones; each difference is declared by standing here."""

    attention_backend: AttentionBackend | None = None
    """Attention kernels of this arm."""
    page_size: PositiveInt | None = None
    """Tokens a KV page in this arm."""
    mem_fraction_static: float | None = Field(default=None, gt=0, lt=1)
    """Share of GPU memory in this arm."""
    extra_flags: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Further SGLang flags of this arm."""


class BaselineArm(StrictModel):
    """No speculation at all."""

    kind: Literal["baseline"]
    """No speculative decoding."""
    name: Name
    """Name of the arm."""
    server: ServerOverrides = ServerOverrides()
    """Declared differences from the shared flags."""


class _Speculative(StrictModel):
    name: Name
    """Name of the arm."""
    baseline: Name | None = None
    """Baseline it is compared with; null takes the first."""
    server: ServerOverrides = ServerOverrides()
    """Declared differences from the shared flags."""


class Eagle3Arm(_Speculative):
    """EAGLE3 at a fixed draft length K = `num_steps`; a chain at topk 1, a tree above."""

    kind: Literal["eagle3"]
    """EAGLE3 with a fixed draft length."""
    num_steps: NonNegativeInt
    """Draft length K: autoregressive draft steps a round; 0 pays for verifying and drafts nothing."""
    topk: PositiveInt
    """Branching factor; 1 is a chain. SGLang needs it beside num_steps."""
    num_draft_tokens: PositiveInt | None = None
    """Tokens verified a round; K + 1 for a chain, to be stated for a tree."""

    @model_validator(mode="after")
    def _tokens_fit_the_shape(self) -> Self:
        if self.topk > 1 and self.num_steps == 0:
            raise ValueError(f"topk {self.topk} has no tree at num_steps 0: use topk 1 there")
        if self.topk == 1 and self.num_draft_tokens not in (None, self.num_steps + 1):
            raise ValueError(
                f"num_draft_tokens {self.num_draft_tokens} cannot be had at topk 1: SGLang uses num_steps + 1"
                f" = {self.num_steps + 1}; leave it out"
            )
        if self.topk > 1 and not 2 <= (self.num_draft_tokens or 0) <= self.largest_tree:
            raise ValueError(
                f"topk {self.topk} over {self.num_steps} steps is a tree of up to {self.largest_tree} tokens: state "
                f"num_draft_tokens, from 2 to {self.largest_tree}"
            )
        return self

    @property
    def largest_tree(self) -> int:
        """The root, topk first drafts, and topk continuations of topk branches in each further step."""
        return 1 + self.topk + self.topk**2 * (self.num_steps - 1)

    @property
    def draft_tokens(self) -> int:
        """Tokens verified a round."""
        return self.num_draft_tokens or self.num_steps + 1


class AdaptiveArm(_Speculative):
    """EAGLE3 with SGLang's adaptive controller choosing K."""

    kind: Literal["adaptive"]
    """EAGLE3 with SGLang's adaptive draft length."""
    num_steps: PositiveInt = 7
    """K at launch: the largest candidate, or 0.5.15 does not start."""
    candidates: dict[str, tuple[NonNegativeInt, ...]] | None = None
    """Candidate K for each batch-size slot; null is SGLang's own ladder."""


Arm = Annotated[BaselineArm | Eagle3Arm | AdaptiveArm, Field(discriminator="kind")]
