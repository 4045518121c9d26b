#include "executor.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

namespace tessera::cuda::ptx {
namespace {

constexpr uint8_t kPoison = 0xFE;
constexpr uint32_t kLastClock = 1u << 31;
constexpr uint64_t kQuantum = 1 << 16;  // instructions of loops after which other warps are to go on

std::string index_text(uint64_t x, uint64_t y, uint64_t z) {
    return "(" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + ")";
}

thread_local std::unique_ptr<Executor> executor_of_thread;

}  // namespace

emulator::Outcome run(const Module& module, const Program& program, const emulator::Launch& launch,
                      const emulator::Options& options) {
    if (!executor_of_thread) executor_of_thread = std::make_unique<Executor>();
    return executor_of_thread->run(module, program, launch, options);
}

Executor::Executor() : bytes_(kSharedBytes, kNone), cells_(kSharedBytes / 4) {
    void* const memory =
        mmap(nullptr, kSharedBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    shared_memory_ = static_cast<uint8_t*>(memory);
}

Executor::~Executor() {
    munmap(shared_memory_, kSharedBytes);
}

emulator::Outcome Executor::run(const Module& module, const Program& program, const emulator::Launch& launch,
                                const emulator::Options& options) {
    module_ = &module;
    program_ = &program;
    launch_ = &launch;
    options_ = options;
    outcome_ = {};
    outcome_.counters.launches = 1;
    random_ = emulator::Random(options.seed);
    recent_ = nullptr;
    touches_.clear();
    global_cells_.clear();
    if (clocks_.block_first > kLastClock) {
        cells_.assign(cells_.size(), {});
        pool_.clear();
        clocks_.begin_launch();
    }
    threads_ = launch.block[0] * launch.block[1] * launch.block[2];
    const uint64_t blocks = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
    if (threads_ == 0 || threads_ > emulator::kMaximumThreads || blocks == 0 ||
        launch.dynamic_shared > kSharedBytes - kDynamicShared) {
        outcome_.fault = Fault::kLaunchFailed;
        outcome_.report = "a launch of " + std::to_string(blocks) + " blocks of " + std::to_string(threads_) +
                          " threads and " + std::to_string(launch.dynamic_shared) + " bytes of shared memory";
        return std::move(outcome_);
    }
    parameters_.assign(program.parameter_bytes, 0);
    for (size_t i = 0; i < program.parameters.size(); ++i)
        std::memcpy(&parameters_[program.parameters[i].offset], launch.parameters[i], program.parameters[i].bytes);
    const uint32_t warps = (threads_ + kLanes - 1) / kLanes;
    registers_.resize(std::max<size_t>(registers_.size(), size_t{warps} * program.register_bytes / sizeof(Line)));
    local_.resize(std::max<size_t>(local_.size(), warps * kLanes * program.local_bytes));
    warps_.resize(std::max<size_t>(warps_.size(), warps));

    emulator::BlockOrder order(blocks, options.ordered, random_);
    for (uint64_t i = 0; i < blocks && outcome_.fault == Fault::kNone; ++i) {
        running_ = nullptr;
        try {
            run_block(order.next());
        } catch (const Trap& trap) {
            outcome_.fault = trap.fault;
            outcome_.report = report(trap, running_);
        }
    }
    if (options.collect && outcome_.fault == Fault::kNone) outcome_.touched = touches_.collect();
    touches_.clear();
    global_cells_.clear();
    return std::move(outcome_);
}

void Executor::begin_warp(uint32_t number) {
    Warp& warp = warps_[number];
    warp.executor = this;
    warp.number = number;
    uint8_t* const registers = registers_.data()->bytes + size_t{number} * program_->register_bytes;
    warp.bases = {registers, const_cast<uint8_t*>(program_->constants.data()->bytes)};
    std::memset(registers, kPoison, program_->register_bytes);
    warp.pc = 0;
    warp.limit = static_cast<uint32_t>(program_->code.size());
    warp.population = threads_ - number * kLanes >= kLanes ? kAllLanes : (1u << (threads_ - number * kLanes)) - 1;
    warp.active = warp.alive = warp.population;
    warp.state = State::kReady;
    warp.others.clear();
    warp.copies.clear();
    warp.committed.fill(0);
    const uint32_t* const block = launch_->block;
    const uint32_t* const grid = launch_->grid;
    for (const SpecialRegister& special : program_->specials) {
        uint32_t* const values = warp.at<uint32_t>(special.place);
        for (uint32_t l = 0; l < kLanes; ++l) {
            const uint32_t thread = number * kLanes + l;
            const uint32_t of[] = {thread % block[0],
                                   thread / block[0] % block[1],
                                   thread / block[0] / block[1],
                                   block[0],
                                   block[1],
                                   block[2],
                                   static_cast<uint32_t>(block_ % grid[0]),
                                   static_cast<uint32_t>(block_ / grid[0] % grid[1]),
                                   static_cast<uint32_t>(block_ / grid[0] / grid[1]),
                                   grid[0],
                                   grid[1],
                                   grid[2],
                                   l,
                                   number,
                                   (threads_ + kLanes - 1) / kLanes,
                                   1u << l,
                                   (1u << l) - 1,
                                   (2u << l) - 1,
                                   ~((2u << l) - 1),
                                   ~((1u << l) - 1),
                                   launch_->dynamic_shared};
            values[l] = of[static_cast<size_t>(special.which)];
        }
    }
}

void Executor::run_block(uint64_t block) {
    outcome_.counters.blocks += 1;
    block_ = block;
    const auto begin_array = [&](uint64_t offset, uint64_t bytes) {
        std::memset(&bytes_[offset], kUnwritten, bytes);
        std::memset(shared_memory_ + offset, kPoison, bytes);
    };
    for (const Extent& array : program_->shared) begin_array(array.offset, array.bytes);
    begin_array(kDynamicShared, launch_->dynamic_shared);
    barriers_.fill({});
    const uint32_t warps = (threads_ + kLanes - 1) / kLanes;
    clocks_.begin_block(warps);
    touches_.begin_block();
    if (program_->local_bytes) std::memset(local_.data(), kPoison, size_t{warps} * kLanes * program_->local_bytes);
    ready_ = 0;
    steps_ = steps_before_ = 0;
    for (uint32_t w = 0; w < warps; ++w) {
        begin_warp(w);
        ready_ |= 1u << w;
    }
    uint32_t ended = 0;
    try {
        while (ended < warps) {
            if (ready_ == 0) throw Trap{Fault::kLaunchFailed, "deadlock: " + who_waits()};
            const uint32_t drawn = options_.ordered ? 0 : random_();
            Warp& warp = warps_[emulator::nth_bit(ready_, drawn % static_cast<uint32_t>(std::popcount(ready_)))];
            running_ = &warp;
            outcome_.counters.switches += 1;
            run_warp(warp);
            if (warp.state == State::kEnded) {
                ++ended;
                ready_ &= ~(1u << warp.number);
                for (uint32_t b = 0; b < barriers_.size(); ++b) check_barrier(b);
            }
            running_ = nullptr;
        }
    } catch (...) {
        for (const Extent& array : program_->shared) std::memset(&bytes_[array.offset], kNone, array.bytes);
        std::memset(&bytes_[kDynamicShared], kNone, launch_->dynamic_shared);
        throw;
    }
    for (const Extent& array : program_->shared) std::memset(&bytes_[array.offset], kNone, array.bytes);
    std::memset(&bytes_[kDynamicShared], kNone, launch_->dynamic_shared);
}

void Executor::run_warp(Warp& warp) {
    const Instruction* const code = program_->code.data();
    const auto end = static_cast<uint32_t>(program_->code.size());
    uint64_t executed = 0;
    warp.yields = false;
    for (;;) {
        while (warp.pc < warp.limit) {
            const Instruction& instruction = code[warp.pc++];
            uint32_t lanes = warp.active;
            ++executed;
            if (instruction.guard != kNowhere) {
                const uint32_t bits = warp.bits(instruction.guard);
                lanes &= instruction.negated ? ~bits : bits;
                if (lanes == 0) continue;
            }
            (lanes == kAllLanes ? instruction.whole : instruction.some)(warp, instruction, lanes);
        }
        if (warp.state != State::kReady || warp.yields) break;
        if (warp.alive == 0) {
            warp.state = State::kEnded;
            break;
        }
        std::vector<Group> stuck;
        if (!regroup(warp, end, stuck)) {
            std::string text = "lanes of a warp have not converged:";
            for (const Group& group : stuck)
                text += std::string(&group == stuck.data() ? " " : "; ") + std::to_string(std::popcount(group.lanes)) +
                        " lanes, lane " + std::to_string(std::countr_zero(group.lanes)) + " the first, wait at line " +
                        std::to_string(code[group.pc].line) + ", " + std::string(module_->line(code[group.pc].line));
            throw Trap{Fault::kLaunchFailed, text};
        }
    }
    outcome_.counters.instructions += executed;
}

void Executor::went_back(Warp& warp, uint32_t distance) {
    steps_ += distance;
    if (steps_ > options_.patience)
        throw Trap{Fault::kTimeout, "the block has executed " + std::to_string(steps_) +
                                        " instructions in loops without coming to its end: it waits for what no other "
                                        "thread or block does; " +
                                        who_waits()};
    if (steps_ - steps_before_ < kQuantum) return;
    steps_before_ = steps_;
    warp.yields = true;
    warp.limit = 0;
    part(warp, warp.active, warp.pc, false);
}

void Executor::end_lanes(Warp& warp, uint32_t lanes) {
    warp.alive &= ~lanes;
    warp.active &= ~lanes;
    if (warp.active == 0) warp.limit = 0;
    for (Group& group : warp.others) group.waits = false;  // they look again at who is to come
}

void Executor::arrive(Warp& warp, const Instruction& instruction, uint32_t lanes, uint32_t number, uint32_t threads,
                      bool waits) {
    const auto fail = [&](const std::string& text) { throw Trap{Fault::kLaunchFailed, text}; };
    if (number >= barriers_.size() || threads % kLanes != 0)
        fail("barriers are 0 to 15 and of whole warps, not " + std::to_string(number) + " of " +
             std::to_string(threads) + " threads");
    Barrier& barrier = barriers_[number];
    if (barrier.came != 0 && barrier.expected != threads)
        fail("expects " + (threads ? std::to_string(threads) : "all") + " threads at barrier " +
             std::to_string(number) + ", others there expect " +
             (barrier.expected ? std::to_string(barrier.expected) : "all"));
    if (barrier.came >> warp.number & 1)
        fail("the warp comes to barrier " + std::to_string(number) + " again before the others have come once: " +
             std::to_string(barrier.arrived) + " of " + std::to_string(barrier.expected) + " threads");
    barrier.came |= 1u << warp.number;
    clocks_.advance(warp.number);
    for (uint32_t v = 0; v < clocks_.warps; ++v)
        barrier.joined[v] = std::max(barrier.joined[v], clocks_.known[warp.number][v]);
    barrier.expected = threads;
    barrier.arrived += kLanes;
    if (threads && barrier.arrived > threads)
        fail("more threads arrive at barrier " + std::to_string(number) + " than the " + std::to_string(threads) +
             " that it expects");
    if (waits) {
        barrier.waiting |= 1u << warp.number;
        warp.state = State::kAtBarrier;
        warp.barrier = number;
        warp.at_barrier = &instruction;
        warp.barrier_lanes = lanes;
        warp.limit = 0;
        ready_ &= ~(1u << warp.number);
    }
    check_barrier(number);
}

void Executor::check_barrier(uint32_t number) {
    Barrier& barrier = barriers_[number];
    if (barrier.came == 0) return;
    if (barrier.expected) {
        if (barrier.arrived == barrier.expected) release(barrier);
        return;
    }
    const uint32_t warps = (threads_ + kLanes - 1) / kLanes;
    for (uint32_t w = 0; w < warps; ++w) {
        if (warps_[w].state != State::kEnded && !(barrier.came >> w & 1)) return;
    }
    release(barrier);
}

void Executor::release(Barrier& barrier) {
    for (uint32_t w = 0; w < warps_.size(); ++w) {
        if (!(barrier.waiting >> w & 1)) continue;
        for (uint32_t v = 0; v < clocks_.warps; ++v)
            clocks_.known[w][v] = std::max(clocks_.known[w][v], barrier.joined[v]);
        warps_[w].state = State::kReady;
        warps_[w].limit = 0;  // asks who goes on
        ready_ |= 1u << w;
    }
    barrier = {};
}

std::string Executor::who_waits() const {
    std::string text;
    for (uint32_t w = 0; w < (threads_ + kLanes - 1) / kLanes; ++w) {
        const Warp& warp = warps_[w];
        if (warp.state == State::kEnded) continue;
        text += (text.empty() ? "warp " : "; warp ") + std::to_string(w);
        if (warp.state == State::kReady) {
            text += " runs";
            continue;
        }
        const Barrier& barrier = barriers_[warp.barrier];
        text += " waits at line " + std::to_string(warp.at_barrier->line) + ", barrier " +
                std::to_string(warp.barrier) + ": " + std::to_string(barrier.arrived) + " of " +
                (barrier.expected ? std::to_string(barrier.expected) : "all") + " threads";
    }
    return text;
}

std::string Executor::report(const Trap& trap, const Warp* warp) const {
    const uint32_t* const grid = launch_->grid;
    std::string text = "kernel " + program_->name + ", block " +
                       index_text(block_ % grid[0], block_ / grid[0] % grid[1], block_ / grid[0] / grid[1]);
    if (warp) {
        const uint32_t thread = warp->number * kLanes + trap.lane;
        const uint32_t* const block = launch_->block;
        if (trap.lane < kLanes)
            text +=
                ", thread " + index_text(thread % block[0], thread / block[0] % block[1], thread / block[0] / block[1]);
        else
            text += ", warp " + std::to_string(warp->number);
        if (warp->pc > 0 && warp->pc <= program_->code.size()) {
            const uint32_t line = program_->code[warp->pc - 1].line;
            text += ", line " + std::to_string(line) + " of the PTX, " + std::string(module_->line(line));
        }
    }
    return text + ": " + trap.text;
}

}  // namespace tessera::cuda::ptx
