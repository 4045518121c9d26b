// Every wrapper of simt.hpp once, on data that tells a wrong one: wrappers_test.cpp computes the same on the host.
#include <tessera/cuda/simt.hpp>

using namespace simt;

struct WrapperArguments {
    const uint32_t* in;
    uint32_t* out;
    int count;
};

// out[0 .. 12): indices of the last thread of the last block; then each thread's lane and warp.
SIMT_KERNEL(64, 1) wrapper_indices(WrapperArguments a) {
    const Index t = thread_index(), b = block_index(), s = block_size(), g = grid_size();
    if (t.x == s.x - 1 && b.x == g.x - 1 && b.y == g.y - 1 && b.z == g.z - 1) {
        const uint32_t all[12] = {t.x, t.y, t.z, b.x, b.y, b.z, s.x, s.y, s.z, g.x, g.y, g.z};
        for (int i = 0; i < 12; ++i) a.out[i] = all[i];
    }
    if (b.x == 0 && b.y == 0 && b.z == 0) a.out[12 + t.x] = lane() | warp() << 8;
}

// Each input as f32 bits to f16 and bf16 and back; pairs.
SIMT_KERNEL(128, 1) wrapper_floats(WrapperArguments a) {
    for (int i = static_cast<int>(thread_index().x); i < a.count; i += static_cast<int>(block_size().x)) {
        const float value = bits_as<float>(a.in[i]);
        const half_t half = from_float<half_t>(value);
        const bfloat16_t brain = from_float<bfloat16_t>(value);
        a.out[4 * i] = half.bits | static_cast<uint32_t>(brain.bits) << 16;
        a.out[4 * i + 1] = bits_as<uint32_t>(to_float(half));
        a.out[4 * i + 2] = bits_as<uint32_t>(to_float(brain));
        const uint32_t pair = pack<half_t>(value, 1.5f);
        a.out[4 * i + 3] = bits_as<uint32_t>(unpack_high<half_t>(pair)) ^ bits_as<uint32_t>(unpack_low<half_t>(pair));
    }
}

// Of three words each.
SIMT_KERNEL(128, 1) wrapper_halves(WrapperArguments a) {
    for (int i = static_cast<int>(thread_index().x); i < a.count; i += 128)
        a.out[i] = fma_halves(a.in[3 * i], a.in[3 * i + 1], a.in[3 * i + 2]);
}

// Shared memory, both kinds, and barriers of the block: out[i] = the sum over the block of in, through a reversal.
SIMT_KERNEL(128, 1) wrapper_shared(WrapperArguments a) {
    SIMT_SHARED(uint32_t, reversed, 128);
    SIMT_DYNAMIC_SHARED(bytes);
    auto* sums = reinterpret_cast<uint32_t*>(bytes);
    const unsigned t = thread_index().x;
    reversed[127 - t] = a.in[t];
    sync_block();
    sums[t] = reversed[t] + a.in[t];
    sync_block();
    a.out[t] = sums[(t + 1) % 128];
}

// Two halves of a block hand values over by named barriers: warps 2 and 3 produce, warps 0 and 1 consume.
SIMT_KERNEL(128, 1) wrapper_named_barriers(WrapperArguments a) {
    SIMT_SHARED(uint32_t, values, 64);
    const unsigned t = thread_index().x;
    if (warp() >= 2) {
        values[t - 64] = a.in[t] * 3;
        fence_block();
        named_barrier_arrive(1, 128);
    } else {
        named_barrier_sync(1, 128);
        a.out[t] = values[63 - t];
    }
}

