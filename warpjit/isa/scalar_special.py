"""Who and where a thread is: `SPECIAL[register]`, all int32.

Read from PTX special registers (manual, section "Special Registers") and C++'s index variables. `warp` is emitted as
a broadcast from lane 0, so that the compiler knows that it is the same for the whole warp. Params that shorten `tid`
and `warp`: `ntid_x` and `ntid_y`, the extents of the block, where they are known (a block of one dimension: both
suffice, with `ntid_z` 1).
"""

from __future__ import annotations

from collections.abc import Mapping

from warpjit.ir.dtypes import int32
from warpjit.isa.needs import EVERYWHERE, since
from warpjit.isa.row import Code, Cxx, Needs, Participants, Row, Special
from warpjit.isa.scalar_text import result

_INDICES = {"tid": "threadIdx", "ctaid": "blockIdx", "ntid": "blockDim", "nctaid": "gridDim"}


def _linear(params: Mapping[str, int]) -> str:
    """The linear thread index, x fastest."""
    x = str(params.get("ntid_x", "blockDim.x"))
    y = str(params.get("ntid_y", "blockDim.y"))
    if params.get("ntid_z") == 1 and params.get("ntid_y") == 1:
        return "threadIdx.x"
    if params.get("ntid_z") == 1:
        return f"(threadIdx.x + {x} * threadIdx.y)"
    return f"(threadIdx.x + {x} * (threadIdx.y + {y} * threadIdx.z))"


def _warp(params: Mapping[str, int]) -> Cxx:
    shuffle = "shfl.sync.idx.b32 %0, %1, 0, 31, 0xffffffff;"
    return Cxx(f'asm volatile("{shuffle}" : "=r"({{d}}) : "r"((int)({_linear(params)} / 32)));')


def _register(name: str) -> Cxx:
    return Cxx(f'asm("mov.u32 %0, %%{name};" : "=r"({{d}}));')


def _row(name: str, code: Code, needs: Needs = EVERYWHERE, participants: Participants = Participants.THREAD) -> Row:
    return Row(
        text=f"special.{name}",
        operands=(result("d", int32),),
        code=code,
        meaning=None,
        needs=needs,
        participants=participants,
        effect=Special(name),
        pure=True,
        section="Special Registers",
    )


_CLUSTER = (
    *("cluster_ctarank", "cluster_nctarank"),
    *(f"{n}clusterid.{axis}" for n in ("", "n") for axis in "xyz"),
    *(f"cluster_{n}ctaid.{axis}" for n in ("", "n") for axis in "xyz"),
)

SPECIAL: dict[str, Row] = {
    "laneid": _row("laneid", _register("laneid")),
    "tid": _row("tid", lambda params: Cxx(f"{{d}} = (int){_linear(params)};")),
    "warp": _row("warp", _warp, participants=Participants.WARP),
    **{
        f"{name}.{axis}": _row(f"{name}.{axis}", Cxx(f"{{d}} = (int){variable}.{axis};"))
        for name, variable in _INDICES.items()
        for axis in "xyz"
    },
    **{name: _row(name, _register(name), since(90)) for name in _CLUSTER},
}
"""laneid, tid (linear thread index), warp (tid / 32), tid.x ... nctaid.z, cluster_ctarank, cluster_ctaid.x, ..."""
