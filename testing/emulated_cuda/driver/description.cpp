#include "description.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <stdexcept>

namespace tessera::cuda::emulated {
namespace {

struct Typical {
    uint32_t capability;
    const char* name;
    uint32_t processors, clock_mhz;
    double gigabytes_per_second;
    uint32_t bus_bits;
    double l2_mib;
    double memory_gib;
    uint32_t link_generation;
    Limits limits;
};

// A card of each capability, by its vendor's data sheet.
constexpr Typical kTypical[] = {
    {600, "Tesla P100-PCIE-16GB", 56, 1329, 732, 4096, 4, 16, 3, {2048, 32, 64 << 10, 48 << 10, 0}},
    {610, "Tesla P40", 30, 1531, 346, 384, 3, 24, 3, {2048, 32, 96 << 10, 48 << 10, 0}},
    {700, "Tesla V100-PCIE-16GB", 80, 1380, 900, 4096, 6, 16, 3, {2048, 32, 96 << 10, 96 << 10, 0}},
    {750, "Tesla T4", 40, 1590, 320, 256, 4, 16, 3, {1024, 16, 64 << 10, 64 << 10, 0}},
    {800, "NVIDIA A100-PCIE-40GB", 108, 1410, 1555, 5120, 40, 40, 4, {2048, 32, 164 << 10, 163 << 10, 1024}},
    {860, "NVIDIA GeForce RTX 3090", 82, 1695, 936, 384, 6, 24, 4, {1536, 16, 100 << 10, 99 << 10, 1024}},
    {890, "NVIDIA GeForce RTX 4090", 128, 2520, 1008, 384, 72, 24, 4, {1536, 24, 100 << 10, 99 << 10, 1024}},
    {900, "NVIDIA H100 80GB HBM3", 132, 1980, 3350, 5120, 50, 80, 5, {2048, 32, 228 << 10, 227 << 10, 1024}},
    {1000, "NVIDIA B200", 148, 1965, 8000, 8192, 126, 180, 5, {2048, 32, 228 << 10, 227 << 10, 1024}},
    {1200, "NVIDIA GeForce RTX 5090", 170, 2407, 1792, 512, 96, 32, 5, {1536, 24, 100 << 10, 99 << 10, 1024}},
};

[[noreturn]] void refuse(std::string_view card, const std::string& expected) {
    throw std::invalid_argument("TESSERA_EMULATED_GPUS: expected " + expected + "; found \"" + std::string(card) +
                                "\"");
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    while (true) {
        const size_t end = text.find(separator);
        parts.push_back(text.substr(0, end));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

double number(std::string_view text, std::string_view& rest, std::string_view card, const char* what) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || !(value > 0) || value > 1e9) refuse(card, std::string("a positive number as ") + what);
    rest = text.substr(static_cast<size_t>(end - text.data()));
    return value;
}

double number(std::string_view text, std::string_view card, const char* what) {
    std::string_view rest;
    const double value = number(text, rest, card, what);
    if (!rest.empty()) refuse(card, std::string("a positive number as ") + what);
    return value;
}

uint64_t memory_bytes(std::string_view text, std::string_view card) {
    std::string_view unit;
    const double value = number(text, unit, card, "memory");
    const double factor = unit == "GiB"   ? 1 << 30
                          : unit == "MiB" ? 1 << 20
                          : unit == "GB"  ? 1e9
                          : unit == "MB"  ? 1e6
                                          : 0;
    if (factor == 0 || value * factor > 1e13) refuse(card, "memory in GiB, MiB, GB or MB (24GiB)");
    return static_cast<uint64_t>(value * factor);
}

// "8.6" -> 860; 0 if it is not such a text.
uint32_t parse_capability(std::string_view text) {
    uint32_t major = 0, minor = 0;
    const char* const end = text.data() + text.size();
    const auto [point, error] = std::from_chars(text.data(), end, major);
    if (error != std::errc() || point == end || *point != '.' || major > 99) return 0;
    const auto [last, error_of_minor] = std::from_chars(point + 1, end, minor);
    return error_of_minor != std::errc() || last != end || minor > 9 ? 0 : 100 * major + 10 * minor;
}

std::string capability_text(uint32_t capability) {
    return std::to_string(capability / 100) + "." + std::to_string(capability / 10 % 10);
}

uint32_t rounded(double value) {
    return static_cast<uint32_t>(std::lround(value));
}

// "pcie4x16"
void parse_link(std::string_view text, std::string_view card, CardDescription& description) {
    const size_t lanes = text.find('x');
    const auto whole = [](std::string_view digits) {
        uint32_t value = 0;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        return error == std::errc() && end == digits.data() + digits.size() ? value : 0;
    };
    constexpr std::string_view kBus = "pcie";
    if (text.starts_with(kBus) && lanes != std::string_view::npos) {
        description.link_generation = whole(text.substr(kBus.size(), lanes - kBus.size()));
        description.link_lanes = whole(text.substr(lanes + 1));
    } else {
        description.link_generation = 0;
    }
    if (description.link_generation < 1 || description.link_generation > 6 || description.link_lanes < 1 ||
        description.link_lanes > 16)
        refuse(card, "a link of pcie1x1 to pcie6x16");
}

CardDescription parse_card(std::string_view text, bool& has_peers) {
    const std::vector<std::string_view> parts = split(text, ':');
    CardDescription card;
    const Typical* typical = nullptr;
    card.capability = parse_capability(parts[0]);
    for (const Typical& one : kTypical) {
        if (one.capability <= card.capability) typical = &one;
    }
    if (!typical) {
        std::string known;
        for (const Typical& one : kTypical) known += " " + capability_text(one.capability);
        refuse(text, "CAPABILITY:MEMORY[:KEY=VALUE]... with a compute capability of" + known + " or later");
    }
    double bandwidth = typical->gigabytes_per_second;
    card.name = card.capability == typical->capability
                    ? typical->name
                    : "GPU of compute capability " + capability_text(card.capability);
    card.processors = typical->processors;
    card.clock_khz = typical->clock_mhz * 1000;
    card.bus_bits = typical->bus_bits;
    card.l2_bytes = static_cast<uint64_t>(typical->l2_mib * (1 << 20));
    card.limits = typical->limits;
    card.link_generation = typical->link_generation;
    card.link_lanes = 16;
    card.memory = static_cast<uint64_t>(typical->memory_gib * (1 << 30));
    if (parts.size() > 1 && !parts[1].empty()) card.memory = memory_bytes(parts[1], text);
    for (size_t i = 2; i < parts.size(); ++i) {
        const size_t equals = parts[i].find('=');
        const std::string_view key = parts[i].substr(0, equals);
        const std::string_view value = equals == std::string_view::npos ? "" : parts[i].substr(equals + 1);
        if (key == "name" && !value.empty()) {
            card.name = value;
        } else if (key == "sms") {
            card.processors = rounded(number(value, text, "sms"));
        } else if (key == "clock") {
            card.clock_khz = rounded(1000 * number(value, text, "clock in MHz"));
        } else if (key == "bandwidth") {
            bandwidth = number(value, text, "bandwidth in GB/s");
        } else if (key == "l2") {
            card.l2_bytes = static_cast<uint64_t>(number(value, text, "l2 in MiB") * (1 << 20));
        } else if (key == "context") {
            card.context_bytes = static_cast<uint64_t>(number(value, text, "context in MiB") * (1 << 20));
        } else if (key == "taken") {
            card.taken = memory_bytes(value, text);
        } else if (key == "link") {
            parse_link(value, text, card);
        } else if (key == "ptx") {
            card.ptx_version = parse_capability(value) / 10;
            if (card.ptx_version == 0) refuse(text, "a version of PTX (ptx=8.4)");
        } else if (key == "peers") {
            has_peers = true;
            if (value == "none") continue;
            for (const std::string_view peer : split(value, '+')) {
                uint32_t index = 0;
                const auto [end, error] = std::from_chars(peer.data(), peer.data() + peer.size(), index);
                if (error != std::errc() || end != peer.data() + peer.size() || index >= kMaximumCards)
                    refuse(text, "peers=none or numbers of cards (peers=1+2)");
                card.peers |= uint64_t{1} << index;
            }
        } else {
            refuse(text, "the keys name, sms, clock, bandwidth, l2, context, taken, link, ptx and peers");
        }
    }
    if (card.taken > card.memory) refuse(text, "no more memory taken than the card has");
    // Two transfers a clock.
    card.memory_clock_khz = rounded(bandwidth * 1e9 * 8 / card.bus_bits / 2 / 1000);
    return card;
}

}  // namespace

std::vector<CardDescription> parse_cards(std::string_view text) {
    std::vector<CardDescription> cards;
    std::vector<bool> has_peers;
    if (text.empty()) return cards;
    for (const std::string_view one : split(text, ';')) {
        if (cards.size() == kMaximumCards) refuse(one, "at most " + std::to_string(kMaximumCards) + " cards");
        bool given = false;
        cards.push_back(parse_card(one, given));
        has_peers.push_back(given);
    }
    for (size_t i = 0; i < cards.size(); ++i) {
        for (size_t j = 0; j < cards.size() && !has_peers[i]; ++j) {
            if (i != j && cards[i].capability == cards[j].capability) cards[i].peers |= uint64_t{1} << j;
        }
        cards[i].peers &= ~(uint64_t{1} << i);
    }
    return cards;
}

std::string pci_id(size_t card) {
    char id[32];
    std::snprintf(id, sizeof id, "EE00:%02X:00.0", static_cast<unsigned>(card) + 1);
    return id;
}

}  // namespace tessera::cuda::emulated
