"""warpjit: warp-level tensor-core kernels in Python."""
