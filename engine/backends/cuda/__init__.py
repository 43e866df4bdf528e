"""The CUDA backend: paged cache, CUDA graphs, Triton kernels. A CPU runs all of it but graphs and Triton, for tests."""
