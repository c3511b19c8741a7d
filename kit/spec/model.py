"""What a user may write in a spec: frozen and validated; the field descriptions become editor help."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from kit.spec.arms import Arm, BaselineArm, Server
from kit.spec.service import Arrival, Limits
from kit.spec.strict import Name, StrictModel
from kit.spec.workload import Workload

__all__ = ["KIT_MODEL", "SCHEMA_VERSION", "Container", "Engine", "Models", "Spec"]

SCHEMA_VERSION = 1

KIT_MODEL = "kit:"
"""What the path of a model begins with that the kit knows by name and holds by its SHA-256."""

Fraction = Annotated[float, Field(gt=0, lt=1)]


class Target(StrictModel):
    """The target model, which verifies."""

    path: str = Field(min_length=1)
    """Hugging Face name or folder of the model, or kit:NAME for one that the kit knows and checks by hash."""
    revision: str | None = None
    """Commit of the model repository; null is resolved at first use and, but for kit:NAME, reported as NOT PINNED."""
    dtype: Literal["bfloat16", "float16", "float32"]
    """Data type of weights and activations, stated because SGLang would otherwise choose."""
    quantization: str | None = None
    """SGLang's quantisation method, if any."""
    prompt_format: str = Field(default="{prompt}", pattern=r"\{prompt\}")
    """How a prompt becomes a turn of the target's chat; leave out the beginning-of-text token, which SGLang adds."""
    gated: bool = False
    """Whether a Hugging Face token is needed; read from HF_TOKEN, never stored."""
    trust_remote_code: bool = False
    """Whether code from the model repository may run; shown in the report."""


class Draft(StrictModel):
    """The EAGLE3 draft model, which proposes."""

    path: str = Field(min_length=1)
    """Hugging Face name or folder of the draft, or kit:NAME."""
    revision: str | None = None
    """Commit of the draft repository; null is resolved at first use and, but for kit:NAME, reported as NOT PINNED."""
    quantization: str | None = None
    """Null inherits the target's quantisation; "unquant" opts out."""
    context_length: PositiveInt | None = None
    """Positions the draft was trained for; a server context above it is refused at check time."""


class Models(StrictModel):
    """The model pair."""

    target: Target
    """The target model."""
    draft: Draft | None = None
    """The draft model; needed by every arm that speculates."""


class Container(StrictModel):
    """How the docker runtime starts a container."""

    image: str | None = None
    """Image to start instead of this host's speckit:VARIANT, by digest; pulled when it is not here."""
    shm_gib: float | None = Field(default=32.0, gt=0)
    """Size of /dev/shm, which NCCL and SGLang use between processes; without effect under ipc: host."""
    ipc: Literal["private", "host"] = "private"
    """Whether the container shares the host's shared memory."""
    memlock: int | None = -1
    """Limit of locked memory in bytes, -1 for none; null leaves it to the engine."""
    stack: int | None = 67_108_864
    """Limit of the stack in bytes; null leaves it to the engine."""
    memory_gib: float | None = Field(default=None, gt=0)
    """Memory beyond which the kernel kills the container; null sets no limit."""


class Engine(StrictModel):
    """How servers are started. Not part of the registered hash, except the SGLang version."""

    runtime: Literal["docker", "local", "standin", "attach"]
    """docker: pinned images; local: SGLang as a subprocess; standin: the simulator; attach: running servers."""
    sglang: str = "0.5.15.post1"
    """Version of SGLang that the flags and requests are checked against."""
    image: Literal["triton", "flashinfer", "cpu"] | None = None
    """Image variant of the docker runtime; under local, cpu is the environment that `make cpu-engine` makes."""
    world: str | None = None
    """Preset of the stand-in, for the standin runtime; under docker, the image's stand-in runs instead of SGLang."""
    startup_timeout_s: float = Field(default=1800.0, gt=0)
    """Give up on a server that is not ready after this time; on a container, after this time without a line of log."""
    container: Container = Container()
    """Resources of the docker runtime."""
    urls: dict[Name, str] | None = None
    """Where the running server of each arm answers, for the attach runtime."""

    @property
    def simulated(self) -> bool:
        """Whether a stand-in serves instead of SGLang."""
        return self.world is not None and self.runtime in ("docker", "standin")

    @model_validator(mode="after")
    def _runtime_has_what_it_needs(self) -> Self:
        needed = {"docker": "image", "standin": "world"}.get(self.runtime)
        if needed and getattr(self, needed) is None:
            raise ValueError(f"runtime {self.runtime} needs `{needed}`")
        return self


class Host(StrictModel):
    """What the host is expected to be; a difference is reported."""

    gpu: str | None = None
    """Product name of the GPU as nvidia-smi prints it; null where none is needed."""
    gpus: int = Field(default=1, ge=0)
    """Number of GPUs one server uses."""
    min_driver: str | None = None
    """Oldest NVIDIA driver that the image runs on."""


