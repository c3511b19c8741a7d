"""Saturation: the throughput curve as a Universal Scalability Law, its maximum, and where it is reached (method 5.4).

    X(C) = lambda C / (1 + sigma (C-1) + kappa C (C-1))        Gunther's USL

kappa = 0 tends to lambda / sigma; kappa > 0 peaks at sqrt((1-sigma)/kappa). C / X is linear in the parameters over
lambda, which gives the start of the fit; the fit itself is least squares on log X. Intervals are over blocks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypedDict

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, stats

from kit.stats.arrays import BoolArray, FloatArray, finite, same_length
from kit.stats.errors import StatsError
from kit.stats.estimate import Estimate
from kit.stats.speedup import MIN_BLOCKS, log_mean
from kit.units import TokensPerSecond

__all__ = [
    "PeakRatio",
    "Saturation",
    "TwoPointSaturation",
    "UslFit",
    "UslPeak",
    "fit_usl",
    "peak_ratio",
    "saturation",
    "saturation2",
    "usl",
    "usl_peak",
]

MIN_LEVELS: Final = 6
FIT: Final = "USL fit"
SATURATED_SHARE: Final = 0.95
BEYOND_SWEEP: Final = 1.05
# Below these the terms bend nothing at any concurrency a server can hold; the optimiser stops just short of its bound.
SIGMA_FLOOR: Final = 1e-6
KAPPA_FLOOR: Final = 1e-9


class UslPeak(TypedDict):
    """Where a USL curve is highest and how high; None for a limit that is not reached or does not exist."""

    C_peak: float | None
    X_max: TokensPerSecond | None


class TwoPointSaturation(TypedDict):
    """kappa = 0 curve through X(1) and the plateau: half and 95 % points, knee, time per token."""

    C_half: float
    C95: float
    knee: float
    fixed_ms: float
    marginal_ms: float


@dataclass(frozen=True, slots=True)
class UslFit:
    """USL parameters of one curve; `kappa_includes_zero` is the t test that chooses asymptote over peak."""

    lam: float
    sigma: float
    kappa: float
    kappa_includes_zero: bool

    @property
    def x_max(self) -> TokensPerSecond | None:
        """Fitted maximum: the peak, or the asymptote when kappa is 0."""
        return usl_peak(self.lam, sigma=self.sigma, kappa=self.kappa)["X_max"]


@dataclass(frozen=True, slots=True)
class Saturation:
    """Saturation of one arm over a sweep.

    `c_sat` is the smallest measured C confirmed (one-sided 95 % over blocks) to reach 95 % of the maximum,
    `c_sat_point` the smallest by point estimate. `knee` is X_max / X(1). `saturated` is False when the maximum lies
    more than 5 % beyond the largest measured throughput.
    """

    fit: UslFit | None
    x_max: Estimate
    c_sat: float | None
    c_sat_point: float | None
    knee: Estimate
    saturated: bool


@dataclass(frozen=True, slots=True)
class PeakRatio:
    """Ratio of fitted maxima arm / baseline, and both maxima per block (tokens per second), empty without a fit."""

    ratio: Estimate
    arm: tuple[TokensPerSecond, ...] = ()
    baseline: tuple[TokensPerSecond, ...] = ()


def usl(C: float, *, lam: float, sigma: float, kappa: float) -> float:
    """Throughput of the Universal Scalability Law at concurrency C."""
    denominator = 1 + sigma * (C - 1) + kappa * C * (C - 1)
    if not (0 <= C < math.inf and 0 < denominator < math.inf and math.isfinite(lam)):
        raise StatsError(f"lambda {lam}, sigma {sigma}, kappa {kappa} give no throughput at C={C}; fit the curve first")
    return lam * C / denominator


def usl_peak(lam: float, *, sigma: float, kappa: float) -> UslPeak:
    """Peak of the curve, or its asymptote (no C) when kappa is 0; no maximum at all when sigma is 0 too."""
    if not (0 < lam < math.inf and 0 <= sigma < math.inf and 0 <= kappa < math.inf):
        raise StatsError(f"lambda {lam} is not above 0, or sigma {sigma} or kappa {kappa} below 0; fit the curve first")
    if kappa > 0 or sigma > 1:
        # A curve that only falls is highest at one request.
        peak = max(math.sqrt(max(1 - sigma, 0.0) / kappa), 1.0) if kappa > 0 else 1.0
        return UslPeak(C_peak=peak, X_max=usl(peak, lam=lam, sigma=sigma, kappa=kappa))
    return UslPeak(C_peak=None, X_max=lam / sigma if sigma > 0 else None)


def saturation2(x1: TokensPerSecond, *, xinf: TokensPerSecond) -> TwoPointSaturation:
    """Saturation from X(1) and the plateau alone: time per token is fixed / C + marginal."""
    if not (0 < x1 < xinf < math.inf and 1 / x1 < math.inf):
        raise StatsError(f"plateau {xinf} is not above X(1) = {x1}; two points fit no saturating curve")
    marginal = 1 / xinf
    fixed = 1 / x1 - marginal
    half = fixed / marginal
    return TwoPointSaturation(
        C_half=half,
        C95=half * SATURATED_SHARE / (1 - SATURATED_SHARE),
        knee=xinf / x1,
        fixed_ms=1000 * fixed,
        marginal_ms=1000 * marginal,
    )


def fit_usl(C: ArrayLike, *, X: ArrayLike) -> UslFit:
    """Least squares on log X over at least six levels; kappa is set to 0 when its 95 % interval includes 0."""
    levels, observed = np.asarray(C, float), np.asarray(X, float)
    if same_length(C=levels, X=observed) < MIN_LEVELS:
        raise StatsError(f"{len(levels)} levels; a saturation fit needs {MIN_LEVELS}")
    _check(levels, observed)
    logs = np.log(observed)
    log_lam, sigma, kappa = _fit(levels, logs, with_kappa=True).tolist()
    if kappa > max(KAPPA_FLOOR, _kappa_half_width(levels, logs, np.array([log_lam, sigma, kappa]))):
        return UslFit(math.exp(log_lam), sigma, kappa, kappa_includes_zero=False)
    log_lam, sigma = _fit(levels, logs, with_kappa=False).tolist()
    return UslFit(math.exp(log_lam), sigma, 0.0, kappa_includes_zero=True)


def _check(levels: FloatArray, observed: FloatArray) -> None:
    finite(C=levels, X=observed)
    if (levels < 1).any() or (observed <= 0).any():
        raise StatsError("a level below 1 or a throughput not above 0; leave the cell out")
    if observed.shape[-1] != len(levels):
        raise StatsError(f"throughputs of shape {observed.shape} do not match {len(levels)} levels, one column each")


def _terms(levels: FloatArray) -> FloatArray:
    return np.stack([levels - 1, levels * (levels - 1)], axis=1)


def _fit(levels: FloatArray, logs: FloatArray, *, with_kappa: bool) -> FloatArray:
    """(log lambda, sigma[, kappa]) of least squares on log X, with sigma and kappa not below 0."""
    terms = _terms(levels)[:, : 1 + with_kappa]
    # Rows weighted by X / C make the linear problem a relative one, like the log fit it starts.
    weighted = np.hstack([np.ones((len(levels), 1)), terms]) * (np.exp(logs) / levels)[:, None]
    linear = optimize.nnls(weighted, np.ones(len(levels)))[0]
    scale = max(float(linear[0]), 1e-12)

    def residuals(theta: FloatArray) -> FloatArray:
        return np.asarray(theta[0] + np.log(levels) - np.log1p(terms @ theta[1:]) - logs, float)

    start = np.array([-math.log(scale), *(linear[1:] / scale)])
    lower = np.array([-np.inf, *np.zeros(terms.shape[1])])
    found = optimize.least_squares(residuals, start, bounds=(lower, np.inf), x_scale="jac", xtol=1e-12, ftol=1e-12)
    floors = np.array([-np.inf, SIGMA_FLOOR, KAPPA_FLOOR])[: len(found.x)]
    return np.where(found.x > floors, found.x, 0.0)


def _kappa_half_width(levels: FloatArray, logs: FloatArray, theta: FloatArray) -> float:
    """Half-width of kappa's 95 % t interval, from the Jacobian of log X at the fit."""
    terms = _terms(levels)
    denominator = 1 + terms @ theta[1:]
    jacobian = np.hstack([np.ones((len(levels), 1)), -terms / denominator[:, None]])
    residuals = theta[0] + np.log(levels) - np.log(denominator) - logs
    freedom = len(levels) - len(theta)
    covariance = np.linalg.pinv(jacobian.T @ jacobian) * (residuals @ residuals) / freedom
    return float(stats.t.ppf(0.975, freedom) * math.sqrt(covariance[-1, -1]))


