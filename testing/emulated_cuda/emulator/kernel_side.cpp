// The part of the emulator that is linked into each library of emulated kernels, compiled without instrumentation.
//
// GCC's -fsanitize=thread puts a call of a __tsan_* function before each load and store. They are defined here, hidden,
// and pass on to the emulator: ThreadSanitizer itself is not involved, and may serve the rest of the process.
#include <tessera/cuda/emulated_interface.hpp>

namespace simt::emulated {
namespace {

// Until the emulator has passed its table: static initialisation of the library is not watched.
constexpr Position kNowhere{};
constexpr Interface kNothing{
    kVersion,
    [](const void*, uint64_t, uint32_t, const void*) {},
    [](void* to, const void* from, uint64_t bytes, const void*) {
        auto* out = static_cast<volatile char*>(to);
        auto* in = static_cast<const volatile char*>(from);
        const bool down = out > in;
        for (uint64_t i = 0; i < bytes; ++i) out[down ? bytes - 1 - i : i] = in[down ? bytes - 1 - i : i];
    },
    [](void* to, int value, uint64_t bytes, const void*) {
        for (uint64_t i = 0; i < bytes; ++i) static_cast<volatile char*>(to)[i] = static_cast<char>(value);
    },
    [] { return &kNowhere; },
    [](const void*, uint64_t, uint64_t) -> void* { return nullptr; },
    []() -> void* { return nullptr; },
    [](WarpOperation, void*, const Site&) {},
    [](const Site&) {},
    [](uint32_t, uint32_t, bool, const Site&) {},
    [](void*, const void*, uint32_t, const Site&) {},
    [] {},
    [](uint32_t) {},
    [](bool) {},
    [](const void*, uint64_t, int, const void*) {},
};

}  // namespace

__attribute__((visibility("hidden"))) const Interface* table = &kNothing;

// In the file that registers the library's kernels.
extern const Module kThisModule;

}  // namespace simt::emulated

using simt::emulated::table;

extern "C" __attribute__((visibility("default"))) const simt::emulated::Module* tessera_emulated_module(
    const simt::emulated::Interface* emulator) {
    if (emulator->version == simt::emulated::kVersion) table = emulator;
    return &simt::emulated::kThisModule;
}

#pragma GCC visibility push(hidden)

extern "C" {

// A function that the compiler may call less often than the source says: a thread's position does not change.
__attribute__((const)) const simt::emulated::Position* tessera_emulated_position() {
    return table->position();
}

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

#define TSR_PC __builtin_return_address(0)
#define TSR_ACCESS(bytes)                                                                     \
    void __tsan_read##bytes(void* p) {                                                        \
        table->access(p, bytes, simt::emulated::kRead, TSR_PC);                               \
    }                                                                                         \
    void __tsan_write##bytes(void* p) {                                                       \
        table->access(p, bytes, simt::emulated::kWrite, TSR_PC);                              \
    }                                                                                         \
    void __tsan_unaligned_read##bytes(void* p) {                                              \
        table->access(p, bytes, simt::emulated::kRead | simt::emulated::kUnaligned, TSR_PC);  \
    }                                                                                         \
    void __tsan_unaligned_write##bytes(void* p) {                                             \
        table->access(p, bytes, simt::emulated::kWrite | simt::emulated::kUnaligned, TSR_PC); \
    }                                                                                         \
    void __tsan_volatile_read##bytes(void* p) {                                               \
        table->access(p, bytes, simt::emulated::kRead, TSR_PC);                               \
    }                                                                                         \
    void __tsan_volatile_write##bytes(void* p) {                                              \
        table->access(p, bytes, simt::emulated::kWrite, TSR_PC);                              \
    }
TSR_ACCESS(1)
TSR_ACCESS(2)
TSR_ACCESS(4)
TSR_ACCESS(8)
TSR_ACCESS(16)
#undef TSR_ACCESS

void __tsan_read_range(void* p, unsigned long bytes) {
    table->access(p, bytes, simt::emulated::kRead | simt::emulated::kUnaligned, TSR_PC);
}
void __tsan_write_range(void* p, unsigned long bytes) {
    table->access(p, bytes, simt::emulated::kWrite | simt::emulated::kUnaligned, TSR_PC);
}

#define TSR_ATOMICS(bits, T)                                                                                 \
    T __tsan_atomic##bits##_load(const volatile T* p, int order) {                                           \
        table->atomic(const_cast<const T*>(p), sizeof(T), order, TSR_PC);                                    \
        return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                         \
    }                                                                                                        \
    void __tsan_atomic##bits##_store(volatile T* p, T value, int order) {                                    \
        table->atomic(const_cast<const T*>(p), sizeof(T), order, TSR_PC);                                    \
        __atomic_store_n(p, value, __ATOMIC_SEQ_CST);                                                        \
    }                                                                                                        \
    T __tsan_atomic##bits##_exchange(volatile T* p, T value, int order) {                                    \
        table->atomic(const_cast<const T*>(p), sizeof(T), order, TSR_PC);                                    \
        return __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);                                              \
    }                                                                                                        \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile T* p, T* expected, T value, int order, int) { \
        table->atomic(const_cast<const T*>(p), sizeof(T), order, TSR_PC);                                    \
        return __atomic_compare_exchange_n(p, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);   \
    }                                                                                                        \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile T* p, T* expected, T value, int order, int) {   \
        table->atomic(const_cast<const T*>(p), sizeof(T), order, TSR_PC);                                    \
        return __atomic_compare_exchange_n(p, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);   \
    }
#define TSR_FETCH(bits, T, name)                                              \
    T __tsan_atomic##bits##_fetch_##name(volatile T* p, T value, int order) { \
        table->atomic(const_cast<const T*>(p), sizeof(T), order, TSR_PC);     \
        return __atomic_fetch_##name(p, value, __ATOMIC_SEQ_CST);             \
    }
#define TSR_WIDTH(bits, T)  \
    TSR_ATOMICS(bits, T)    \
    TSR_FETCH(bits, T, add) \
    TSR_FETCH(bits, T, sub) \
    TSR_FETCH(bits, T, and) \
    TSR_FETCH(bits, T, or)  \
    TSR_FETCH(bits, T, xor) \
    TSR_FETCH(bits, T, nand)
TSR_WIDTH(8, uint8_t)
TSR_WIDTH(16, uint16_t)
TSR_WIDTH(32, uint32_t)
TSR_WIDTH(64, uint64_t)
#undef TSR_WIDTH
#undef TSR_FETCH
#undef TSR_ATOMICS

void __tsan_atomic_thread_fence(int) {
    table->fence(true);
}
void __tsan_atomic_signal_fence(int) {}

// Kernels are compiled so that these stay calls; the instrumentation would not see what the compiler makes of them.
void* memcpy(void* to, const void* from, unsigned long bytes) {
    table->copy(to, from, bytes, TSR_PC);
    return to;
}
void* memmove(void* to, const void* from, unsigned long bytes) {
    table->copy(to, from, bytes, TSR_PC);
    return to;
}
void* memset(void* to, int value, unsigned long bytes) {
    table->fill(to, value, bytes, TSR_PC);
    return to;
}

}  // extern "C"

#pragma GCC visibility pop
