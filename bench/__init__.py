"""The figures: what is measured, how, and what came out. One file a figure; `python -m bench` runs them.

    harness     what a figure is, where it is written, on which machine it was taken
    measures    medians, spreads and ratios of timings
    regimes     the two orders in which kernels are timed beside each other on a GPU
    clocks      the GPU's clock, in a kernel and as nvidia-smi reads it
    report      tables on the terminal and PNG plots, from the JSON files in results/

    beside      what figures of functions that are called like torch's have in common: attention, norms, quant
    native      kernels by other hands, compiled and launched

    attention   attention, forward
    gemm        a product of matrices (with products, contestants, generated, loop)
    isa         instructions on the device against the simulator, bit for bit (with isa_inputs, isa_kernels, isa_sparse)
    launch      the host's time of a warm launch (with launchers)
    norms       softmax, RMSNorm and LayerNorm
    quant       products with weights of 4 bits, and of int8
    start       the first result of a fresh process
    trace       tracing, verifying and emitting; `import warpjit`
    tune        tuning a product (with triton_tuned)

`reference/` holds the kernels by other hands that the generated ones are measured against, `triton_kernels` Triton's.
"""
