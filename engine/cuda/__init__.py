"""Paged cache and graphs of a CUDA device. All but the capture and the Triton kernels runs, and is tested, on a CPU."""