def saturation(C: Sequence[float], *, X: ArrayLike) -> Saturation:
    """Saturation from throughputs X (blocks, levels); every block holds one complete sweep of the arm."""
    levels, observed = np.asarray(C, float), np.atleast_2d(np.asarray(X, float))
    if len(levels) < MIN_LEVELS:
        return _unfitted(f"{len(levels)} levels; a saturation fit needs {MIN_LEVELS}", len(observed))
    if not len(observed):
        return _unfitted("no block was measured", 0)
    _check(levels, observed)
    mean = np.exp(np.log(observed).mean(axis=0))
    # One family for all blocks, chosen on their mean: blocks that chose for themselves would mix peaks with asymptotes.
    fit = fit_usl(levels, X=mean)
    singles, peaks = _log_singles_and_peaks(levels, observed, fit)
    x_max = log_mean(peaks).mapped(math.exp)
    if fit.x_max is None or x_max.point is None:
        return _unfitted("throughput grows in proportion to concurrency: no maximum in sight", len(observed))
    return Saturation(
        fit=fit,
        x_max=x_max,
        c_sat=_first(levels, _lower_limits(np.log(observed) - peaks[:, None]) >= SATURATED_SHARE),
        c_sat_point=_first(levels, mean / x_max.point >= SATURATED_SHARE),
        knee=log_mean(peaks - singles).mapped(math.exp),
        saturated=x_max.point <= BEYOND_SWEEP * float(mean.max()),
    )


