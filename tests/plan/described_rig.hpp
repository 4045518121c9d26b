// Golden models planned for machines that a test describes.
#pragma once

#include "core/hardware/hardware.hpp"
#include "core/registry/registry.hpp"
#include "core/session/engine.hpp"
#include "tests/support.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace tessera {

inline DeviceDescription card(const char* id, const char* name, uint64_t memory) {
    DeviceDescription gpu;
    gpu.kind = "simulated";
    gpu.id = id;
    gpu.name = name;
    gpu.compute_capability = 860;
    gpu.memory_bytes = gpu.free_memory_bytes = memory;
    gpu.link = "pcie4x16";
    return gpu;
}

inline DeviceDescription processor() {
    DeviceDescription cpu;
    cpu.kind = "cpu";
    cpu.id = "CPU";
    cpu.name = "EPYC 7402, 24 cores";
    cpu.cpu_flags = {"avx",    "avx2", "bmi1", "bmi2",   "f16c",   "fma",  "pni",
                     "popcnt", "sse",  "sse2", "sse4_1", "sse4_2", "ssse3"};
    // So slow that cards are worth their calls even for models of a few MiB.
    cpu.threads = 2;
    cpu.clock_hz = 20e6;
    cpu.memory_bandwidth = 100e6;
    cpu.thread_bandwidth = 50e6;
    cpu.numa_nodes = 1;
    cpu.memory_bytes = cpu.free_memory_bytes = uint64_t{64} << 30;
    return cpu;
}

class RigTest : public testing::Test {
  protected:
    PlannedModel plan(const EngineOptions& options, const std::vector<DeviceDescription>& gpus,
                      const char* model = "v3-groups.gguf") {
        std::vector<DeviceDescription> devices{processor()};
        devices.insert(devices.end(), gpus.begin(), gpus.end());
        const Hardware& hardware = *hardware_.emplace_back(std::make_unique<Hardware>(std::move(devices)));
        const Registry& registry =
            *registries_.emplace_back(std::make_unique<Registry>(Registry::load(test::plugins_without({}), hardware)));
        const gguf::GgufFile& file = *files_.emplace_back(
            std::make_unique<gguf::GgufFile>(gguf::GgufFile::open(std::filesystem::path(TSR_GOLDENS) / model)));
        return plan_model(file, registry, hardware, options);
    }

    // Of the last plan.
    const Registry& registry() const { return *registries_.back(); }
    const gguf::GgufFile& file() const { return *files_.back(); }

  private:
    // Of all plans of a test, which refer to them.
    std::vector<std::unique_ptr<Hardware>> hardware_;
    std::vector<std::unique_ptr<Registry>> registries_;
    std::vector<std::unique_ptr<gguf::GgufFile>> files_;
};

}  // namespace tessera
