"""What `t.convert` refuses."""

from catalogue import Case, Topic

FRAME = """\
@warpjit
def kernel(Out):
    T.device_entry(launch=T.cuda.LaunchConfig(grid=1, block=128))
    t = T.alloc_local((4,), "float32").view(512, layout=TileLayout(S[(4, 4, 32) : (1 @ warpid, 1, 1 @ laneid)]))
    target = TileLayout(S[(4, 4, 32) : (1, 1 @ warpid, 1 @ laneid)])
    ...

kernel(torch.zeros(512))
"""
HALF = """\
two = T.alloc_local((8,), "float32").view(512, layout=TileLayout(S[(2, 8, 32) : (1 @ warpid, 1, 1 @ laneid)]))
two.convert(TileLayout(S[(8, 2, 32) : (1, 1 @ warpid, 1 @ laneid)]), scratch=T.alloc_shared((512,), "float32"))"""
THREADS = """\
T.alloc_local((4,), "int32").view(512, layout=TileLayout(S[(4, 128) : (1, 1 @ layout.tx)])).convert(target)"""


def wrong(program: str, message: str) -> Case:
    """A mistaken call by itself."""
    return Case(program, message, program)


TOPIC = Topic(
    "The language",
    "Fragments moved to other layouts",
    (
        wrong(
            THREADS,
            "convert: expected registers placed by lanes and warps alone, once each, but the layout of local is "
            "TileLayout(S[(4, 128) : (1, 1 @ tx)])",
        ),
        wrong('t.convert("A")', "convert: expected a layout of lanes and registers but got str 'A'"),
        wrong(
            "t.convert(TileLayout(S[32 : 1 @ laneid]))",
            "convert: expected a layout of 512 elements, as t of shape (512,), but got TileLayout(S[32 : 1 @ laneid]) "
            "of 32",
        ),
        wrong(
            "t.convert(target)",
            "convert: t: elements leave their warp: store them to 2048 bytes of shared memory, and load them after a "
            "barrier: give a shared tensor as scratch",
        ),
        wrong(
            "t.convert(target, scratch=t)",
            "convert: expected scratch to be a shared tensor but got the tensor t",
        ),
        wrong(
            't.convert(target, scratch=T.alloc_shared((256,), "float32"))',
            "convert: expected scratch to hold 512 float32, as t, but shared, shape (256,), holds float32",
        ),
        Case(
            HALF,
            "convert: expected the layouts to place elements in all 4 warps of the CTA, since it synchronises, but "
            "that of two is TileLayout(S[(2, 8, 32) : (1 @ warpid, 1, 1 @ laneid)])",
            HALF.split("\n")[1],
        ),
    ),
    frame=FRAME,
)
