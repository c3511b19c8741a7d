"""A strict stand-in for SGLang 0.5.15: the same flags, endpoints, refusals and traces, without a model.

`world` says what is true (text, draft quality, cost of an iteration), `engine` schedules it in virtual time,
`server` plays it against the clock over HTTP, and `truth` computes what a measurement of it should find.
Start one with `python -m kit.standin --world crossover --launch-seed 0 --model-path any/model`.
"""
