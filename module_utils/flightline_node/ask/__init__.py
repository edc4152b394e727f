"""How a node is asked: probes, the readers of files, the runner, the tests that need the hardware to themselves."""
