#include "counting.hpp"

#include <algorithm>
#include <bit>

namespace tessera::cuda::emulator {

void Counters::add(const Counters& other) noexcept {
    launches += other.launches;
    blocks += other.blocks;
    switches += other.switches;
    matrix_products += other.matrix_products;
    accesses += other.accesses;
    shared_requests += other.shared_requests;
    shared_wavefronts += other.shared_wavefronts;
    shared_ideal += other.shared_ideal;
    global_requests += other.global_requests;
    global_sectors += other.global_sectors;
    global_sectors_ideal += other.global_sectors_ideal;
    instructions += other.instructions;
}

uint32_t wavefronts(const uint64_t* offsets, uint32_t lanes, uint32_t bytes, uint32_t& ideal) {
    const uint32_t words = std::max(bytes / 4, 1u), group = 32 / std::min(words, 4u);
    uint32_t total = 0;
    ideal = 0;
    for (uint32_t first = 0; first < 32; first += group) {
        std::array<std::array<uint64_t, 32>, 32> distinct;
        std::array<uint32_t, 32> count{};
        uint32_t worst = 0;
        for (uint32_t lane = first; lane < first + group; ++lane) {
            if (!(lanes >> lane & 1)) continue;
            for (uint32_t w = 0; w < words; ++w) {
                const uint64_t word = offsets[lane] / 4 + w;
                const uint32_t bank = word % 32;
                uint32_t& n = count[bank];
                if (std::find(distinct[bank].begin(), distinct[bank].begin() + n, word) == distinct[bank].begin() + n &&
                    n < 32)
                    distinct[bank][n++] = word;
                worst = std::max(worst, n);
            }
        }
        total += worst;
        ideal += worst > 0;
    }
    return total;
}

uint32_t sectors(const uint64_t* addresses, uint32_t lanes, uint32_t bytes, uint32_t& ideal) {
    std::array<uint64_t, 32 * 3> touched;
    std::array<uint64_t, 32> distinct_addresses;
    size_t n = 0, different = 0;
    for (uint32_t lane = 0; lane < 32; ++lane) {
        if (!(lanes >> lane & 1)) continue;
        distinct_addresses[different++] = addresses[lane];
        for (uint64_t s = addresses[lane] / 32; s <= (addresses[lane] + bytes - 1) / 32 && n < touched.size(); ++s)
            touched[n++] = s;
    }
    std::sort(distinct_addresses.begin(), distinct_addresses.begin() + different);
    different =
        std::unique(distinct_addresses.begin(), distinct_addresses.begin() + different) - distinct_addresses.begin();
    std::sort(touched.begin(), touched.begin() + n);
    ideal = static_cast<uint32_t>((different * bytes + 31) / 32);
    return static_cast<uint32_t>(std::unique(touched.begin(), touched.begin() + n) - touched.begin());
}

void Counting::note(uint32_t warp, uint32_t lane, const void* pc, uint64_t address, uint32_t bytes, bool in_shared) {
    Instruction& instruction = warps_[warp][pc];
    const uint32_t index = instruction.executed[lane]++;
    if (index >= instruction.requests.size()) instruction.requests.resize(index + 1);
    Request& request = instruction.requests[index];
    request.address[lane] = address;
    request.lanes |= 1u << lane;
    request.bytes = std::max(request.bytes, bytes);
    request.in_shared = in_shared;
}

void Counting::flush(uint32_t warp, Counters& counters) {
    if (!enabled_) return;
    for (auto& [pc, instruction] : warps_[warp]) {
        for (const Request& request : instruction.requests) {
            uint32_t ideal = 0;
            if (request.in_shared) {
                counters.shared_requests += 1;
                counters.shared_wavefronts += wavefronts(request.address.data(), request.lanes, request.bytes, ideal);
                counters.shared_ideal += ideal;
            } else {
                counters.global_requests += 1;
                counters.global_sectors += sectors(request.address.data(), request.lanes, request.bytes, ideal);
                counters.global_sectors_ideal += ideal;
            }
        }
        instruction.requests.clear();
        instruction.executed.fill(0);
    }
}

}  // namespace tessera::cuda::emulator
