extern "C" __global__ void __launch_bounds__(32)
swizzled_round_trip(unsigned char* A, unsigned char* Out) {
    extern __shared__ __align__(1024) unsigned char smem[];
    const unsigned int smem_base = (unsigned int)__nv_cvta_generic_to_shared_impl(smem);
    enum { a = 0, b = 2048 };  // bytes from the arena's begin; 4096 in all
    int lane; asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    for (int row = 0; row < 16; row += 1) {
        int t = row * 128;
        int t_1 = lane * 2;
        int offset = t + t_1;
        unsigned short v = *(unsigned short*)(A + offset);
        int t_2 = row * 8;
        int t_3 = (int)(t_2 & 56);
        int t_4 = row * 64;
        int t_5 = (int)(t_4 ^ t_3);
        int t_6 = (int)(t_5 ^ lane);
        int offset_1 = t_6 * 2;
        *(unsigned short*)(smem + offset_1 + a) = v;
        unsigned short v_1 = *(unsigned short*)(A + offset + 64);
        int t_8 = (int)(t_6 ^ 32);
        int offset_2 = t_8 * 2;
        *(unsigned short*)(smem + offset_2 + a) = v_1;
    }
    asm volatile("bar.sync %0;" : : "r"(0) : "memory");
    unsigned int words_0, words_1, words_2, words_3;
    int t_9 = (int)((unsigned int)lane / (unsigned int)8);
    int t_10 = (int)((unsigned int)lane % (unsigned int)8);
    int t_11 = (int)((unsigned int)t_9 / (unsigned int)2);
    int t_12 = (int)((unsigned int)t_9 % (unsigned int)2);
    int t_13 = t_10 * 4;
    int t_14 = (int)(t_13 & 28);
    int t_15 = t_10 * 32;
    int t_16 = (int)(t_15 ^ t_14);
    int t_17 = t_11 * 4;
    int t_18 = (int)(t_17 ^ t_16);
    int t_19 = t_12 * 1024;
    int t_20 = t_18 * 4;
    int offset_3 = t_19 + t_20;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(words_0), "=r"(words_1), "=r"(words_2), "=r"(words_3) : "r"(smem_base + offset_3 + a) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" : : "r"(smem_base + offset_3 + b), "r"(words_0), "r"(words_1), "r"(words_2), "r"(words_3) : "memory");
    int t_21 = (int)(t_18 ^ 8);
    int t_22 = t_21 * 4;
    int offset_4 = t_19 + t_22;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(words_0), "=r"(words_1), "=r"(words_2), "=r"(words_3) : "r"(smem_base + offset_4 + a) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" : : "r"(smem_base + offset_4 + b), "r"(words_0), "r"(words_1), "r"(words_2), "r"(words_3) : "memory");
    int t_23 = (int)(t_18 ^ 16);
    int t_24 = t_23 * 4;
    int offset_5 = t_19 + t_24;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(words_0), "=r"(words_1), "=r"(words_2), "=r"(words_3) : "r"(smem_base + offset_5 + a) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" : : "r"(smem_base + offset_5 + b), "r"(words_0), "r"(words_1), "r"(words_2), "r"(words_3) : "memory");
    int t_25 = (int)(t_18 ^ 24);
    int t_26 = t_25 * 4;
    int offset_6 = t_19 + t_26;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(words_0), "=r"(words_1), "=r"(words_2), "=r"(words_3) : "r"(smem_base + offset_6 + a) : "memory");
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" : : "r"(smem_base + offset_6 + b), "r"(words_0), "r"(words_1), "r"(words_2), "r"(words_3) : "memory");
    asm volatile("bar.sync %0;" : : "r"(0) : "memory");
    for (int row_1 = 0; row_1 < 16; row_1 += 1) {
        int t_27 = row_1 * 8;
        int t_28 = (int)(t_27 & 56);
        int t_29 = row_1 * 64;
        int t_30 = (int)(t_29 ^ t_28);
        int t_31 = (int)(t_30 ^ lane);
        int offset_7 = t_31 * 2;
        unsigned short v_2 = *(unsigned short*)(smem + offset_7 + b);
        int t_32 = row_1 * 128;
        int t_33 = lane * 2;
        int offset_8 = t_32 + t_33;
        *(unsigned short*)(Out + offset_8) = v_2;
        int t_34 = (int)(t_31 ^ 32);
        int offset_9 = t_34 * 2;
        unsigned short v_3 = *(unsigned short*)(smem + offset_9 + b);
        *(unsigned short*)(Out + offset_8 + 64) = v_3;
    }
}
