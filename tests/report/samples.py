"""A small invented verdict: a simulated run of three arms at three concurrencies, in which everything occurs once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kit.analysis import (
    Acceptance,
    AdaptiveShare,
    AdaptiveUse,
    ArmSaturation,
    ArmSummary,
    BlockRatio,
    CellResult,
    ClassAcceptance,
    ClassComparison,
    Comparison,
    CostRow,
    Costs,
    CrossoverResult,
    CurveOwnership,
    DepthPace,
    DepthShare,
    DepthSource,
    DepthSpan,
    DepthTime,
    Distribution,
    Energy,
    Extent,
    FlagClass,
    FlagDifference,
    GateMovement,
    GateResidual,
    Gates,
    GpuConditions,
    Heterogeneity,
    Identities,
    IdentityFailure,
    IterationModel,
    IterationTime,
    LevelResult,
    LoadSwitch,
    Losslessness,
    ModelCell,
    Oracle,
    OracleKind,
    OracleLevel,
    OutcomeCount,
    Pairing,
    PeakComparison,
    ReasonCount,
    Reconciliation,
    RequestSpread,
    TaxRow,
    ThroughputBasis,
    TraceCost,
    TraceHealth,
)
from kit.checks import CellJudgement, CellState, Code, Doubt, Scope, Severity
from kit.records import LaunchStatus, Origin, Outcome, Resumption, Role
from kit.sglang import TracePlugin
from kit.stats import (
    AdaptiveDepth,
    AlignmentCell,
    AlignmentGate,
    Convention,
    ConversionResidual,
    CostAccount,
    CrossoverKind,
    CurveCell,
    CurveGate,
    Disclosure,
    Estimate,
    FunctionalError,
    GateReading,
    GateSentence,
    GateWord,
    Interval,
    LosslessWord,
    Movement,
    OracleGaps,
    Ownership,
    PeakRatio,
    Saturation,
    SpeculationTax,
    SpeedWord,
    Spread,
    SweepWord,
    UslFit,
)
from kit.verdict import (
    ArmVerdict,
    ComparisonVerdict,
    CrossoverVerdict,
    DoubtsSection,
    GateSection,
    Heading,
    LaunchRow,
    LosslessnessSection,
    LosslessRow,
    Named,
    NotMeasured,
    SpeedSection,
    TracedBy,
    TrueThroughput,
    Verdict,
    WhatRan,
)

T = "t over launches, log scale"
ARMS = (
    ArmSummary("baseline", "baseline", None, None, None, 3),
    ArmSummary("eagle3_k3", "eagle3", 3, 1, "baseline", 3),
    ArmSummary("adaptive", "adaptive", 7, 1, "baseline", 3),
)
SPEEDS = {"baseline": (92.7, 512.4, 1049.7), "eagle3_k3": (117.9, 563.1, 753.1), "adaptive": (113.2, 539.0, 812.6)}
LEVELS = (1, 8, 32)
MEASURED = [(arm, c, tok_s) for arm, speeds in SPEEDS.items() for c, tok_s in zip(LEVELS, speeds, strict=True)]
ONE_LAUNCH = "one launch carries no interval"


def around(point: float, spread: float, *, n: int = 3, level: float = 0.95, method: str = T) -> Estimate:
    """An estimate with an interval of `spread` to either side."""
    return Estimate(point, Interval(point - spread, point + spread, level), n, method)


def level(arm: str, concurrency: int, tok_s: float) -> LevelResult:
    speed = around(tok_s, 0.03 * tok_s)
    full = Estimate.bare(0.9 * tok_s, n=1, method=T, reason=ONE_LAUNCH)
    return LevelResult(arm, concurrency, 3, speed, full, around(concurrency / tok_s, 0.02 * concurrency / tok_s))


def cell(number: int, arm: str, concurrency: int, tok_s: float) -> CellResult:
    speed = Estimate.bare(tok_s, n=1, method=T, reason=ONE_LAUNCH)
    wait = Distribution(128, mean=0.04, p50=0.031, p90=0.06, p99=0.0984)
    return CellResult(
        cell=number,
        launch=number // 3,
        block=0,
        arm=arm,
        role=Role.MEASURE,
        concurrency=concurrency,
        requests=128,
        waves=4.0,
        outcomes=(OutcomeCount(Outcome.OK, 128 - (number == 5) * 3),),
        failed=(number == 5) * 3,
        output_tokens=24576,
        throughput_window=speed,
        throughput_full_run=speed,
        window=None,
        achieved_concurrency=Estimate.bare(0.97 * concurrency, n=128, method="Little's law", reason=ONE_LAUNCH),
        ttft_s=wait,
        tpot_s=Distribution(128, mean=0.01, p50=0.0102, p90=0.011, p99=0.0131),
        e2e_latency_s=wait,
        chunk_gap_s=Distribution(0, reason="no stream was recorded") if number else wait,
    )


def comparison(arm: str, concurrency: int, ratio: float, *, spread: float = 0.05) -> Comparison:
    blocks = tuple(BlockRatio(block, 100.0 * ratio, 100.0) for block in range(3))
    estimate = around(ratio, spread)
    return Comparison(arm, "baseline", concurrency, estimate, estimate, estimate, blocks, 0.01, 0.99, 0.9)


def judged(arm: str, concurrency: int, ratio: float, word: SpeedWord) -> ComparisonVerdict:
    reason = "the interval reaches both sides of 1.02" if word is SpeedWord.INCONCLUSIVE else None
    tolerable = word is not SpeedWord.SLOWER
    return ComparisonVerdict(comparison(arm, concurrency, ratio), word, 0.0312, reason, tolerable)


DEPTH_TIMES = (DepthTime(1, 0.25), DepthTime(3, 0.75))
# The controller rested between the second stretch and the third.
TIMELINE = (
    DepthSpan(0.0, 1.5, (DepthTime(1, 0.8), DepthTime(3, 0.2))),
    DepthSpan(1.5, 3.0, (DepthTime(1, 0.1), DepthTime(3, 0.9))),
    DepthSpan(4.5, 6.0, (DepthTime(3, 1.0),)),
)

_REALISED = Estimate.bare(0.83, n=3, method="ratio of log ratios", reason="a ratio of two logarithms")
_NOTHING = Estimate.missing("no arm is shown to be faster than the baseline here")
SWITCHES = (
    LoadSwitch(
        "baseline", 1, "eagle3_k3", around(1.27, 0.05), (AdaptiveShare("adaptive", around(0.96, 0.03), _REALISED),)
    ),
    LoadSwitch("baseline", 32, None, around(0.72, 0.05), (AdaptiveShare("adaptive", around(1.07, 0.03), _NOTHING),)),
)
CONTROLS = (
    replace(cell(9, "baseline", 8, 940.0), role=Role.AA_SPEED),
    replace(cell(12, "baseline", 8, 925.0), role=Role.CLOSING),
)

SPEED = SpeedSection(
    metric="output_throughput_window",
    noise_threshold=0.02,
    level=0.95,
    holm=True,
    candidate=None,
    arms=(
        ArmVerdict(
            "eagle3_k3",
            "baseline",
            SweepWord.EAGLE3_WINS_UP_TO,
            (),
            "eagle3_k3 is faster at low concurrency and slower at high; it turns at concurrency 10.9 [9.1, 13.0].",
        ),
        ArmVerdict(
            "adaptive",
            "baseline",
            SweepWord.INCONCLUSIVE,
            (8,),
            "adaptive against baseline is undecided at concurrency 8.",
        ),
    ),
    comparisons=(
        judged("eagle3_k3", 1, 1.272, SpeedWord.FASTER),
        judged("eagle3_k3", 8, 1.099, SpeedWord.FASTER),
        judged("eagle3_k3", 32, 0.717, SpeedWord.SLOWER),
        judged("adaptive", 1, 1.221, SpeedWord.FASTER),
        judged("adaptive", 8, 1.052, SpeedWord.INCONCLUSIVE),
        judged("adaptive", 32, 0.774, SpeedWord.SLOWER),
    ),
    classes=tuple(
        ClassComparison("eagle3_k3", "baseline", c, kind, around(ratio, 0.05))
        for kind, ratios in (("code", (1.41, 1.22, 0.81)), ("prose", (1.12, 0.95, 0.62)))
        for c, ratio in zip(LEVELS, ratios, strict=True)
    ),
    crossovers=(
        CrossoverVerdict(
            CrossoverResult(
                "eagle3_k3",
                CrossoverKind.FOUND,
                Estimate(10.9, Interval(9.1, 13.0, 0.95), 3, "test inversion"),
                (Interval(9.1, 13.0, 0.95),),
                False,
                False,
                1,
                32,
            ),
            True,
            10.9,
            True,
        ),
        CrossoverVerdict(
            CrossoverResult(
                "adaptive",
                CrossoverKind.INCONCLUSIVE,
                Estimate.missing("two stretches of the sweep fit a ratio of 1", n=3),
                (Interval(7.9, 11.0, 0.95), Interval(20.0, 32.0, 0.95)),
                False,
                True,
                1,
                32,
            ),
            True,
            10.1,
            True,
        ),
    ),
    levels=tuple(
        level(arm, c, tok_s) for arm, speeds in SPEEDS.items() for c, tok_s in zip(LEVELS, speeds, strict=True)
    ),
    cells=(*(cell(i, arm, c, tok_s) for i, (arm, c, tok_s) in enumerate(MEASURED)), *CONTROLS),
    aa_speed=(comparison("baseline", 8, 1.003, spread=0.011),),
    closing=(comparison("baseline", 8, 0.995, spread=0.02),),
    truth=tuple(TrueThroughput(arm, c, 1.01 * tok_s) for arm, c, tok_s in MEASURED),
)


def _curve_cell(concurrency: int, k: int, point: float, *, inside: bool) -> CurveCell:
    difference = around(point, 0.008, n=192, level=0.9, method="paired by prompt")
    return CurveCell(concurrency, 1, 3, k, difference, 0.0041, inside, 0.00021, None if inside else 310)


def _aligned_cell(deeper: int, *, inside: bool) -> AlignmentCell:
    return AlignmentCell(
        concurrency=8,
        K_a=3,
        K_b=deeper,
        k=1,
        d2=around(0.0, 0.001, n=96),
        bound=0.0307,
        rule="zero discordance",
        inside=inside,
        p_holm=1.0,
        aligned_share=0.83,
        sites=1190,
        both=500,
        only_a=0,
        only_b=0,
        neither=690,
        discordant_prompts=0,
        touched_prompts=0,
    )


CURVE_CELLS = (_curve_cell(8, 1, 0.078, inside=False), _curve_cell(32, 1, 0.012, inside=True))
MOVED = GateMovement(8, 1, 3, Movement(0.078, 0.011, 0.019, 0.048, 0.0, 1190))
GATE = GateSection(
    gates=Gates(
        v1=CurveGate(
            word=GateWord.FAIL,
            cells=CURVE_CELLS,
            worst=CURVE_CELLS[0],
            legacy_exceeded=True,
            functional=(FunctionalError(8, ((1, around(-0.054, 0.01, n=192)),), around(0.054, 0.01, n=192)),),
            reason=None,
        ),
        v2=AlignmentGate(
            word=GateWord.INCONCLUSIVE,
            cells=(_aligned_cell(7, inside=False),),
            control=(_aligned_cell(3, inside=True),),
            control_word=GateWord.INCONCLUSIVE,
            reason="exact concordance on too few prompts",
        ),
        reading=GateReading(Disclosure.WITHHELD, Disclosure.WITHHELD, GateSentence.MOVED),
        margin_1=0.02,
        margin_2=0.02,
        legacy_tolerance=0.05,
        naive_passes=False,
        functional_limit=0.02,
        functional_within=False,
        prompts_needed=149,
        control="eagle3_k3 in launches 1 and 4",
        movements=(
            GateMovement(8, 1, 3, Movement(0.078, 0.011, 0.019, 0.048, 0.0, 1190)),
            GateMovement(32, 1, 3, None),
        ),
        residuals=(GateResidual(8, ConversionResidual(3, 1, 1, around(0.004, 0.006), around(0.078, 0.008))),),
    ),
    sentence="The curve moves with K; why is not established.",
)


def outputs(arm: str, *, equal: int, pairing: Pairing = Pairing.ARM) -> Losslessness:
    return Losslessness(pairing, arm, 8, (1, 4), "baseline", 8, (0, 3), 96, equal, 96, 0.0307, ())


CONTROL = outputs("baseline", equal=94, pairing=Pairing.AA_TOKENS)


def lossless_row(arm: str, *, equal: int, word: LosslessWord, reason: str) -> LosslessRow:
    return LosslessRow(
        outputs=outputs(arm, equal=equal),
        word=word,
        reason=reason,
        control=CONTROL,
        p_excess=0.5,
        tau=0.01,
        hard=0,
        violations=0,
        unresolved=96 - equal,
        hard_upper=0.0307,
        past_the_end=0,
    )


LOSSLESSNESS = LosslessnessSection(
    rows=(
        lossless_row("eagle3_k3", equal=96, word=LosslessWord.LOSSLESS, reason="no prompt differs"),
        lossless_row("adaptive", equal=93, word=LosslessWord.UNRESOLVED, reason="3 prompts differ without a margin"),
    ),
    aa_tokens=(CONTROL,),
    greedy=True,
)
FIT = UslFit(lam=95.0, sigma=0.06, kappa=0.0, kappa_includes_zero=True)
SATURATION = (
    ArmSaturation("baseline", Saturation(FIT, around(1580.0, 60.0), None, None, around(17.0, 0.8), False)),
    ArmSaturation("eagle3_k3", Saturation(FIT, around(770.0, 25.0), 32.0, 8.0, around(6.5, 0.4), True)),
    ArmSaturation(
        "adaptive",
        Saturation(None, Estimate.missing("3 levels; the fit needs 6"), None, None, Estimate.missing("no fit"), False),
    ),
)


PEAKS = (
    PeakComparison(
        "eagle3_k3", "baseline", PeakRatio(around(0.487, 0.02), (760.0, 771.0, 779.0), (1570.0, 1580.0, 1590.0))
    ),
    PeakComparison("adaptive", "baseline", PeakRatio(Estimate.missing("3 levels; a saturation fit needs 6"))),
)


def _account(batch: int, ratio: float) -> CostAccount:
    tau = 1.806
    return CostAccount(
        K=3,
        batch=batch,
        iter_ms=around(15.3 * ratio, 0.6),
        iter_ms_0=around(15.3, 0.3),
        time_ratio=around(ratio, 0.05),
        speedup=around(tau / ratio, 0.05),
        break_even_accepted=around(ratio - 1, 0.05),
        accepted=around(tau - 1, 0.02, n=96),
        ceiling=around(4 / ratio, 0.1),
        tokens_per_position=around(tau / 4, 0.01, n=96),
    )


COSTS = Costs(
    basis=ThroughputBasis.WINDOW,
    rows=(
        CostRow("eagle3_k3", 1, _account(1, 1.42), None),
        CostRow("eagle3_k3", 32, _account(32, 4.42), None),
        CostRow("adaptive", 32, None, "K changes from iteration to iteration, so no iteration has a K to account for"),
    ),
    taxes=(TaxRow(32, (1, 3, 5, 7), SpeculationTax(53.6, 7.18, 23.1, 1.7)),),
    model=IterationModel(
        (9e-3, 1e-4, 2e-4, 2e-3, 1e-4), tuple(ModelCell(c, k, 0.01) for c in (1, 32) for k in (0, 1, 3)), 0.031, True
    ),
    model_reason=None,
)
ORACLES = (
    Oracle(OracleKind.CURVE, Disclosure.WITHHELD, (1, 3), (), "the first gate must pass"),
    Oracle(
        OracleKind.REPLAY,
        Disclosure.SECONDARY,
        (1, 3),
        (
            OracleLevel(
                8, OracleGaps(around(0.011, 0.006, n=48), around(0.002, 0.003), around(0.03, 0.01), 48, 0), None
            ),
            OracleLevel(32, None, "12 batches; two folds of 8 need 16"),
        ),
        None,
    ),
)
HETEROGENEITY = Heterogeneity(
    spreads=(
        RequestSpread(
            arm="eagle3_k3",
            concurrency=8,
            depth=3,
            prompts=96,
            spread=Spread(around(0.51, 0.06, n=96), around(0.15, 0.03, n=96)),
            within_wave=around(0.49, 0.07, n=12),
            class_ratio=around(1.8, 0.2, n=96),
            easiest="code",
            hardest="prose",
            split_half=around(0.82, 0.06, n=96),
        ),
    ),
    ownerships=(
        CurveOwnership(8, 1, 3, 96, Ownership(*(around(r, 0.05, n=96) for r in (0.84, 0.82, 0.85, 0.99, 0.71)))),
    ),
    ownership_reason=None,
)


def _depth(k: int, lower: float, upper: float) -> AdaptiveDepth:
    km = around((lower + upper) / 2, 0.02, n=96)
    return AdaptiveDepth(k, 4000 // k, 900 // k, km, around(lower, 0.01, n=96), around(upper, 0.01, n=96))


def _acceptance(arm: str, concurrency: int, survival: Sequence[float], *, adaptive: bool) -> Acceptance:
    curve = tuple(around(s, 0.009, n=96, method="bootstrap over prompts") for s in survival)
    return Acceptance(
        arm=arm,
        concurrency=concurrency,
        adaptive=adaptive,
        depth=7 if adaptive else 3,
        topk=1,
        requests=96,
        dropped=1 if adaptive else 0,
        dropped_reasons=("histogram and rounds disagree",) if adaptive else (),
        rounds=11535,
        convention=Convention.UNTRUNCATED,
        survival=curve[:1] if adaptive else curve,
        survival_macro=curve,
        conditional=curve,
        acceptance_length=around(1 + sum(survival), 0.02, n=96),
        acceptance_length_macro=around(1 + sum(survival), 0.02, n=96),
        tokens_per_position=Estimate.missing("K is not fixed") if adaptive else around(0.43, 0.01, n=96),
        bounds=(_depth(1, 0.40, 0.41), _depth(2, 0.18, 0.282), _depth(3, 0.125, 0.227)) if adaptive else (),
        classes=(
            ClassAcceptance("code", 48, 5600, around(1.9, 0.03, n=48), around(0.51, 0.01, n=48)),
            ClassAcceptance("prose", 48, 5935, around(1.5, 0.03, n=48), around(0.34, 0.01, n=48)),
        ),
    )


ACCEPTANCE = tuple(
    _acceptance(arm, c, survival, adaptive=arm == "adaptive")
    for c in (8, 32)
    for arm, survival in (("eagle3_k3", (0.44, 0.217, 0.145)), ("adaptive", (0.40, 0.18, 0.125)))
)
ADAPTIVE = (
    AdaptiveUse(
        "adaptive", 2, 8, 2400, 37, 25.0, (DepthShare(1, 1800, 0.75, 9000, 0.8), DepthShare(3, 600, 0.25, 2535, 0.2))
    ),
    AdaptiveUse("adaptive", 2, None, 2600, 41, 60.0, (DepthShare(1, 2600, 1.0, 12000, 1.0),)),
)
DOUBTS = DoubtsSection(
    cells=tuple(
        CellJudgement(cell, cell // 3, arm, c, CellState.VALID if cell != 5 else CellState.INVALID, ())
        for cell, (arm, c) in enumerate((arm, c) for arm in SPEEDS for c in LEVELS)
    ),
    doubts=(
        Doubt(
            Code.FAILED_REQUESTS,
            Severity.INVALID,
            Scope.CELL,
            "3 of 128 requests failed, above the limit of 1 %",
            "read the server's log: `speckit show RUN --log 1`",
            arm="eagle3_k3",
            launch=1,
            cell=5,
            concurrency=32,
        ),
        Doubt(Code.FEW_WAVES, Severity.DOUBT, Scope.RUN, "2 waves; 4 decide", "raise `load.waves` to 4"),
        *(
            Doubt(Code.TRACE_MISSING, Severity.UNKNOWN, Scope.LAUNCH, "no trace", "switch it on", arm=arm, launch=i)
            for i, arm in enumerate(("baseline", "eagle3_k3"))
        ),
        Doubt(Code.DEAD_DRAFT, Severity.DOUBT, Scope.ARM, "S_1 is 0.02", "check the draft", arm="adaptive"),
    ),
    identities=(Identities(5, 1, "eagle3_k3", 32, 128, (IdentityFailure("sum(h) = verify rounds", 2, "request 17"),)),),
    reconciliation=(Reconciliation(1, "eagle3_k3", 128, 126, 1, (ReasonCount("ends elsewhere", 2),), None, 0),),
    traces=(TraceHealth(1, "eagle3_k3", 2400, 19200, 0, 0, 0),),
    flag_differences=(
        FlagDifference("eagle3_k3", "baseline", "speculative_num_steps", "3", "null", FlagClass.INTENDED),
        FlagDifference("adaptive", "baseline", "page_size", "16", "1", FlagClass.UNFAIR),
        FlagDifference("adaptive", "baseline", "port", "30001", "30000", FlagClass.HARMLESS),
    ),
)
WHAT_RAN = WhatRan(
    origin=Origin.SIMULATED,
    run_id="20261129-120000-0a1b2c",
    spec_name="quickstart",
    spec_hash="5f" * 32,
    workload_hash="c0" * 32,
    rules_version=1,
    kit_version="0.1.0",
    created_utc="2026-11-29T12:00:00+00:00",
    spec_commit="0123abc",
    spec_committed_utc="2026-11-28T09:00:00+00:00",
    declarations=("2 of 3 blocks were measured",),
    resumptions=(Resumption("2026-11-29T13:00:00+00:00", "0.1.0", 1, {}),),
    models=(Named("target", "meta-llama/Llama-3.1-8B-Instruct"), Named("target revision", "0e9e39f")),
    engine=(Named("SGLang", "0.5.15.post1"), Named("runtime", "standin")),
    host=(Named("CPU", "2 cores"),),
    arms=ARMS,
    launches=(
        LaunchRow(
            0,
            0,
            0,
            "baseline",
            Role.MEASURE,
            LaunchStatus.COMPLETED,
            "2026-11-29T12:00:01+00:00",
            3.25,
            ("python", "-m", "sglang.launch_server", "--model-path", "a model"),
            None,
        ),
        LaunchRow(
            1,
            0,
            1,
            "eagle3_k3",
            Role.MEASURE,
            LaunchStatus.FAILED,
            "2026-11-29T12:01:00+00:00",
            None,
            ("python", "-m", "sglang.launch_server", "--speculative-num-steps", "3"),
            "ValueError: page size 16 | 1",
        ),
        LaunchRow(2, 0, 2, "adaptive", Role.AA_SPEED, LaunchStatus.COMPLETED, "2026-11-29T12:02:00Z", 12.5, (), None),
    ),
    iteration_times=(
        IterationTime("baseline", None, 8, 1200, 0.0152),
        IterationTime("eagle3_k3", 3, 8, 800, 0.0241),
        IterationTime("eagle3_k3", 3, 5, 40, 0.0199),
    ),
    trace=(
        TracedBy((0,), TracePlugin("1.0.0", "9a" * 32, "0.5.15.post1", override=False)),
        TracedBy((1,), TracePlugin("1.0.0", "9a" * 32, None, override=True)),
        TracedBy((2,), None),
    ),
    trace_costs=(
        TraceCost("eagle3_k3", 2, 1, Estimate(0.997, Interval(0.991, 1.003, 0.95), 4, "t")),
        TraceCost("eagle3_k3", 2, 8, Estimate.missing("0 of the 3 pairs of passes that an interval needs")),
    ),
    gpus=(
        GpuConditions(0, 0, "baseline", 8, 0, 12, Extent(1800, 1980, 1980), Extent(211, 280, 299), None, 0, 1),
        GpuConditions(1, 1, "eagle3_k3", 8, 0, 12, Extent(1980, 1980, 1980), None, Extent(41, 43, 44), 0, None),
    ),
    energies=(
        Energy("baseline", 8, Estimate(0.0412, Interval(0.0401, 0.0423, 0.95), 3, "t")),
        Energy("eagle3_k3", 8, Estimate(0.051, None, 1, "t", "1 of the 3 launches that an interval needs")),
    ),
)
VERDICT = Verdict(
    version=2,
    title="Does EAGLE3 pay on the simulator?",
    question="Is EAGLE3 with K = 3 or adaptive K faster than no speculation between 1 and 32 requests at once?",
    answer="Use eagle3_k3 below about 11 requests at once; beyond that no speculation is faster.",
    headings=(Heading.SIMULATED, Heading.PARTIAL, Heading.GATE_FAILED),
    speed=SPEED,
    gate=GATE,
    losslessness=LOSSLESSNESS,
    saturation=SATURATION,
    peaks=PEAKS,
    costs=COSTS,
    acceptance=ACCEPTANCE,
    adaptive=ADAPTIVE,
    oracles=ORACLES,
    switches=SWITCHES,
    heterogeneity=HETEROGENEITY,
    depth_paces=(
        DepthPace("adaptive", 2, DepthSource.TRACE, 12, 3, 0.41, DEPTH_TIMES, TIMELINE),
        DepthPace("adaptive", 5, DepthSource.LOG, 1, 0, None, (DepthTime(3, 1.0),)),
    ),
    doubts=DOUBTS,
    what_ran=WHAT_RAN,
    limits=("One model pair and one workload; other prompts accept more or fewer drafts.",),
    not_measured=(NotMeasured("topk above 1", "the spec names no tree"),),
)
