"""What softmax, RMSNorm and LayerNorm refuse."""

from catalogue import Case, Topic

from warpjit.errors import ArgumentError

TOPIC = Topic(
    "The package's kernels",
    "Softmax and normalisation",
    (
        Case("softmax(5)", "x: expected a tensor but got 5"),
        Case("softmax(x[0, 0])", "x: expected floats with one axis or more but got shape () of torch.float32"),
        Case("rmsnorm(x.int())", "x: expected floats with one axis or more but got shape (2, 4) of torch.int32"),
        Case("softmax(x, 2)", "dim: expected an axis of shape (2, 4) but got 2"),
        Case(
            "softmax(x, out=x.T)",
            "out: expected shape (2, 4) of torch.float32 but got shape (4, 2) of torch.float32",
        ),
        Case("layernorm(x, torch.ones(2))", "weight: expected shape (4,) but got shape (2,)"),
    ),
    frame="""\
from warpjit.kernels.layernorm import layernorm
from warpjit.kernels.rmsnorm import rmsnorm
from warpjit.kernels.softmax import softmax

x = torch.zeros(2, 4)
...
""",
    error=ArgumentError,
)
