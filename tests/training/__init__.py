"""The reference job on real PyTorch (CPU, gloo): `make training`."""
