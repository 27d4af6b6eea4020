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
        Case(
            "softmax(x, out=torch.zeros(1, 4).expand(2, 4))",
            "out: expected a place in memory for each element but got shape (2, 4) with strides (0, 1)",
        ),
        Case("softmax(x[:1], out=x.view(-1)[1:5].view(1, 4))",
             "out: expected x itself, or memory apart from x's, but they overlap"),
        Case("softmax(x.to_sparse())",
             "x: expected a dense tensor in memory, but Cannot access data pointer of Tensor that doesn't have "
             "storage"),
        Case("softmax(torch.nested.nested_tensor([x, x], layout=torch.jagged))",
             "x: expected a dense tensor in memory but got a nested one"),
        Case('rmsnorm(x, eps="1e-5")', "eps: expected a number but got '1e-5'"),
        Case("layernorm(x, eps=None)", "eps: expected a number but got None"),
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
)  # fmt: skip
