"""Kernels written in the language, called like functions of torch.

    called as       kernel
    matmul          gemm                 products of 16-bit floats
    matmul_int8     gemm                 of int8
    w4a16           w4a16_product        of 16-bit floats with weights of 4 bits, which `w4a16_pack` packs
    attention       flash
    softmax, rmsnorm, layernorm          each with its own; what kernels along rows share is `rows`

What callers share: `facts` of tensors, the `device`, `products`' tiles, `tiles` that are tuned.
"""
