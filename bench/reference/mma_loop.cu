// mma_loop.cu -- the roof of every mma.sync kernel: m16n8k16 products on registers alone, and the clock that they run at
//
// Build      nvcc -cubin -gencode arch=compute_90a,code=sm_90a -std=c++17 mma_loop.cu      fp16 (default) or bf16 (-DBF16)
//
// mma_loop   Every warp holds the fragments of a 64 x 16 A and a 64 x 16 B (two sets of them) and 32 accumulator tiles of
//   16 x 8, and adds the product UNROLL times per iteration, the sets in turn, in the serpentine order of a GEMM's loop.
//   Arguments  (operands, sums, clocks, iterations)
//     operands  32-bit words, two numbers each, [SETS][A: 16, B: 16][grid * 256]: read once, before the loop
//     sums      float [grid * 256]: each thread's sum of its 128 accumulators, so that nothing can be left out
//     clocks    64-bit [grid][2]: cycles and nanoseconds that the loop took in thread 0 of each block
//   Launch     block 256, grid: one block a multiprocessor.
//   FLOP       grid * 8 warps * iterations * UNROLL * 32 * 4096
//
// clock_now  Spins for `nanoseconds` and writes clocks [grid][2] likewise: the clock right after other work.
//   Launch     block 32.
//
// Left out: memory. What a kernel loses against this loop, it loses to feeding the tensor cores.
#ifndef UNROLL
#define UNROLL 4
#endif
#define SETS 2
#define MI 4
#define NI 8
#ifdef BF16
#define TY "bf16"
#else
#define TY "f16"
#endif
typedef unsigned u32;
typedef unsigned long long u64;

__device__ __forceinline__ u64 cycles() { u64 now; asm volatile("mov.u64 %0, %%clock64;" : "=l"(now)::"memory"); return now; }
__device__ __forceinline__ u64 nanoseconds_now() { u64 now; asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory"); return now; }

__device__ __forceinline__ void mma(float* d, const u32* a, const u32* b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TY "." TY ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

extern "C" __global__ void __launch_bounds__(256, 1) mma_loop(const u32* operands, float* sums, u64* clocks, int iterations) {
  const int thread = blockIdx.x * 256 + threadIdx.x, threads = gridDim.x * 256;
  u32 a[SETS][MI * 4], b[SETS][NI * 2];
#pragma unroll
  for (int set = 0; set < SETS; set++)
#pragma unroll
    for (int word = 0; word < 16; word++) {
      a[set][word] = operands[(set * 32 + word) * threads + thread];
      b[set][word] = operands[(set * 32 + 16 + word) * threads + thread];
    }
  float d[MI][NI][4];
#pragma unroll
  for (int i = 0; i < MI; i++)
#pragma unroll
    for (int j = 0; j < NI; j++)
#pragma unroll
      for (int q = 0; q < 4; q++) d[i][j][q] = 0;

  __syncthreads();
  const u64 cycle = cycles(), nanosecond = nanoseconds_now();
#pragma unroll 1
  for (int iteration = 0; iteration < iterations; iteration++)
#pragma unroll
    for (int step = 0; step < UNROLL; step++)
#pragma unroll
      for (int i = 0; i < MI; i++)
#pragma unroll
        for (int jj = 0; jj < NI; jj++) {
          const int j = (i & 1) ? NI - 1 - jj : jj;
          mma(d[i][j], &a[step % SETS][i * 4], &b[step % SETS][j * 2]);
        }

  float sum = 0;
#pragma unroll
  for (int i = 0; i < MI; i++)
#pragma unroll
    for (int j = 0; j < NI; j++)
#pragma unroll
      for (int q = 0; q < 4; q++) sum += d[i][j][q];
  sums[thread] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    clocks[blockIdx.x * 2] = cycles() - cycle;
    clocks[blockIdx.x * 2 + 1] = nanoseconds_now() - nanosecond;
  }
}

extern "C" __global__ void __launch_bounds__(32) clock_now(u64* clocks, int nanoseconds) {
  const u64 start = nanoseconds_now();
  u64 from = start, first = 0, now = start;
  // The timer ticks coarsely: both readings are taken where it has just moved on.
  do { from = nanoseconds_now(); first = cycles(); } while (from == start);
  u64 last = first;
  do { now = nanoseconds_now(); last = cycles(); } while (now - from < (u64)nanoseconds);
  if (threadIdx.x == 0) {
    clocks[blockIdx.x * 2] = last - first;
    clocks[blockIdx.x * 2 + 1] = now - from;
  }
}
