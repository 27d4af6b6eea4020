"""A differential fuzzer of the language: random small kernels, run by Python, by the simulator and on the GPU.

    python -m tests.fuzz --programs 2000 --seed 0      on the simulator; with --gpu on the GPU as well

    types         the scalar types and how they meet, written down again, apart from the package
    numbers       one number with the device's arithmetic, from Python's ints and numpy's scalars
    pairs         two 16-bit floats in one
    memory        tensors, from Python's lists
    oracle        the kernel's own text run by Python, a thread at a time, in step only where threads exchange values
    names         what stands for `T` there
    collective    what the threads of a warp, or a CTA, say together
    expressions   random expressions of a type
    statements    random statements that bind names and write memory
    control       random branches and loops
    structure     random tuples, lists, dictionaries, bundles and objects
    helpers       random functions and lambdas
    exchanges     random shuffles, votes, sums, atomics, and shared memory between barriers
    programs      a whole module: arguments, kernel, results; a seed makes one program
    trial         one program run all ways, and what differed
    mutate        programs made wrong, to see that only errors of the family come of them
    shrink        a smaller program that still fails, found on Python's syntax tree
    texts         many kernels in one run of nvcc, whose warnings are read

Programs are well defined by construction, and the oracle refuses what is not (`Invalid`): no division by zero, no index
outside, nothing unwritten is read, no race. Kernels are traced with `contract=False`, so floats agree bit for bit; a
NaN is like any other NaN. Left out: matrix instructions, asynchronous copies, layouts, approximate functions.
"""