// 11 results a lane.
SIMT_KERNEL(32, 1) wrapper_warp(WrapperArguments a) {
    const unsigned i = lane();
    const uint32_t value = a.in[i];
    a.out[11 * i] = shuffle(value, static_cast<int>((i * 7 + 3) % 32));
    a.out[11 * i + 1] = shuffle_xor(value, 5);
    a.out[11 * i + 2] = bits_as<uint32_t>(shuffle_down(bits_as<float>(value), 4));
    a.out[11 * i + 3] = vote_any(value == a.in[31]) ? 1u : 0u;
    a.out[11 * i + 4] = vote_all(value == a.in[31]) ? 1u : 0u;
    a.out[11 * i + 5] = vote_ballot(value % 3 == 0);
    sync_warp();
    a.out[11 * i + 6] = static_cast<uint32_t>(shuffle(static_cast<int>(value), 31));
    a.out[11 * i + 7] = byte_permute(value, ~value, 0x3F95);
    const float fraction = bits_as<float>(0x3F800000u | value >> 9);
    a.out[11 * i + 8] = bits_as<uint32_t>(reduce_sum(fraction));
    a.out[11 * i + 9] = bits_as<uint32_t>(reduce_maximum(-fraction));
    a.out[11 * i + 10] = multiply_high(value, ~value << 7);
}

SIMT_KERNEL(128, 1) wrapper_dp4a(WrapperArguments a) {
    if constexpr (SIMT_ARCH >= 610) {
        for (int i = static_cast<int>(thread_index().x); i < a.count; i += 128) {
            a.out[i] = static_cast<uint32_t>(dp4a(static_cast<int>(a.in[3 * i]), static_cast<int>(a.in[3 * i + 1]),
                                                  static_cast<int>(a.in[3 * i + 2])));
        }
    }
}

// out[0]: the count of all threads, out[1]: the maximum, out[2]: how often compare-and-swap gave 7 away, out[3]: a sum
// of floats, out[4]: the maximum of signed numbers, out[5]: a sum of signed ones.
SIMT_KERNEL(128, 1) wrapper_atomics(WrapperArguments a) {
    const unsigned t = thread_index().x;
    atomic_add(a.out, 1u);
    atomic_max(a.out + 1, a.in[t]);
    if (atomic_cas(a.out + 6, 7u, 8u) == 7u) atomic_add(a.out + 2, 1u);
    atomic_add(reinterpret_cast<float*>(a.out + 3), 0.5f);
    atomic_max(reinterpret_cast<int*>(a.out + 4), static_cast<int>(t) - 64);
    atomic_add(reinterpret_cast<int*>(a.out + 5), -2);
    fence_device();
}

// Loads and stores of every width: out[4 t .. 4 t + 4) = in, each word put together from another width.
SIMT_KERNEL(32, 1) wrapper_memory(WrapperArguments a) {
    const unsigned t = thread_index().x;
    const uint32_t* from = a.in + 4 * t;
    const UInt4 v4 = load_global<UInt4>(from);
    const UInt2 v2 = load_global<UInt2>(from + 2);
    const auto* halves = reinterpret_cast<const uint16_t*>(from);
    const auto* bytes = reinterpret_cast<const uint8_t*>(from);
    UInt4 out;
    out.x = v4.x;
    out.y = load_global<uint16_t>(halves + 2) | static_cast<uint32_t>(load_global<uint16_t>(halves + 3)) << 16;
    out.z = v2.x ^ v2.y ^ load_global<uint32_t>(from + 3);
    out.w = load_global<uint8_t>(bytes + 12) | static_cast<uint32_t>(load_global<uint8_t>(bytes + 13)) << 8 |
            static_cast<uint32_t>(load_global<uint8_t>(bytes + 14)) << 16 |
            static_cast<uint32_t>(load_global<uint8_t>(bytes + 15)) << 24;
    store_global(a.out + 4 * t, out);
    const Float2 pair = load_global<Float2>(from);
    const Float4 four = load_global<Float4>(from);
    if (bits_as<uint32_t>(pair.y) != bits_as<uint32_t>(four.y)) a.out[4 * t] = 0;
}

