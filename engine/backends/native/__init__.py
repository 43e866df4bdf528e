"""The native CPU backend for bf16: a pass is one call of the C++ library in engine/kernels."""
