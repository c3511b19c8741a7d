"""Whether a host can measure a spec: what blocks, what would disturb, and what to do about it."""

from kit.doctor.gate import require_host

__all__ = ["require_host"]
