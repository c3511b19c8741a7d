"""Records every scheduler iteration of an SGLang server; see docs/trace.md for what, where and in which bytes."""

__version__ = "1.0.0"
