"""Tuned kernels: what autotune, Config and space take, and what tuning says when nothing runs."""

from catalogue import Case, Topic

from warpjit.errors import ArgumentError, CompileError, TuningError

FRAME = """\
from warpjit.tuner import Limits

@warpjit
def kernel(X: T.Tensor((T.dynamic("N"),), "float32"), Out, *, BLOCK):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=BLOCK))

x = torch.zeros(64)
configs = [warpjit.Config(BLOCK=32), warpjit.Config(BLOCK=64)]
...
"""

TOPIC = Topic(
    "Calling a kernel",
    "Tuned kernels",
    (
        Case("warpjit.autotune([])(kernel)",
             "configs: expected at least one Config to try but got none"),
        Case("warpjit.autotune(warpjit.Config(BLOCK=32))(kernel)",
             "configs: expected Configs in a list, or a function that gives them, but got Config(BLOCK=32)"),
        Case("warpjit.autotune([{'BLOCK': 32}])(kernel)",
             "configs: expected Configs, such as Config(BLOCK=32), but got {'BLOCK': 32}"),
        Case("warpjit.autotune(kernel)",
             "configs: expected Configs, or a function that gives them, but got <warpjit kernel kernel>: the decorator "
             "is called, @warpjit.autotune(configs), above @warpjit"),
        Case("warpjit.autotune(configs, buckets={'N': 'pow2'})(kernel)",
             "autotune: expected one of its options (atol, bucket, budget, check, isolate, jobs, key, l2, progress, "
             "prune, reference, rtol, rules, seed, timer) but got 'buckets'"),
        Case("warpjit.autotune([warpjit.Config(BM=32)])(kernel)",
             "configs: expected compile-time constants of kernel(X, Out, *, BLOCK), those after *, but got BM"),
        Case("warpjit.autotune(lambda given: [3])(kernel)(x, x)",
             "configs: expected Configs of ['BLOCK'] but got 3"),
        Case("warpjit.autotune(configs)(3)",
             "autotune: expected a function decorated with @warpjit but got 3"),
        Case("""
            @warpjit
            @warpjit.autotune(configs)
            def swapped(X, Out, *, BLOCK):
                T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=BLOCK))
            """,
             "autotune: expected a function decorated with @warpjit but got the function swapped: @warpjit stands "
             "directly above its def, and @warpjit.autotune(...) above that"),
        Case("warpjit.autotune(configs)(warpjit.autotune(configs)(kernel))",
             "autotune: expected a function decorated with @warpjit but got <autotuned <warpjit kernel kernel>>, which "
             "is tuned already: give one autotune all Configs"),
        Case("warpjit(warpjit.autotune(configs)(kernel))",
             "warpjit: expected a function but got <autotuned <warpjit kernel kernel>>, which is a kernel already: "
             "@warpjit stands once, directly above the def, and @warpjit.autotune(...) above it"),
        Case("warpjit.autotune(configs)(kernel)(x, x, BLOCK=32)",
             "kernel(X, Out): expected no value for BLOCK, which is tuned, but got 32: leave it out, or call the "
             "kernel below, kernel.kernel(..., BLOCK=32)"),
        Case("warpjit.compile(warpjit.autotune(configs)(kernel))",
             "warpjit.compile: expected a function decorated with @warpjit but got <autotuned <warpjit kernel "
             "kernel>>: compile its kernel, the attribute .kernel, with all constants"),
        Case("warpjit.autotune(configs, key='N')(kernel)",
             "key: expected names in a list but got 'N'"),
        Case("warpjit.autotune(configs, key=['M'])(kernel)",
             "key: expected names of parameters, or of sizes, of kernel(X, Out, *, BLOCK) but got 'M'"),
        Case("warpjit.autotune(configs, bucket={'M': 'pow2'})(kernel)",
             "bucket: expected names of sizes of kernel(X, Out, *, BLOCK), or \"X.shape[0]\", but got 'M'"),
        Case("warpjit.autotune(configs, bucket={'N': 'pow3'})(kernel)",
             "bucket['N']: expected \"pow2\", a positive int or a function but got 'pow3'"),
        Case("warpjit.autotune(configs, prune=3)(kernel)",
             "prune: expected a function (config, arguments) or Limits but got 3"),
        Case("warpjit.autotune(configs, reference=3)(kernel)",
             "reference: expected a function but got 3"),
        Case("warpjit.autotune(configs, budget=-1)(kernel)",
             "budget: expected a positive number of seconds or None but got -1"),
        Case("warpjit.autotune(configs, l2='hot')(kernel)",
             "l2: expected \"cold\" or \"warm\" but got 'hot'"),
        Case("warpjit.space(BM=64)",
             "BM: expected the values to try, in a list, but got 64"),
        Case("warpjit.space(BM=[64], where=lambda config: False)",
             "space: expected at least one configuration but got none"),
        Case("warpjit.autotune([warpjit.Config(BLOCK=32, max_registers=8)])(kernel)(x, x)",
             "max_registers: expected 16 to 255 but got 8"),
        Case("kernel.warmup([3])",
             "calls[0]: expected a tuple of arguments, or a dict of them by name, but got int"),
        Case("kernel.warmup({'X': x, 'Out': x, 'BLOCK': 32})",
             "calls: expected a list of calls, each a tuple of arguments or a dict of them by name, but got a dict: "
             "for one call, put it in a list"),
        Case("kernel.warmup(None)",
             "calls: expected a list of calls, each a tuple of arguments or a dict of them by name, but got None"),
        Case("kernel.warmup([], jobs=0)",
             "jobs: expected a positive int or None but got 0"),
        Case("kernel.warmup([{'X': x, 'Out': x, 'BLOCK': 32, 'more': 1}])",
             "<warpjit kernel kernel>: 1 of 1 calls could not be compiled\n\n"
             "calls[0]: ArgumentError: kernel(X, Out, *, BLOCK): expected names of its parameters but got 'more'",
             error=CompileError),
        Case("warpjit.autotune(configs, prune=lambda config, given: True)(kernel)(x, x)",
             "example.kernel: expected a configuration to try, but prune leaves out all 2", error=TuningError),
        Case("warpjit.autotune(lambda given: [])(kernel)(x, x)",
             "configs: expected at least one Config for arguments of kernel(X, Out) but got none", error=TuningError),
        Case("""
            @warpjit.autotune(warpjit.space(how=["shared", "text"]))
            @warpjit
            def failing(X, *, how):
                T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=64))
                arena = T.alloc_shared((1 << 20 if how == "shared" else 64,), "float32")
                arena[T.cuda.thread_idx("x")] = 1.0 if how == "shared" else how

            failing(x)
            """,
             """\
example.failing: expected a configuration that runs but none of 2 does
  how='shared': too-much-shared: TargetError: expected at most 232,448 bytes of shared memory a CTA, which is what the \
target has, but failing allocates 4,194,304: arena 4,194,304 at 0 (example.py:11)
  how='text': compile-error: TraceError: expected a number to store in arena but got str 'text' (example.py:14)""",
             error=TuningError),
    ),
    frame=FRAME,
    error=ArgumentError,
)  # fmt: skip
