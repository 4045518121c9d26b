// Runs kernels of PTX on the CPU, a warp at a time, with every load and store checked.
#pragma once

#include "../emulator/emulator.hpp"
#include "../emulator/order.hpp"
#include "../emulator/shadow.hpp"
#include "module.hpp"
#include "touches.hpp"
#include "warp.hpp"
#include "word_cells.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tessera::cuda::ptx {

using emulator::Fault;

// Ends the launch.
struct Trap {
    Fault fault;
    std::string text;
    uint32_t lane = kLanes;  // kLanes: none in particular
};

// Strong: volatile, or with an order (PTX ISA manual, "Memory Consistency Model").
enum class Access : uint8_t { kRead, kReadOnly, kStrongRead, kWrite, kStrongWrite, kAtomic };

// Generic addresses of shared and local memory: where no memory of the host lies.
inline constexpr uint64_t kSharedWindow = 1ull << 60, kLocalWindow = 2ull << 60, kWindowBytes = 1ull << 32;

class Executor {
  public:
    Executor();
    ~Executor();
    Executor(const Executor&) = delete;
    Executor& operator=(const Executor&) = delete;

    // Of `launch`, kernel, arch and library_begin and _end are not used.
    emulator::Outcome run(const Module& module, const Program& program, const emulator::Launch& launch,
                          const emulator::Options& options);

    // ---- what instructions call; faults are thrown as Trap ----
    const Program& program() const noexcept { return *program_; }
    const emulator::Options& options() const noexcept { return options_; }
    uint64_t& matrix_products() noexcept { return outcome_.counters.matrix_products; }

    // Reads, or writes, `Bytes` bytes at the address of each of the lanes; `values`: those of lane l from Bytes * l on.
    template <uint32_t Bytes>
    void load(Warp& warp, Space space, const uint64_t* addresses, uint32_t lanes, Access access, void* values);
    template <uint32_t Bytes>
    void store(Warp& warp, Space space, const uint64_t* addresses, uint32_t lanes, Access access, const void* values);
    // Memory that one lane accesses, checked and noted.
    uint8_t* place(Warp& warp, Space space, uint64_t address, uint32_t bytes, Access access, uint32_t lane);

    void copy_later(Warp& warp, uint32_t lane, uint64_t to, uint64_t from, uint32_t bytes, uint32_t size);
    void land(Warp& warp, const PendingCopy& copy);

    void arrive(Warp& warp, const Instruction& instruction, uint32_t lanes, uint32_t barrier, uint32_t threads,
                bool waits);
    void end_lanes(Warp& warp, uint32_t lanes);
    // What lanes of the warp have done is ordered before what they do from here on.
    void order_lanes(const Warp& warp) noexcept { clocks_.advance(warp.number); }
    // A jump back by so many instructions.
    void went_back(Warp& warp, uint32_t distance);

  private:
    // What a byte of shared memory is.
    enum Byte : uint8_t { kNone, kUnwritten, kWritten, kInFlight };
    struct Barrier {
        uint32_t arrived = 0, expected = 0;  // threads; expected 0: all that have not ended
        uint32_t waiting = 0;                // bit w: warp w
        uint32_t came = 0;
        std::array<uint32_t, emulator::kMaximumWarps> joined{};  // what the warps that came know
    };

    void run_block(uint64_t block);
    void begin_warp(uint32_t number);
    void run_warp(Warp& warp);
    void check_barrier(uint32_t number);
    void release(Barrier& barrier);
    std::string who_waits() const;

    uint8_t* global(const Warp& warp, uint64_t address, uint32_t bytes, Access access, uint32_t lane);
    uint8_t* shared(const Warp& warp, uint64_t address, uint32_t bytes, Access access, uint32_t lane, bool landing);
    uint8_t* local(const Warp& warp, uint64_t address, uint32_t bytes, Access access, uint32_t lane);
    uint8_t* parameter(uint64_t address, uint32_t bytes, Access access, uint32_t lane);
    void check_blocks(const emulator::Range& range, uint64_t address, uint64_t bytes, Access access, uint32_t lane);
    const emulator::Range* find_range(uint64_t address, uint64_t bytes, Access access, uint32_t lane);
    // Of lanes from `lane` on that access `each` bytes one behind the other.
    void note_global(const Warp& warp, const emulator::Range* range, uint64_t address, uint64_t bytes, uint32_t each,
                     Access access, uint32_t lane);
    void check_race(const Warp& warp, Space space, uint64_t address, uint32_t bytes, Access access, uint32_t lane);
    void check_race(emulator::Cell& cell, Space space, uint64_t address, uint32_t bytes, const emulator::Accessor& me,
                    uint32_t lane);
    template <uint32_t Bytes>
    bool load_run(const Warp& warp, const uint64_t* addresses, Access access, void* values);
    template <uint32_t Bytes>
    bool store_run(const Warp& warp, const uint64_t* addresses, Access access, const void* values);
    std::string place_text(uint64_t address, Space space) const;

    std::string report(const Trap& trap, const Warp* warp) const;

    // ---- memory that lasts ----
    uint8_t* shared_memory_ = nullptr;
    std::vector<uint8_t> bytes_;  // Byte of each of shared memory
    // Who accessed which four bytes of it; clocks go on from launch to launch, so that nothing need be cleared.
    std::vector<emulator::Cell> cells_;
    emulator::Clocks clocks_;
    emulator::ShadowPool pool_;
    WordCells global_cells_;  // the same of global memory, for as long as a launch
    std::vector<Line> registers_;
    std::vector<uint8_t> local_;

    // ---- the launch ----
    const Module* module_ = nullptr;
    const Program* program_ = nullptr;
    const emulator::Launch* launch_ = nullptr;
    emulator::Options options_;
    emulator::Outcome outcome_;
    emulator::Random random_;
    std::vector<uint8_t> parameters_;
    Touches touches_;
    const emulator::Range* recent_ = nullptr;

    // ---- the block ----
    uint64_t block_ = 0;
    uint32_t threads_ = 0;
    uint64_t steps_ = 0;  // instructions that warps have executed, of the loops among them
    uint64_t steps_before_ = 0;
    std::vector<Warp> warps_;
    uint32_t ready_ = 0;  // bit w: warp w can go on
    std::array<Barrier, 16> barriers_{};
    Warp* running_ = nullptr;
};

// Blocks until the launch has ended; any thread, one launch a thread at a time.
emulator::Outcome run(const Module& module, const Program& program, const emulator::Launch& launch,
                      const emulator::Options& options);

}  // namespace tessera::cuda::ptx