def _unfitted(reason: str, blocks: int) -> Saturation:
    missing = Estimate.missing(reason, n=blocks, method=FIT)
    return Saturation(None, missing, None, None, missing, saturated=False)


def _log_singles_and_peaks(levels: FloatArray, observed: FloatArray, fit: UslFit) -> tuple[FloatArray, FloatArray]:
    """log X(1) and log X_max per block, each block refitted in the family of the mean curve; (blocks,) each.

    Empty when some block has no maximum. X(1) is the measured one where the sweep has it.
    """
    singles, peaks = [], []
    for row in np.log(observed):
        theta = _fit(levels, row, with_kappa=not fit.kappa_includes_zero)
        peak = usl_peak(math.exp(theta[0]), sigma=theta[1], kappa=theta[2] if len(theta) > 2 else 0.0)["X_max"]
        if peak is None:
            return np.empty(0), np.empty(0)
        singles.append(float(row[levels == 1][0]) if (levels == 1).any() else theta[0])
        peaks.append(math.log(peak))
    return np.array(singles), np.array(peaks)


def _lower_limits(log_share: FloatArray) -> FloatArray:
    """One-sided 95 % lower limit of X(C) / X_max per level; 0 with fewer than three blocks."""
    blocks = len(log_share)
    if blocks < MIN_BLOCKS:
        return np.zeros(log_share.shape[1])
    half = stats.t.ppf(0.95, blocks - 1) * log_share.std(axis=0, ddof=1) / math.sqrt(blocks)
    return np.asarray(np.exp(log_share.mean(axis=0) - half), float)


def _first(levels: FloatArray, reached: BoolArray) -> float | None:
    return float(levels[reached].min()) if reached.any() else None


def peak_ratio(C: Sequence[float], *, arm: ArrayLike, baseline: ArrayLike) -> PeakRatio:
    """Ratio of fitted maxima arm / baseline, paired by block; both (blocks, levels), blocks with a NaN left out."""
    levels, over, under = np.asarray(C, float), *(np.atleast_2d(np.asarray(X, float)) for X in (arm, baseline))
    if len(levels) < MIN_LEVELS:
        return PeakRatio(Estimate.missing(f"{len(levels)} levels; a saturation fit needs {MIN_LEVELS}", method=FIT))
    same_length(arm=over, baseline=under)
    whole = ~np.isnan(over + under).any(axis=1)
    if not whole.any():
        return PeakRatio(Estimate.missing("no block has a valid cell of both at every level", method=FIT))
    _check(levels, over[whole])
    _check(levels, under[whole])
    tops, bottoms = (_block_peaks(levels, X[whole]) for X in (over, under))
    if not len(tops) or not len(bottoms):
        return PeakRatio(Estimate.missing("an arm has no maximum in sight", n=int(whole.sum()), method=FIT))
    ratio = log_mean(tops - bottoms).mapped(math.exp)
    return PeakRatio(ratio, tuple(np.exp(tops).tolist()), tuple(np.exp(bottoms).tolist()))


def _block_peaks(levels: FloatArray, observed: FloatArray) -> FloatArray:
    fit = fit_usl(levels, X=np.exp(np.log(observed).mean(axis=0)))
    return _log_singles_and_peaks(levels, observed, fit)[1]
