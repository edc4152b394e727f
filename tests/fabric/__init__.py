"""Fabric tests over real MPI traffic between network namespaces of this machine: `make fabric`."""
