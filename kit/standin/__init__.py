"""A strict stand-in for SGLang: the same flags, endpoints, refusals and traces, without a model.

It imitates 0.5.15.post1, or another version with `--version`, as far as their contracts and recorded answers of
theirs tell (`tests/standin/test_differential.py`). `world` says what is true (text, draft quality, cost of an
iteration), `engine` schedules it in virtual time, `server` plays it against the clock over HTTP, `truth` computes what
a measurement of it should find, and `faults` names what it can be asked to get wrong.
Start one with `python -m kit.standin --world crossover --launch-seed 0 --model-path any/model`.
"""
