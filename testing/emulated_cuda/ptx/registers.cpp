// Places of registers. A kernel has thousands of them, since compilers write each but once or twice; those that are not
// alive at the same time share a place, so that a warp's register file fits the cache of a CPU. Which are alive is a
// matter of each lane alone: instructions change the values of lanes that execute them, and no others.
#include "translate.hpp"

#include <algorithm>
#include <cstring>
#include <queue>

namespace tessera::cuda::ptx {
namespace {

using Words = std::vector<uint64_t>;

struct BasicBlock {
    uint32_t begin, end;  // instructions
    Words reads_first, writes, in, out;
};

struct Interval {
    uint32_t begin = UINT32_MAX, end = 0;  // reads of instruction i at 2 i, its writes at 2 i + 1
    void extend(uint32_t at) {
        begin = std::min(begin, at);
        end = std::max(end, at);
    }
};

enum Class : uint32_t { kWide, kWord, kHalf, kBit, kClasses };
constexpr uint32_t kBytes[kClasses] = {8 * kLanes, 4 * kLanes, 2 * kLanes, 4};

Class class_of(Type type) {
    return type.bits == 64 ? kWide : type.bits == 32 ? kWord : type.bits == 16 ? kHalf : kBit;
}

class Placing {
  public:
    explicit Placing(Translation& translation) : t_(translation), code_(translation.program.code) {}

    void place() {
        find_blocks();
        find_live();
        find_intervals();
        assign();
        place_constants();
        rewrite();
    }

  private:
    std::span<Place> places(Instruction& i) {
        const size_t count = size_t{i.writes} + i.reads;
        return i.has_list ? std::span(t_.program.lists).subspan(i.more, count) : std::span(i.places).first(count);
    }
    // act(number of register, written) for each register of the instruction, what it reads first.
    template <class Act>
    void for_registers(Instruction& i, const Act& act) {
        const std::span<Place> all = places(i);
        if (i.guard != kNowhere) act(i.guard, false);
        for (size_t k = i.writes; k < all.size(); ++k) {
            if (!(all[k] & kConstant)) act(all[k], false);
        }
        for (size_t k = 0; k < i.writes; ++k) {
            if (all[k] == kNowhere) continue;
            if (i.guard != kNowhere) act(all[k], false);  // what it was may stay
            act(all[k], true);
        }
    }
    void find_blocks();
    void find_live();
    void find_intervals();
    void assign();
    void place_constants();
    void rewrite();
    Place final_place(Place place) const {
        if (place == kNowhere) return place;
        return place & kConstant ? kConstant | constant_places_[place & ~kConstant] : places_[place];
    }

    Translation& t_;
    std::vector<Instruction>& code_;
    std::vector<BasicBlock> blocks_;
    std::vector<uint32_t> block_at_;  // number of the block that begins with an instruction
    std::vector<Interval> intervals_;
    std::vector<Place> places_, constant_places_;
};

void Placing::find_blocks() {
    std::vector<bool> leads(code_.size() + 1, false);
    leads[0] = true;
    for (size_t i = 0; i < code_.size(); ++i) {
        const Flow flow = t_.flow[i];
        if (flow == Flow::kBranch || flow == Flow::kJump) leads[code_[i].more] = true;
        if (flow != Flow::kNext) leads[i + 1] = true;
    }
    block_at_.assign(code_.size(), 0);
    const size_t words = (t_.registers.size() + 63) / 64;
    for (uint32_t i = 0; i < code_.size(); ++i) {
        if (leads[i]) {
            block_at_[i] = static_cast<uint32_t>(blocks_.size());
            blocks_.push_back({i, i, Words(words), Words(words), Words(words), Words(words)});
        }
        BasicBlock& block = blocks_.back();
        block.end = i + 1;
        for_registers(code_[i], [&](uint32_t number, bool written) {
            const uint64_t bit = 1ull << number % 64;
            if (written)
                block.writes[number / 64] |= bit;
            else if (!(block.writes[number / 64] & bit))
                block.reads_first[number / 64] |= bit;
        });
    }
}

void Placing::find_live() {
    for (BasicBlock& block : blocks_) block.in = block.reads_first;
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t b = blocks_.size(); b-- > 0;) {
            BasicBlock& block = blocks_[b];
            const Flow flow = t_.flow[block.end - 1];
            bool grown = false;
            const auto join = [&](const BasicBlock& next) {
                for (size_t w = 0; w < block.out.size(); ++w) {
                    const uint64_t more = next.in[w] & ~block.out[w];
                    if (!more) continue;
                    block.out[w] |= more;
                    block.in[w] |= more & ~block.writes[w];
                    grown = true;
                }
            };
            if (flow != Flow::kJump && flow != Flow::kEnd && b + 1 < blocks_.size()) join(blocks_[b + 1]);
            if (flow == Flow::kBranch || flow == Flow::kJump) join(blocks_[block_at_[code_[block.end - 1].more]]);
            changed |= grown;
        }
    }
}

