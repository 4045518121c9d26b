// Which cards there are: the environment variable TESSERA_EMULATED_GPUS, cards separated by ';', each
//   CAPABILITY:MEMORY[:KEY=VALUE]...      8.6:24GiB:name=RTX 3090:peers=1
// with the keys name, sms, clock (MHz), bandwidth (GB/s), l2 (MiB), context (MiB that a context takes), taken (memory
// that other processes have taken: 2GiB), link (to the host: "pcie4x16"), ptx (the newest PTX that the driver reads:
// 8.4) and peers (numbers of the cards that it reaches, separated by '+', or "none"). What is left out is taken from a
// card of that capability, of one that no card here has from the newest before it; without peers=, cards of one
// capability reach each other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::cuda::emulated {

// What all cards of a compute capability have in common (CUDA Programming Guide, "Compute Capabilities").
struct Limits {
    uint32_t threads_per_processor, blocks_per_processor;
    uint32_t shared_per_processor, shared_per_block;  // bytes; of a block that opts in
    uint32_t shared_reserved;                         // bytes of each block that the system takes
    uint32_t registers_per_processor = 65536, registers_per_block = 65536;
};

struct CardDescription {
    uint32_t capability = 860;  // 100 * major + 10 * minor
    uint64_t memory = 0;        // bytes
    std::string name;
    uint32_t processors = 0;
    uint32_t clock_khz = 0, memory_clock_khz = 0, bus_bits = 0;
    uint64_t l2_bytes = 0;
    uint64_t context_bytes = 256ull << 20;
    uint64_t taken = 0;                            // bytes that other processes have
    uint32_t link_generation = 0, link_lanes = 0;  // of PCI Express
    uint32_t ptx_version = 88;                     // 84: reads PTX ISA 8.4 and older
    uint64_t peers = 0;                            // bit i: reaches card i
    Limits limits{};
};

inline constexpr size_t kMaximumCards = 64;

// The cards that `text` describes; throws std::invalid_argument with what was expected and found.
std::vector<CardDescription> parse_cards(std::string_view text);

// "EE00:01:00.0": a domain that real machines do not use.
std::string pci_id(size_t card);

}  // namespace tessera::cuda::emulated
