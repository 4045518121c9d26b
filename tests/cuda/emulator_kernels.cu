// Kernels with planted bugs: each does the right thing if `bug` is 0, and something a GPU need not forgive otherwise.
#include <tessera/cuda/simt.hpp>

using namespace simt;

// Sums of neighbours through shared memory. 1: no barrier before reading; 2: none before the tile is written again.
SIMT_KERNEL(128, 1) neighbours(const int* in, int* out, int rounds, int bug) {
    SIMT_SHARED(int, tile, 128);
    const int t = static_cast<int>(thread_index().x);
    int sum = 0;
    for (int r = 0; r < rounds; ++r) {
        tile[t] = in[r * 128 + t];
        if (bug != 1) sync_block();
        sum += tile[(t + 1) % 128];
        if (bug != 2) sync_block();
    }
    out[block_index().x * 128 + t] = sum;
}

// The same within a warp. 1: lanes are not synchronised.
SIMT_KERNEL(32, 1) lanes(const int* in, int* out, int bug) {
    SIMT_SHARED(int, tile, 32);
    const int t = static_cast<int>(lane());
    tile[t] = in[t];
    if (bug != 1) sync_warp();
    out[t] = tile[31 - t];
}

// Copies n floats. 1: writes one too many; 2: reads one too many.
SIMT_KERNEL(64, 1) copy_floats(const float* in, float* out, int n, int bug) {
    const int i = static_cast<int>(block_index().x * 64 + thread_index().x);
    if (i < n) out[bug == 1 ? i + 1 : i] = in[bug == 2 ? i + 1 : i];
}

// 1: past the end of a static array; 2: before the dynamic one; 3: past its end.
SIMT_KERNEL(32, 1) shared_bounds(int* out, int n, int bug) {
    SIMT_SHARED(int, fixed, 32);
    SIMT_DYNAMIC_SHARED(bytes);
    int* const given = reinterpret_cast<int*>(bytes);
    const int t = static_cast<int>(lane());
    fixed[bug == 1 ? t + 1 : t] = t;
    if (t < n) given[bug == 2 ? t - 1 : bug == 3 ? t + 1 : t] = t;
    sync_block();
    out[t] = fixed[t] + (t < n ? given[t] : 0);
}

// Loads and stores of 16 bytes. 1: a load from an address that is no multiple of 16; 2: the same by a pointer to a
// vector; 3 and 4: the same of a store.
SIMT_KERNEL(32, 1) vectors(const unsigned char* in, unsigned char* out, int bug) {
    const int t = static_cast<int>(lane());
    const Float4 value = bug == 2 ? *reinterpret_cast<const Float4*>(in + 16 * t + 8)
                                  : load_global<Float4>(in + 16 * t + (bug == 1 ? 8 : 0));
    unsigned char* const to = out + 16 * t + (bug >= 3 ? 8 : 0);
    if (bug == 3)
        store_global(reinterpret_cast<Float4*>(to), value);
    else
        *reinterpret_cast<Float4*>(to) = value;
}

// Every block writes its own number. 1: all write the first one.
SIMT_KERNEL(32, 1) own_place(int* out, int bug) {
    if (lane() == 0) out[bug == 1 ? 0 : block_index().x] = static_cast<int>(block_index().x);
}

// Every block reads what the first one writes. 1: it does so in the same launch.
SIMT_KERNEL(32, 1) read_of_other_block(int* values, int* out, int bug) {
    const unsigned b = block_index().x;
    if (lane() != 0) return;
    if (b == 0) values[0] = 7;
    if (b != 0) out[b] = bug == 1 ? values[0] : 0;
}

// The last block to come sums what all have written. 1: no fence before the counter; 2: none after it; 3: no atomic.
SIMT_KERNEL(32, 1) last_block(const int* in, int* partial, unsigned* counter, int* out, int bug) {
    const unsigned b = block_index().x, blocks = grid_size().x;
    if (lane() != 0) return;
    partial[b] = in[b];
    if (bug != 1) fence_device();
    unsigned before;
    if (bug == 3) {
        before = *counter;
        *counter = before + 1;
    } else {
        before = atomic_add(counter, 1u);
    }
    if (before + 1 != blocks) return;
    if (bug != 2) fence_device();
    int sum = 0;
    for (unsigned i = 0; i < blocks; ++i) sum += partial[i];
    *out = sum;
}

