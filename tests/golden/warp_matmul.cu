extern "C" __global__ void __launch_bounds__(32)
warp_matmul(unsigned char* A, unsigned char* B, unsigned char* Out) {
    extern __shared__ __align__(1024) unsigned char smem[];
    const unsigned int smem_base = (unsigned int)__nv_cvta_generic_to_shared_impl(smem);
    enum { a = 0, b = 512 };  // bytes from the arena's begin; 768 in all
    int lane; asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    for (int q = 0; q < 8; q += 1) {
        int t_1 = (int)((unsigned int)lane / (unsigned int)16);
        int t_2 = (int)((unsigned int)lane % (unsigned int)16);
        int t_5 = q * 64;
        int t_6 = t_1 * 32;
        int t_7 = t_5 + t_6;
        int t_8 = t_2 * 2;
        int offset = t_7 + t_8;
        unsigned short v = *(unsigned short*)(A + offset);
        *(unsigned short*)(smem + offset + a) = v;
    }
    for (int q_1 = 0; q_1 < 4; q_1 += 1) {
        int t_10 = (int)((unsigned int)lane / (unsigned int)16);
        int t_11 = (int)((unsigned int)lane % (unsigned int)16);
        int t_14 = q_1 * 64;
        int t_15 = t_10 * 32;
        int t_16 = t_14 + t_15;
        int t_17 = t_11 * 2;
        int offset_1 = t_16 + t_17;
        unsigned short v_1 = *(unsigned short*)(B + offset_1);
        *(unsigned short*)(smem + offset_1 + b) = v_1;
    }
    asm volatile("bar.sync %0;" : : "r"(0) : "memory");
    unsigned int ar_0, ar_1, ar_2, ar_3;
    unsigned int br_0, br_1;
    float dr_0, dr_1, dr_2, dr_3;
    int t_18 = (int)((unsigned int)lane / (unsigned int)8);
    int t_19 = (int)((unsigned int)lane % (unsigned int)8);
    int t_20 = (int)((unsigned int)t_18 / (unsigned int)2);
    int t_21 = (int)((unsigned int)t_18 % (unsigned int)2);
    int t_22 = t_20 * 16;
    int t_23 = t_21 * 256;
    int t_24 = t_22 + t_23;
    int t_25 = t_19 * 32;
    int offset_2 = t_24 + t_25;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(ar_0), "=r"(ar_1), "=r"(ar_2), "=r"(ar_3) : "r"(smem_base + offset_2 + a) : "memory");
    int t_26 = t_21 * 16;
    int offset_3 = t_26 + t_25;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(br_0), "=r"(br_1) : "r"(smem_base + offset_3 + b) : "memory");
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};" : "=f"(dr_0), "=f"(dr_1), "=f"(dr_2), "=f"(dr_3) : "r"(ar_0), "r"(ar_1), "r"(ar_2), "r"(ar_3), "r"(br_0), "r"(br_1), "f"(0.0f), "f"(0.0f), "f"(0.0f), "f"(0.0f));
    float r = dr_0;
    int t_27 = (int)((unsigned int)lane / (unsigned int)4);
    int t_28 = (int)((unsigned int)lane % (unsigned int)4);
    int t_30 = t_27 * 32;
    int t_31 = t_28 * 8;
    int offset_4 = t_30 + t_31;
    *(float*)(Out + offset_4) = r;
    float r_1 = dr_1;
    *(float*)(Out + offset_4 + 4) = r_1;
    float r_2 = dr_2;
    *(float*)(Out + offset_4 + 256) = r_2;
    float r_3 = dr_3;
    *(float*)(Out + offset_4 + 260) = r_3;
}