void Placing::find_intervals() {
    intervals_.resize(t_.registers.size());
    const auto extend = [&](const Words& words, uint32_t at) {
        for (size_t w = 0; w < words.size(); ++w) {
            for (uint64_t bits = words[w]; bits; bits &= bits - 1)
                intervals_[w * 64 + static_cast<size_t>(__builtin_ctzll(bits))].extend(at);
        }
    };
    for (const BasicBlock& block : blocks_) {
        extend(block.in, 2 * block.begin);
        extend(block.out, 2 * block.end - 1);
        for (uint32_t i = block.begin; i < block.end; ++i)
            for_registers(code_[i], [&](uint32_t number, bool written) { intervals_[number].extend(2 * i + written); });
    }
    for (const auto& [which, number] : t_.specials) intervals_[number].extend(0);
}

void Placing::assign() {
    std::vector<uint32_t> order;
    for (uint32_t r = 0; r < intervals_.size(); ++r) {
        if (intervals_[r].begin != UINT32_MAX) order.push_back(r);
    }
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
        return std::pair(intervals_[a].begin, a) < std::pair(intervals_[b].begin, b);
    });
    using Ending = std::pair<uint32_t, uint32_t>;  // when, which slot
    struct Slots {
        std::priority_queue<Ending, std::vector<Ending>, std::greater<>> taken;
        std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> free;
        uint32_t count = 0;
    } slots[kClasses];
    places_.assign(intervals_.size(), kNowhere);
    for (const uint32_t r : order) {
        Slots& of = slots[class_of(t_.registers[r])];
        while (!of.taken.empty() && of.taken.top().first < intervals_[r].begin) {
            of.free.push(of.taken.top().second);
            of.taken.pop();
        }
        uint32_t slot = of.count;
        if (of.free.empty()) {
            ++of.count;
        } else {
            slot = of.free.top();
            of.free.pop();
        }
        places_[r] = slot;
        of.taken.emplace(intervals_[r].end, slot);
    }
    uint32_t base[kClasses], bytes = 0;
    for (uint32_t c = 0; c < kClasses; ++c) {
        base[c] = bytes;
        bytes += slots[c].count * kBytes[c];
    }
    t_.program.register_bytes = (bytes + 63) / 64 * 64;
    for (const uint32_t r : order) {
        const Class c = class_of(t_.registers[r]);
        places_[r] = base[c] + places_[r] * kBytes[c];
    }
    for (const auto& [which, number] : t_.specials) t_.program.specials.push_back({which, places_[number]});
}

void Placing::place_constants() {
    std::vector<uint8_t> bytes;
    for (const Constant& constant : t_.constants) {
        const uint32_t size = constant.bytes ? constant.bytes : 4, lanes = constant.bytes ? kLanes : 1;
        const size_t at = (bytes.size() + 63) / 64 * 64;
        constant_places_.push_back(static_cast<Place>(at));
        bytes.resize(at + size_t{lanes} * size);
        for (uint32_t l = 0; l < lanes; ++l) std::memcpy(&bytes[at + l * size], &constant.bits, size);
    }
    t_.program.constants.resize(bytes.size() / sizeof(Line) + 1);
    if (!bytes.empty()) std::memcpy(t_.program.constants.data(), bytes.data(), bytes.size());
}

void Placing::rewrite() {
    for (Instruction& i : code_) {
        for (Place& place : places(i)) place = final_place(place);
        i.guard = final_place(i.guard);
    }
}

}  // namespace

void place_registers(Translation& translation) {
    Placing(translation).place();
}

}  // namespace tessera::cuda::ptx
