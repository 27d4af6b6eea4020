extern "C" __global__ void __launch_bounds__(64)
producer_consumer(unsigned char* A, unsigned char* Out) {
    extern __shared__ __align__(1024) unsigned char smem[];
    const unsigned int smem_base = (unsigned int)__nv_cvta_generic_to_shared_impl(smem);
    enum { ring = 0, full = 256, empty = 272 };  // bytes from the arena's begin; 288 in all
    int lane; asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    int thread_x = (int)threadIdx.x;
    int warp; asm volatile("shfl.sync.idx.b32 %0, %1, 0, 31, 0xffffffff;" : "=r"(warp) : "r"((int)(threadIdx.x / 32)));
    bool t = thread_x == 0;
    if (t) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(smem_base + full), "r"(1) : "memory");
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(smem_base + empty), "r"(32) : "memory");
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(smem_base + (full + 8)), "r"(1) : "memory");
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(smem_base + (empty + 8)), "r"(32) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
    }
    asm volatile("bar.sync %0;" : : "r"(0) : "memory");
    bool t_1 = warp == 0;
    if (t_1) {
        bool t_2 = lane == 0;
        if (t_2) {
#pragma unroll 1
            for (int i = 0; i < 64; i += 1) {
                int t_3 = (int)((unsigned int)i % (unsigned int)2);
                int offset = t_3 * 8;
                int t_4 = (int)((unsigned int)i / (unsigned int)2);
                int t_5 = t_4 + 1;
                int t_6 = (int)((unsigned int)t_5 % (unsigned int)2);
                asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra DONE; bra WAIT; DONE: }" : : "r"(smem_base + offset + empty), "r"(t_6) : "memory");
                asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1; }" : : "r"(smem_base + offset + full), "r"(128) : "memory");
                int offset_1 = t_3 * 128;
                int offset_2 = i * 128;
                asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" : : "r"(smem_base + offset_1 + ring), "l"(A + offset_2), "r"(128), "r"(smem_base + offset + full) : "memory");
            }
        }
    } else {
#pragma unroll 1
        for (int i_1 = 0; i_1 < 64; i_1 += 1) {
            int t_7 = (int)((unsigned int)i_1 % (unsigned int)2);
            int offset_3 = t_7 * 8;
            int t_8 = (int)((unsigned int)i_1 / (unsigned int)2);
            int t_9 = (int)((unsigned int)t_8 % (unsigned int)2);
            asm volatile("{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra DONE; bra WAIT; DONE: }" : : "r"(smem_base + offset_3 + full), "r"(t_9) : "memory");
            int t_10 = t_7 * 128;
            int t_11 = lane * 4;
            int offset_4 = t_10 + t_11;
            float v = *(float*)(smem + offset_4 + ring);
            float t_12 = 2.0f * v;
            int t_13 = i_1 * 128;
            int offset_5 = t_13 + t_11;
            *(float*)(Out + offset_5) = t_12;
            asm volatile("{ .reg .b64 state; mbarrier.arrive.shared::cta.b64 state, [%0]; }" : : "r"(smem_base + offset_3 + empty) : "memory");
        }
    }
}