class Load(StrictModel):
    """How the prompts are sent: a closed loop at each concurrency."""

    concurrency: tuple[PositiveInt, ...] = Field(min_length=1)
    """Requests in flight, one cell for each value."""
    waves: PositiveInt = 4
    """Requests of a cell = waves x concurrency; at least 4 decide."""
    min_requests: PositiveInt = 8
    """Fewest requests of a cell, whatever its concurrency."""
    warmup_requests: PositiveInt = 4
    """Requests of the measured shape sent first at each concurrency, kept but never counted (at least C)."""
    failure_limit: float = Field(default=0.01, ge=0, lt=1)
    """A cell with a larger share of failed requests is invalid."""
    request_timeout_s: float = Field(default=600.0, gt=0)
    """A request without an end after this time is a failure."""
    silence_timeout_s: float = Field(default=60.0, gt=0)
    """A server that sends nothing to any request in flight for this long hangs: it is stopped, and not measured."""
    limits: Limits | None = None
    """Latencies that make a request a good one; null counts none."""
    arrival: Arrival | None = None
    """Rates at which requests are also sent by the clock; null sends none."""

    @model_validator(mode="after")
    def _levels_are_distinct(self) -> Self:
        if len(set(self.concurrency)) != len(self.concurrency):
            raise ValueError(f"concurrency lists a level twice: {list(self.concurrency)}")
        return self

    def requests(self, concurrency: int) -> int:
        """Requests of one timed repetition at this concurrency."""
        return max(self.waves * concurrency, self.min_requests)


class Design(StrictModel):
    """How launches are arranged."""

    blocks: PositiveInt = 3
    """Rounds of launches; three are the least that carry an interval."""
    once: tuple[Name, ...] = ()
    """Arms launched in the first block alone: enough for acceptance and the gate, and no speed word."""
    seed: NonNegativeInt = 0
    """Seed of the order of arms and concurrencies."""
    aa_speed: bool = False
    """Launch the baseline a second time in each block: the noise floor of speed."""
    closing_baseline: bool = False
    """Launch the baseline once more at the end: drift."""
    trace_cost: Name | None = None
    """Launch this arm once more at the end and switch the trace on and off between passes: what the trace costs."""


class Gate(StrictModel):
    """The acceptance gate, fixed before the first number (docs/method.md 2)."""

    concurrency: tuple[PositiveInt, ...] | None = None
    """Concurrencies that enter the gate; null uses all."""
    delta_1: Fraction = 0.02
    """Equivalence margin on survival across K (gate v1)."""
    delta_2: Fraction = 0.02
    """Equivalence margin at aligned positions (gate v2)."""
    legacy_tolerance: Fraction = 0.05
    """The naive rule printed beside the gate."""
    functional_limit: Fraction = 0.02
    """Largest error of tokens per round for which a curve may be used across K."""
    alpha: Fraction = 0.05
    """Level of every test."""
    bootstrap_draws: PositiveInt = 2000
    """Draws of the cluster bootstrap."""
    seed: NonNegativeInt = 0
    """Seed of the bootstrap."""


class Losslessness(StrictModel):
    """How outputs are compared (docs/method.md 4)."""

    prompts: NonNegativeInt = 0
    """Prompts that each launch also answers to their natural end, untimed; 0 compares the timed answers instead."""
    concurrency: tuple[PositiveInt, ...] = (8,)
    """Requests in flight of that pass, one pass for each value."""
    max_output_tokens: PositiveInt = 256
    """Longest of these answers."""

    tau_floor: float = Field(default=0.01, gt=0)
    """Smallest log-probability margin below which a divergence can be a tie."""


class Decision(StrictModel):
    """The rule that turns intervals into words."""

    metric: Literal["output_throughput_window"] = "output_throughput_window"
    """The metric that decides."""
    noise_threshold: Fraction = 0.02
    """A ratio inside 1 +- this is equivalent."""
    confidence_level: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    """Level of every interval."""
    candidate: Name | None = None
    """The one arm named before the run; without it, words are Holm-adjusted over arms x levels."""
    max_slowdown: float | None = Field(default=None, gt=0, lt=1)
    """Largest loss against the baseline that the decision tolerates, as a fraction."""


class Budget(StrictModel):
    """What the run may cost."""

    minutes: float | None = Field(default=None, gt=0)
    """Start no further launch after this time; the run is then PARTIAL."""


class Spec(StrictModel):
    """One benchmark: a question, the arms that answer it, and the rules of judging, fixed beforehand."""

    schema_version: Literal[1]
    """Version of this format."""
    name: Name
    """Short name, used in file names."""
    title: str = Field(min_length=1)
    """One line that names the report."""
    question: str = Field(min_length=1)
    """The question that the run answers."""
    models: Models
    """Target and draft."""
    engine: Engine
    """Runtime and versions."""
    host: Host = Host()
    """Expected host."""
    server: Server
    """Flags of every arm, stated so that SGLang chooses none of them differently between arms."""
    arms: tuple[Arm, ...] = Field(min_length=1)
    """Server configurations that are compared."""
    workload: Workload
    """Prompts and output lengths."""
    load: Load
    """Concurrencies and request counts."""
    design: Design = Design()
    """Blocks, order and controls."""
    gate: Gate = Gate()
    """Acceptance gate."""
    losslessness: Losslessness = Losslessness()
    """Comparison of outputs."""
    decision: Decision = Decision()
    """Rule of the verdict."""
    budget: Budget = Budget()
    """Limits of cost."""
    notes: str | None = None
    """Free text for the report: what was tried and given up."""

    def arm(self, name: str) -> Arm:
        """The arm of that name; KeyError when there is none."""
        return {arm.name: arm for arm in self.arms}[name]

    def reference(self, arm: Arm) -> BaselineArm | None:
        """The baseline that `arm` is compared with: the one it names, else the first; None for a baseline."""
        if isinstance(arm, BaselineArm):
            return None
        baselines = [a for a in self.arms if isinstance(a, BaselineArm)]
        return next((a for a in baselines if arm.baseline in (None, a.name)), None)