// 1: a histogram in shared memory without atomics.
SIMT_KERNEL(64, 1) histogram(const int* in, int* out, int bug) {
    SIMT_SHARED(int, bins, 4);
    const int t = static_cast<int>(thread_index().x);
    if (t < 4) bins[t] = 0;
    sync_block();
    if (bug == 1)
        bins[in[t] & 3] += 1;
    else
        atomic_add(&bins[in[t] & 3], 1);
    sync_block();
    if (t < 4) out[t] = bins[t];
}

// Counters of the standard library's kind. 1: one thread reads without an atomic.
SIMT_KERNEL(64, 1) standard_atomics(unsigned* counters, int bug) {
    const unsigned t = thread_index().x;
    __atomic_fetch_add(&counters[0], t, __ATOMIC_RELAXED);
    unsigned expected = __atomic_load_n(&counters[1], __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&counters[1], &expected, expected > t ? expected : t, true, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
    __atomic_fetch_or(reinterpret_cast<unsigned long long*>(counters + 2), 1ull << t, __ATOMIC_SEQ_CST);
    if (bug == 1 && t == 40) counters[4] = counters[0];
}

// Reads n values. 1: one that nobody has written.
SIMT_KERNEL(32, 1) sum_written(const float* in, int n, float* out, int bug) {
    if (lane() != 0) return;
    float sum = 0;
    for (int i = 0; i < n + (bug == 1); ++i) sum += in[i];
    *out = sum;
}

// Doubles what it has loaded. 1: in place, though loaded through the read-only cache.
SIMT_KERNEL(32, 1) read_only(float* in, float* out, int bug) {
    const unsigned t = lane();
    const float value = load_global<float>(&in[(t + 1) % 32]);
    sync_block();
    (bug == 1 ? in : out)[t] = 2 * value;
}

// Two stages of asynchronous copies. 1: waits for one group too few; 2: no barrier after the wait; 3: no barrier before
// a stage is written again; 4: a target that is not aligned.
SIMT_KERNEL(64, 1) stages(const float* in, float* out, int steps, int bug) {
#if SIMT_ARCH >= 800
    SIMT_SHARED(Float4, tile, 2 * 64 + 1);
    const unsigned t = thread_index().x;
    auto load = [&](int step) {
        if (step < steps)
            copy_async16(reinterpret_cast<char*>(&tile[step % 2 * 64 + t]) + (bug == 4 ? 8 : 0),
                         in + (step * 64 + t) * 4);
        copy_async_commit();
    };
    float sum = 0;
    load(0);
    for (int s = 0; s < steps; ++s) {
        load(s + 1);
        if (bug == 1)
            copy_async_wait<2>();
        else
            copy_async_wait<1>();
        if (bug != 2) sync_block();
        const Float4& other = tile[s % 2 * 64 + (t + 1) % 64];
        sum += other.x + other.y + other.z + other.w;
        if (bug != 3) sync_block();
    }
    out[t] = sum;
#endif
}

// 1: half a warp does not come to the barrier; 2: some lanes end before their warp synchronises; 3: a warp waits for a
// barrier that nobody else comes to; 4: two barriers of the block meet.
SIMT_KERNEL(64, 1) barriers(int* out, int bug) {
    const unsigned t = thread_index().x;
    if (bug == 1) {
        if (t % 32 < 16) sync_block();
    } else if (bug == 2) {
        if (t < 32)
            sync_block();
        else
            sync_warp();
        if (t % 2) sync_warp();
    } else if (bug == 3) {
        if (t < 32)
            named_barrier_sync(1, 64);
        else
            sync_block();
    } else if (bug == 4) {
        if (t < 32) {
            sync_block();
        } else {
            sync_block();
        }
    } else {
        sync_block();
    }
    out[t] = static_cast<int>(t);
}

// A warp hands tiles to another by named barriers. 1: the reader says too early that it has read; 2: the writer does
// not say that it has written; 3: the writer does not wait until the tile was read.
SIMT_KERNEL(64, 1) hand_over(const int* in, int* out, int tiles, int bug) {
    SIMT_SHARED(int, tile, 32);
    const unsigned t = lane();
    int sum = 0;
    for (int i = 0; i < tiles; ++i) {
        if (warp() == 0) {
            if (i > 0 && bug != 3) named_barrier_sync(2, 64);
            tile[t] = in[i * 32 + t];
            if (bug != 2) named_barrier_arrive(1, 64);
        } else {
            if (bug != 2) named_barrier_sync(1, 64);
            if (i + 1 < tiles && bug == 1) named_barrier_arrive(2, 64);
            sum += tile[31 - t];
            if (i + 1 < tiles && bug != 1) named_barrier_arrive(2, 64);
        }
    }
    if (warp() == 1) out[t] = sum;
}

// 1: half of the lanes take part; 2: they take part elsewhere; 3: a lane has ended.
SIMT_KERNEL(32, 1) converged(int* out, int bug) {
    int value = static_cast<int>(lane());
    if (bug == 1 && value >= 16) return;
    if (bug == 3 && value == 5) return;
    if (bug == 2 && value >= 16) {
        value = shuffle_xor(value, 1);
    } else {
        value = shuffle_xor(value, 1);
    }
    out[lane()] = value;
}

struct Block {
    unsigned short scale;
    signed char codes[32];
};

// Blocks of 34 bytes are copied as a whole. 1: before the barrier; 2: one too many; 3: set as a whole, by all threads.
SIMT_KERNEL(64, 1) whole_blocks(const Block* in, int n, int* out, int bug) {
    SIMT_SHARED(Block, tile, 64);
    const int t = static_cast<int>(thread_index().x);
    if (t < n + (bug == 2)) memcpy(&tile[t], &in[t], sizeof(Block));
    if (bug != 1) sync_block();
    if (bug == 3) memset(&tile[0], 1, sizeof(Block));
    Block other;
    memcpy(&other, &tile[(t + 1) % n], sizeof other);
    int sum = 0;
    for (int i = 0; i < 32; ++i) sum += other.codes[i];
    out[t] = sum;
}

// The same by assignment. 1: before the barrier; 2: one too many; 3: all threads assign to one.
SIMT_KERNEL(64, 1) assigned_blocks(const Block* in, int n, int* out, int bug) {
    SIMT_SHARED(Block, tile, 64);
    const int t = static_cast<int>(thread_index().x);
    if (t < n + (bug == 2)) tile[t] = in[t];
    if (bug != 1) sync_block();
    if (bug == 3) tile[0] = in[t];
    const Block other = tile[(t + 1) % n];
    int sum = 0;
    for (int i = 0; i < 32; ++i) sum += other.codes[i];
    out[t] = sum;
}

// Who runs when: each thread writes its number behind those of the threads before it.
SIMT_KERNEL(128, 1) order(unsigned* count, int* out) {
    out[atomic_add(count, 1u)] = static_cast<int>(thread_index().x);
}

// 1: more local memory than a thread has.
SIMT_KERNEL(32, 1) local_memory(int* out, int bug) {
    volatile int values[bug == 1 ? 60000 : 100];
    for (int i = 0; i < 100; ++i) values[i] = i;
    if (bug == 1) {
        for (int i = 0; i < 60000; ++i) values[i] = i;
    }
    sync_warp();
    out[lane()] = values[lane()];
}

// Transposes 32 x 32. 1: columns lie in one bank; 2: rows of memory are read by columns.
SIMT_KERNEL(32, 1) transposed(const float* in, float* out, int bug) {
    SIMT_SHARED(float, tile, 32 * 33);
    const int t = static_cast<int>(lane()), stride = bug == 1 ? 32 : 33;
    for (int r = 0; r < 32; ++r) tile[r * stride + t] = bug == 2 ? in[t * 32 + r] : in[r * 32 + t];
    sync_warp();
    for (int r = 0; r < 32; ++r) out[r * 32 + t] = tile[t * stride + r];
}

// c = a b' of f16, 64 x 64 a block, by matrix products. 1: the tile is not swizzled.
SIMT_KERNEL(128, 2) product_f16(const half_t* a, const half_t* b, float* c, int k, int n, int bug) {
#if SIMT_ARCH >= 800
    SIMT_DYNAMIC_SHARED(memory);
    const int t = static_cast<int>(thread_index().x), l = static_cast<int>(lane()), w = static_cast<int>(warp());
    const int row0 = static_cast<int>(block_index().y) * 64, column0 = static_cast<int>(block_index().x) * 64;
    const auto at = [&](int row, int vector) {
        return row * 64 + ((bug == 1 ? vector : vector ^ (row >> 1 & 3)) * 16);
    };
    float sums[2][4][4] = {};
    for (int k0 = 0; k0 < k; k0 += 32) {
        for (int i = t; i < 256; i += 128) {
            const int row = i / 4, vector = i % 4;
            copy_async16(memory + at(row, vector), a + (row0 + row) * k + k0 + vector * 8);
            copy_async16(memory + 4096 + at(row, vector), b + (column0 + row) * k + k0 + vector * 8);
        }
        copy_async_commit();
        copy_async_wait<0>();
        sync_block();
        for (int step = 0; step < 2; ++step) {
            uint32_t left[2][4], right[2][4];
            for (int i = 0; i < 2; ++i) {
                ldmatrix_x4(left[i], memory + at(w % 2 * 32 + i * 16 + l % 16, step * 2 + l / 16));
                ldmatrix_x4(right[i],
                            memory + 4096 + at(w / 2 * 32 + i * 16 + l % 8 + l / 16 * 8, step * 2 + l / 8 % 2));
            }
            for (int i = 0; i < 2; ++i) {
                for (int j = 0; j < 4; ++j) {
                    const uint32_t pair[2] = {right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]};
                    mma_f16(sums[i][j], left[i], pair);
                }
            }
        }
        sync_block();
    }
    for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 4; ++j) {
            for (int e = 0; e < 4; ++e) {
                const int row = row0 + w % 2 * 32 + i * 16 + e / 2 * 8 + l / 4;
                c[row * n + column0 + w / 2 * 32 + j * 8 + l % 4 * 2 + e % 2] = sums[i][j][e];
            }
        }
    }
