"""The CPU backend for bf16: whole passes in one call of a small C++ library, compiled for the machine it runs on."""
