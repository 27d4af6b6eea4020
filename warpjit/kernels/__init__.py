"""Kernels written in the language, called like functions of torch."""