#endif
}

// What each wrapper of a warp says, for one warp: 32 values of each.
SIMT_KERNEL(32, 1) warp_values(const int* in, int* out) {
    const int t = static_cast<int>(lane()), v = in[t];
    int* to = out + t;
    *to = shuffle(v, 5);
    *(to += 32) = shuffle_xor(v, 3);
    *(to += 32) = shuffle_down(v, 7);
    *(to += 32) = static_cast<int>(vote_ballot(v % 3 == 0));
    *(to += 32) = vote_any(v == 1000) + 2 * vote_all(v < 1000);
    *(to += 32) = dp4a(v * 0x01030507, 0x7F80FF02, 9);
    *(to += 32) = static_cast<int>(byte_permute(0x33221100, 0x77665544, 0x6310));
    *(to += 32) = convert_to_int(static_cast<float>(v) + 0.5f);
    *(to += 32) = from_float<half_t>(1.0f / static_cast<float>(v + 3)).bits;
    *(to += 32) = from_float<bfloat16_t>(1.0f / static_cast<float>(v + 3)).bits;
    *(to += 32) = static_cast<int>(arch());
}

// Blocks in any order: with bug 1 each waits for the next one, the last for the first.
SIMT_KERNEL(32, 1) relay(unsigned* flags, int bug) {
    const unsigned b = block_index().x;
    if (lane() == 0) {
        if (bug == 1) {
            while (atomic_cas(flags + (b + 1) % grid_size().x, 0, 0) == 0) {
            }
        }
        atomic_add(flags + b, 1);
    }
}

// Rounds until all lanes have done three; with bug 1 one of them never does, and none accesses memory meanwhile.
SIMT_KERNEL(32, 1) rounds(int* out, int bug) {
    int round = 0;
    while (!vote_all(round >= 3)) round += bug == 1 && lane() == 7 ? 0 : 1;
    out[lane()] = round;
}

// A variable that is not always given a value, where the compiler cannot tell: it holds a pattern.
__attribute__((noinline)) void set(int& value, int bug) {
    if (bug == 0) value = 1;
}
SIMT_KERNEL(32, 1) variables(int* out, int bug) {
    int value;
    set(value, bug);
    out[lane()] = value;
}
