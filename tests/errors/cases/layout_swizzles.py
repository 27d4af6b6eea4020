"""What swizzles and the layouts of the hardware refuse."""

from catalogue import Case, Topic

from warpjit.errors import LayoutError

TOPIC = Topic(
    "Layouts",
    "Swizzles and pictures",
    (
        Case("ComposeLayout(0, 3, 2, TileLayout(S[8]))",
             "swizzle: atom_len: expected at least swizzle_len, 3, but got 2"),
        Case("ComposeLayout(-1, 3, 3, TileLayout(S[8]))", "swizzle: per_element: expected 0 or more but got -1"),
        Case("ComposeLayout(0, 1.5, 3, TileLayout(S[8]))", "swizzle: swizzle_len: expected an int but got 1.5"),
        Case("ComposeLayout(0, 1, 1, S[8])", "ComposeLayout: tile_layout: expected a TileLayout but got S[8 : 1]"),
        Case("ComposeLayout(3, 3, 3, TileLayout(S[512])).pack(16)",
             "ComposeLayout(3, 3, 3, TileLayout(S[512 : 1])): pack: n: expected at most 8, the elements that the "
             "swizzle keeps together, but got 16"),
        Case("ComposeLayout(3, 3, 3, TileLayout(S[512])).unpack(3)",
             "ComposeLayout(3, 3, 3, TileLayout(S[512 : 1])): unpack: n: expected a power of two but got 3"),
        Case("ComposeLayout(0, 1, 1, TileLayout(S[4])).compose(ComposeLayout(0, 1, 1, TileLayout(S[4])))",
             "ComposeLayout(0, 1, 1, TileLayout(S[4 : 1])): compose: expected a layout without a swizzle but got "
             "ComposeLayout(0, 1, 1, TileLayout(S[4 : 1])): two do not make one"),
        Case("ComposeLayout(0, 1, 1, TileLayout(S[4:2])).inverse([m])",
             "ComposeLayout(0, 1, 1, TileLayout(S[4 : 2])): inverse: not a bijection onto m < 8: no element is at m "
             "= 1"),
        Case("ComposeLayout(0, 1, 2, TileLayout(S[(2, 2, 3) : (1, 2, 4)])).inverse([m])",
             "ComposeLayout(0, 1, 2, TileLayout(S[(2, 2, 3) : (1, 2, 4)])): inverse: no swizzle after "
             "TileLayout(S[(3, 2, 2) : (1, 3, 6)]) is the same as the swizzle before it"),
        Case('layout.mma_shared_layout("float16", 3, (64, 32))',
             "mma_shared_layout: shape: expected a multiple of 64 columns but got (64, 32): the atom of a 128-byte "
             "swizzle is 8 x 64 elements of 16 bits"),
        Case('layout.mma_shared_layout("float16", 3, (64,))',
             "mma_shared_layout: shape: expected rows and columns but got (64,)"),
        Case('layout.mma_shared_layout("float16", 3, (0, 64))',
             "mma_shared_layout: shape (0, 64): dim 0: expected at least 1 but got 0"),
        Case("layout.mma_shared_layout(16, 5, (8, 64))",
             "mode: expected a SwizzleMode, 0 to 3, or 32, 64 or 128 (bytes) but got 5"),
        Case('layout.mma_atom_shape("half", 1)', "dtype: expected a type, its name or a number of bits but got 'half'"),
        Case('layout.mma_atom_shape("float6_e2m3fn", 1)',
             "dtype: expected a type of 1, 2, 4, … or 128 bits but got 'float6_e2m3fn', of 6 bits"),
        Case("layout.mma_atom_shape(None, 1)", "dtype: expected an int but got None"),
        Case("TileLayout(S[1024, 1024]).draw()",
             "draw: expected at most 16384 elements but got shape (1024, 1024): draw a slice, or a part of the shape"),
        Case('TileLayout(S[8, 8]).draw(color="lane")', "draw: expected color 'bank' but got 'lane'"),
    ),
    frame="",
    error=LayoutError,
)  # fmt: skip
