"""Root on one GPU node: what its role may do, tried on emulated AWS and the real functions."""