// 12 results of f32 functions of each input.
SIMT_KERNEL(128, 1) wrapper_arithmetic(WrapperArguments a) {
    for (int i = static_cast<int>(thread_index().x); i < a.count; i += 128) {
        const float x = bits_as<float>(a.in[i]);
        float results[12] = {exp2f(x), expf(x),        rsqrtf(x + 1e-3f), sqrtf(x), rcp(x + 1e-3f), fmaf(x, x, -x),
                             fminf(x, 1.f), fmaxf(x, 1.f), fabsf(-x), roundf(x), static_cast<float>(convert_to_int(x)),
                             minimum(x, 2.f) + maximum(x, 3.f)};
        for (int k = 0; k < 12; ++k) a.out[12 * i + k] = bits_as<uint32_t>(results[k]);
    }
}

// in: a, 16 rows of 16 16-bit elements (128 words), and b, 8 columns of 16 (64 words); out: c, 16 rows of 8 f32 (128),
// first of f16, then of bf16, and then of int8 (a: 16 rows of 32, b: 8 columns of 32). Behind it the fragments of a as
// the transposing load gives them, copies of parts of 16 bytes, and c of the first 16 int8 of each row and column, and of
// all with another beginning. All pass through asynchronous copies.
SIMT_KERNEL(32, 1) wrapper_tensor(WrapperArguments arguments) {
    if constexpr (SIMT_ARCH >= 800) {
        SIMT_SHARED(UInt4, shared, 64);
        const unsigned i = lane();
        for (unsigned part = i; part < 48; part += 32) copy_async16(&shared[part], arguments.in + 4 * part);
        copy_async_commit();
        if (i < 16) copy_async16(&shared[48 + i], arguments.in, 4 * static_cast<int>(i % 4 + 1) % 16);
        copy_async_commit();
        copy_async_wait<0>();
        sync_warp();
        const auto* words = reinterpret_cast<const uint32_t*>(shared);
        uint32_t a[4], transposed[4];
        // Rows of a are 8 words: the four matrices are upper left, lower left, upper right, lower right.
        const void* row = words + (i % 16) * 8 + (i / 16) * 4;
        ldmatrix_x4(a, row);
        ldmatrix_x4_transposed(transposed, row);
        const uint32_t b[2] = {words[128 + (i / 4) * 8 + i % 4], words[128 + (i / 4) * 8 + 4 + i % 4]};
        float half[4] = {1, 2, 3, 4}, brain[4] = {}, half8[4] = {1, 2, 3, 4}, brain8[4] = {};
        int whole[4] = {-1, 0, 1, 2}, first[4], again[4];
        const int begin[4] = {100, 200, -300, 400};
        mma_f16(half, a, b);
        mma_bf16(brain, a, b);
        mma_f16_k8(half8, {a[0], a[1]}, b[0]);
        mma_bf16_k8(brain8, {a[0], a[1]}, b[0]);
        mma_s8(whole, a, b);
        mma_s8_k16_to(first, {a[0], a[1]}, b[0], begin);
        mma_s8_to(again, a, b, begin);
        for (unsigned k = 0; k < 4; ++k) {
            const unsigned at = (i / 4 + 8 * (k / 2)) * 8 + i % 4 * 2 + k % 2;
            arguments.out[at] = bits_as<uint32_t>(half[k]);
            arguments.out[128 + at] = bits_as<uint32_t>(brain[k]);
            arguments.out[256 + at] = static_cast<uint32_t>(whole[k]);
            arguments.out[384 + 4 * i + k] = transposed[k];
            arguments.out[576 + at] = static_cast<uint32_t>(first[k]);
            arguments.out[704 + at] = static_cast<uint32_t>(again[k]);
            arguments.out[832 + at] = bits_as<uint32_t>(half8[k]);
            arguments.out[960 + at] = bits_as<uint32_t>(brain8[k]);
        }
        if (i < 16) {
            for (unsigned k = 0; k < 4; ++k) arguments.out[512 + 4 * i + k] = words[4 * (48 + i) + k];
        }
    }
}
