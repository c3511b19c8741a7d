"""The few modules of SGLang that the plugin touches, with its names and signatures and a toy behind them."""

__version__ = "0.0.0.toy"
