"""Paged cache, graphs and kernels of a CUDA device. All but the capture and the Triton kernels runs on a CPU too."""
