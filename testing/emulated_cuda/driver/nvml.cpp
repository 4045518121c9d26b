// libnvidia-ml.so.1: what probing asks of it. Cards are those of the environment variable, free memory is that of the
// driver in the same process.
#include "description.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>

using namespace tessera::cuda::emulated;

namespace {

// nvmlReturn_t
constexpr int kSuccess = 0, kUninitialized = 1, kInvalidArgument = 2, kNotFound = 6, kDriverNotLoaded = 9;

std::mutex mutex;
std::vector<CardDescription>* cards = nullptr;

// Handles are the numbers of cards, from 1 on.
const CardDescription* find(void* device) {
    const auto number = reinterpret_cast<uintptr_t>(device);
    return cards && number > 0 && number <= cards->size() ? &(*cards)[number - 1] : nullptr;
}

}  // namespace

#define TSR_EXPORT extern "C" __attribute__((visibility("default")))

TSR_EXPORT int nvmlInit_v2() {
    const std::lock_guard lock(mutex);
    if (cards) return kSuccess;
    try {
        const char* const text = std::getenv("TESSERA_EMULATED_GPUS");
        cards = new std::vector<CardDescription>(parse_cards(text ? text : ""));
    } catch (const std::exception&) {
        return kDriverNotLoaded;
    }
    return kSuccess;
}

TSR_EXPORT int nvmlShutdown() {
    return kSuccess;
}

TSR_EXPORT int nvmlDeviceGetCount_v2(unsigned* count) {
    const std::lock_guard lock(mutex);
    if (!cards) return kUninitialized;
    if (!count) return kInvalidArgument;
    *count = static_cast<unsigned>(cards->size());
    return kSuccess;
}

TSR_EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
    const std::lock_guard lock(mutex);
    if (!cards) return kUninitialized;
    if (!id || !device) return kInvalidArgument;
    for (size_t i = 0; i < cards->size(); ++i) {
        if (strcasecmp(id, pci_id(i).c_str()) != 0) continue;
        *device = reinterpret_cast<void*>(i + 1);
        return kSuccess;
    }
    return kNotFound;
}

// Of the link that card and slot can make.
TSR_EXPORT int nvmlDeviceGetMaxPcieLinkGeneration(void* device, unsigned* generation) {
    const std::lock_guard lock(mutex);
    const CardDescription* const card = find(device);
    if (!cards) return kUninitialized;
    if (!card || !generation) return kInvalidArgument;
    *generation = card->link_generation;
    return kSuccess;
}

TSR_EXPORT int nvmlDeviceGetMaxPcieLinkWidth(void* device, unsigned* lanes) {
    const std::lock_guard lock(mutex);
    const CardDescription* const card = find(device);
    if (!cards) return kUninitialized;
    if (!card || !lanes) return kInvalidArgument;
    *lanes = card->link_lanes;
    return kSuccess;
}

struct Memory {  // nvmlMemory_t
    unsigned long long total, free, used;
};

TSR_EXPORT int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
    const std::lock_guard lock(mutex);
    const CardDescription* const card = find(device);
    if (!cards) return kUninitialized;
    if (!card || !memory) return kInvalidArgument;
    *memory = {card->memory, card->memory - card->taken, card->taken};
    if (void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) {
        const auto ask = reinterpret_cast<int (*)(int, unsigned long long*)>(dlsym(driver, "tesseraEmulatedMemory"));
        unsigned long long free_bytes = 0;
        if (ask && ask(static_cast<int>(reinterpret_cast<uintptr_t>(device) - 1), &free_bytes) == 0) {
            memory->free = free_bytes;
            memory->used = card->memory - free_bytes;
        }
        dlclose(driver);
    }
    return kSuccess;
}
