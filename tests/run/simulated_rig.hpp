// What tests of whole models on simulated GPUs share: rigs of cards, what the cards are told to do, and results to
// compare.
#pragma once

#include "testing/simulated/simulated_failures.h"
#include "tests/support.hpp"

#include <tessera/plugin.h>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace tessera::test {

inline std::string card_id(size_t index) {
    return "SIM" + std::to_string(index);
}

inline DeviceDescription simulated_card(size_t index, uint32_t compute_capability = 860, uint64_t memory = 256 << 20) {
    DeviceDescription card;
    card.kind = "simulated";
    card.id = card_id(index);
    card.name = "simulated";
    card.compute_capability = compute_capability;
    card.memory_bytes = card.free_memory_bytes = memory;
    return card;
}

// Cards SIM0, SIM1, ... of these compute capabilities, and a CPU with the reference's kernels alone.
inline TestConfig rig_config(const std::vector<uint32_t>& capabilities) {
    TestConfig config = plugins_without({"cpu_avx2", "cpu_avx512"});
    for (size_t i = 0; i < capabilities.size(); ++i) config.gpus.push_back(simulated_card(i, capabilities[i]));
    return config;
}

// The simulated plugin's extension. The library is the one that the registry maps, so the devices are the engine's.
inline const tsr_simulated_failures& simulated_failures() {
    static const tsr_simulated_failures* const table = [] {
        void* library = dlopen((test_plugin_folder() / "tessera_simulated.so").c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!library) throw std::runtime_error(dlerror());
        static tsr_host host{};
        host.struct_size = sizeof host;
        host.abi_major = TSR_ABI_MAJOR;
        const auto query = reinterpret_cast<tsr_plugin_query_function>(dlsym(library, TSR_PLUGIN_QUERY));
        const tsr_plugin* plugin = query(&host);
        return static_cast<const tsr_simulated_failures*>(plugin->get_extension(plugin, TSR_SIMULATED_FAILURES));
    }();
    return *table;
}

// Options of a card for the time of a test; its failures and counts start anew, and are taken back at the end.
class CardOptions {
  public:
    explicit CardOptions(std::string id, tsr_simulated_policy policy = TSR_SIMULATED_RANDOM, uint32_t without = 0,
                         const std::string& lacks = "", uint64_t seed = 7)
        : id_(std::move(id)) {
        simulated_failures().reset(id_.c_str());
        const tsr_simulated_options options = {sizeof options, policy, seed, without, 0, lacks.c_str()};
        EXPECT_EQ(simulated_failures().configure(id_.c_str(), &options), 1u) << lacks;
    }
    ~CardOptions() {
        simulated_failures().reset(id_.c_str());
        simulated_failures().configure(id_.c_str(), nullptr);
    }
    CardOptions(const CardOptions&) = delete;

  private:
    std::string id_;
};

inline std::vector<Token> random_tokens(const Engine& engine, std::mt19937& random, size_t count) {
    std::vector<Token> tokens(count);
    for (Token& token : tokens) token = static_cast<Token>(random() % engine.info().vocabulary);
    return tokens;
}

// Takes a step and adds its logits to `all`.
inline void add_step(Engine& engine, const std::vector<BatchEntry>& entries, std::vector<float>& all) {
    for (const auto row : engine.step(entries)) all.insert(all.end(), row.begin(), row.end());
}

// Finite, and within `tolerance` of the largest value that is wanted.
inline void expect_close(const std::vector<float>& got, const std::vector<float>& wanted, double tolerance) {
    ASSERT_EQ(got.size(), wanted.size());
    double largest = 0, worst = 0;
    for (const float value : wanted) largest = std::max<double>(largest, std::abs(value));
    for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_TRUE(std::isfinite(got[i])) << i;
        worst = std::max<double>(worst, std::abs(got[i] - wanted[i]));
    }
    EXPECT_LE(worst, tolerance * largest);
}

inline std::filesystem::path golden(const char* name) {
    return std::filesystem::path(TSR_GOLDENS) / name;
}

}  // namespace tessera::test
