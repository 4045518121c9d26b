// Initialisation, cards and their contexts, errors, and what tests ask of the driver beyond the manual.
#include "state.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <stdexcept>

namespace tessera::cuda::emulated {
namespace {

thread_local std::vector<Context*> context_stack;

std::string environment(const char* name) {
    const char* const value = std::getenv(name);
    return value ? value : "";
}

void write_line(int file, const std::string& text) {
    const std::string line = text + "\n";
    for (size_t i = 0; i < line.size();) {
        const ssize_t n = write(file, line.data() + i, line.size() - i);
        if (n <= 0) return;
        i += static_cast<size_t>(n);
    }
}

// What the driver has to tell goes where drivers' messages go: out of the program's way, here to the standard error.
void tell(const std::string& text) {
    const std::string file = environment("TESSERA_EMULATED_LOG");
    if (file.empty()) return write_line(STDERR_FILENO, "emulated driver: " + text);
    const int opened = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (opened < 0) return;
    write_line(opened, text);
    close(opened);
}

// "0:lost@120,1:memory@3,0:cuGraphLaunch@2"
void parse_faults(Driver& d, const std::string& text) {
    for (size_t i = 0; i < text.size();) {
        const size_t end = std::min(text.find(',', i), text.size());
        unsigned card = 0;
        unsigned long long number = 0;
        char what[48] = "";
        if (std::sscanf(text.substr(i, end - i).c_str(), "%u:%47[A-Za-z0-9_]@%llu", &card, what, &number) != 3 ||
            card >= d.cards.size() ||
            (std::strcmp(what, "lost") != 0 && std::strcmp(what, "memory") != 0 && std::strcmp(what, "launch") != 0 &&
             std::strcmp(what, "taken") != 0 && std::strncmp(what, "cu", 2) != 0))
            throw std::invalid_argument(
                "TESSERA_EMULATED_FAULTS: expected CARD:lost@N, CARD:memory@N, CARD:launch@N, CARD:FUNCTION@N or "
                "CARD:taken@MIB, separated by ','; found \"" +
                text.substr(i, end - i) + "\"");
        if (std::strcmp(what, "taken") == 0)
            d.cards[card]->to_be_taken = number << 20;
        else
            d.cards[card]->faults[what] = number;
        i = end + 1;
    }
}

void write_lines(const std::string& path, const std::vector<std::string>& lines) {
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file < 0) return;
    for (const std::string& line : lines) write_line(file, line);
    close(file);
}

void write_counters() {
    Driver& d = driver();
    const std::lock_guard lock(d.mutex);
    std::vector<std::string> lines = {
        "kernel\tlaunches\tblocks\tswitches\tmatrix products\taccesses\tshared requests\tshared wavefronts\t"
        "shared ideal\tglobal requests\tglobal sectors\tglobal sectors ideal\tinstructions of PTX\tvirtual "
        "architecture"};
    for (const auto& [kernel, c] : d.counters) {
        std::string line = kernel.first;
        for (const uint64_t value :
             {c.launches, c.blocks, c.switches, c.matrix_products, c.accesses, c.shared_requests, c.shared_wavefronts,
              c.shared_ideal, c.global_requests, c.global_sectors, c.global_sectors_ideal, c.instructions})
            line += "\t" + std::to_string(value);
        line += "\t" + std::to_string(kernel.second);
        lines.push_back(line);
    }
    // A folder: processes one after another, each with a file of its own.
    std::error_code ignored;
    const bool folder = std::filesystem::is_directory(d.counters_file, ignored);
    if (folder && d.counters.empty()) return;
    write_lines(folder ? d.counters_file + "/" + std::to_string(getpid()) : d.counters_file, lines);
}

void write_statistics() {
    Driver& d = driver();
    const std::lock_guard lock(d.mutex);
    std::vector<std::string> lines = {"card\tfunction\tcalls\tbytes\tseconds\tseconds after\tmedian of them"};
    for (auto& [key, s] : d.statistics) {
        const auto middle = s.after.begin() + static_cast<ptrdiff_t>(s.after.size() / 2);
        std::nth_element(s.after.begin(), middle, s.after.end());
        std::array<char, 64> median{};
        std::snprintf(median.data(), median.size(), "%.9f", middle == s.after.end() ? 0.0 : *middle);
        lines.push_back((key.first < 0 ? "-" : std::to_string(key.first)) + "\t" + key.second + "\t" +
                        std::to_string(s.calls) + "\t" + std::to_string(s.bytes) + "\t" + std::to_string(s.seconds) +
                        "\t" + std::to_string(std::accumulate(s.after.begin(), s.after.end(), 0.0)) + "\t" +
                        median.data());
    }
    write_lines(d.statistics_file, lines);
}

}  // namespace

Driver& driver() {
    static Driver& d = *new Driver;
    return d;
}

Result initialize(Driver& d) {
    if (d.initialized) return d.trouble.empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
    d.initialized = true;
    try {
        const auto descriptions = parse_cards(environment("TESSERA_EMULATED_GPUS"));
        for (size_t i = 0; i < descriptions.size(); ++i) {
            auto card = std::make_unique<Card>();
            card->number = i;
            card->description = descriptions[i];
            card->context.card = card.get();
            card->reach = uint64_t{1} << i;
            card->space_bytes = 2 * card->description.memory + (1ull << 30);
            void* const space =
                mmap(nullptr, card->space_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (space == MAP_FAILED) throw std::invalid_argument("no address space for " + card->description.name);
            card->space = reinterpret_cast<uintptr_t>(space);
            d.cards.push_back(std::move(card));
        }
        parse_faults(d, environment("TESSERA_EMULATED_FAULTS"));
        const std::string policy = environment("TESSERA_EMULATED_POLICY");
        if (policy == "late")
            d.policy = Policy::kLate;
        else if (policy == "eager")
            d.policy = Policy::kEager;
        else if (!policy.empty() && policy != "random")
            throw std::invalid_argument("TESSERA_EMULATED_POLICY: expected random, late or eager; found \"" + policy +
                                        "\"");
        if (const std::string seed = environment("TESSERA_EMULATED_SEED"); !seed.empty())
            d.seed = std::strtoull(seed.c_str(), nullptr, 10);
        if (const std::string patience = environment("TESSERA_EMULATED_PATIENCE"); !patience.empty())
            d.options.patience = std::strtoull(patience.c_str(), nullptr, 10);
        const std::string checks = environment("TESSERA_EMULATED_CHECKS");
        for (size_t i = 0; i < checks.size();) {
            const size_t end = std::min(checks.find(',', i), checks.size());
            const std::string one = checks.substr(i, end - i);
            if (one == "-races")
                d.options.check_races = d.check_streams = false;
            else if (one == "-unwritten")
                d.options.check_unwritten = false;
            else if (one == "-streams")
                d.check_streams = false;
            else
                throw std::invalid_argument("TESSERA_EMULATED_CHECKS: expected -races, -streams, -unwritten; found \"" +
                                            one + "\"");
            i = end + 1;
        }
        d.counters_file = environment("TESSERA_EMULATED_COUNTERS");
        if (!d.counters_file.empty()) {
            d.options.count = true;
            std::atexit(write_counters);
        }
        d.statistics_file = environment("TESSERA_EMULATED_STATISTICS");
        if (!d.statistics_file.empty()) std::atexit(write_statistics);
        std::string folders = environment("TESSERA_EMULATED_KERNELS");
        for (size_t i = 0; i < folders.size();) {
            const size_t end = std::min(folders.find(':', i), folders.size());
            const std::string folder = folders.substr(i, end - i);
            if (folder == "ptx")
                d.run_ptx = true;
            else if (!folder.empty())
                d.kernel_folders.push_back(folder);
            i = end + 1;
        }
    } catch (const std::exception& e) {
        d.trouble = e.what();
        d.report = e.what();
        d.cards.clear();
        tell(d.trouble);
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    return CUDA_SUCCESS;
}

Result current(Driver& d, Context*& context) {
    if (!d.initialized || !d.trouble.empty()) return CUDA_ERROR_NOT_INITIALIZED;
    if (context_stack.empty() || !context_stack.back()) return CUDA_ERROR_INVALID_CONTEXT;
    context = context_stack.back();
    return context->retained > 0 ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

Result current_for_work(Driver& d, Context*& context, const char* function) {
    if (const Result result = current(d, context); result != CUDA_SUCCESS) return result;
    Card& card = *context->card;
    ++card.operations;
    if (const auto fault = card.faults.find("lost"); fault != card.faults.end() && card.operations >= fault->second) {
        card.lost = true;
        if (card.error == CUDA_SUCCESS) fail(d, card, CUDA_ERROR_UNKNOWN, "the card is lost, as was asked for");
    }
    return lose_at(d, card, function);
}

Result lose_at(Driver& d, Card& card, const char* function) {
    if (card.faults.empty()) return card.error;
    const auto fault = card.faults.find(function);
    if (fault != card.faults.end() && ++card.calls[function] == fault->second) {
        card.lost = true;
        fail(d, card, CUDA_ERROR_UNKNOWN, std::string("the card is lost in ") + function + ", as was asked for");
    }
    return card.error;
}

void fail(Driver& d, Card& card, Result result, const std::string& report) {
    if (card.error == CUDA_SUCCESS) {
        card.error = result;
        d.report = "card " + std::to_string(card.number) + " (" + card.description.name + "): " + report;
        tell(d.report);
    }
    d.changed.notify_all();
}

namespace {

Card* find_card(Driver& d, int number) {
    return number >= 0 && static_cast<size_t>(number) < d.cards.size() ? d.cards[static_cast<size_t>(number)].get()
                                                                       : nullptr;
}

int attribute(const Card& card, int which, bool& known) {
    const CardDescription& c = card.description;
    const auto number = [](uint64_t v) { return static_cast<int>(std::min<uint64_t>(v, INT32_MAX)); };
    known = true;
    switch (which) {  // CUdevice_attribute
        case 1:
        case 2:
        case 3:
            return 1024;  // threads of a block, and its extents
        case 4:
            return 64;
        case 5:
            return INT32_MAX;  // extents of a grid
        case 6:
        case 7:
            return 65535;
        case 8:
            return 48 << 10;  // shared memory of a block that does not opt in
        case 9:
            return 64 << 10;  // constant memory
        case 10:
            return 32;  // warp
        case 12:
            return number(c.limits.registers_per_block);
        case 13:
            return number(c.clock_khz);
        case 15:
            return 1;  // copies overlap with kernels
        case 16:
            return number(c.processors);
        case 17:
            return 0;  // kernels have no time limit
        case 18:
            return 0;  // integrated
        case 19:
            return 1;  // host memory can be mapped
        case 20:
            return 0;  // compute mode: default
        case 31:
            return 1;  // concurrent kernels
        case 32:
            return 1;  // ECC
        case 33:
            return number(card.number) + 1;  // PCI bus
        case 34:
            return 0;  // PCI device
        case 36:
            return number(c.memory_clock_khz);
        case 37:
            return number(c.bus_bits);
        case 38:
            return number(c.l2_bytes);
        case 39:
            return number(c.limits.threads_per_processor);
        case 40:
            return 2;  // copy engines
        case 41:
            return 1;  // unified addresses
        case 50:
            return 0xEE00;  // PCI domain
        case 75:
            return number(c.capability / 100);
        case 76:
            return number(c.capability / 10 % 10);
        case 81:
            return number(c.limits.shared_per_processor);
        case 82:
            return number(c.limits.registers_per_processor);
        case 97:
            return number(c.limits.shared_per_block);
        case 106:
            return number(c.limits.blocks_per_processor);
        case 111:
            return number(c.limits.shared_reserved);
        default:
            known = false;
            return 0;
    }
}

}  // namespace
}  // namespace tessera::cuda::emulated

using namespace tessera::cuda::emulated;

TSR_EXPORT Result cuInit(unsigned flags) {
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    Driver& d = driver();
    const std::lock_guard lock(d.mutex);
    if (const Result result = initialize(d); result != CUDA_SUCCESS) return result;
    return d.cards.empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

TSR_EXPORT Result cuDriverGetVersion(int* version) {
    if (!version) return CUDA_ERROR_INVALID_VALUE;
    *version = 12090;
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuGetErrorName(Result result, const char** name) {
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    switch (result) {
#define TSR_NAME(symbol, number, text) \
    case number:                       \
        *name = "CUDA_" #symbol;       \
        return CUDA_SUCCESS;
        TSR_CUDA_RESULTS(TSR_NAME)
#undef TSR_NAME
    }
    *name = nullptr;
    return CUDA_ERROR_INVALID_VALUE;
}

// With the report of the last fault, so that it shows wherever a program prints the error.
TSR_EXPORT Result cuGetErrorString(Result result, const char** text) {
    if (!text) return CUDA_ERROR_INVALID_VALUE;
    const char* plain = nullptr;
    switch (result) {
#define TSR_TEXT(symbol, number, words) \
    case number:                        \
        plain = words;                  \
        break;
        TSR_CUDA_RESULTS(TSR_TEXT)
#undef TSR_TEXT
    }
    *text = plain;
    if (!plain) return CUDA_ERROR_INVALID_VALUE;
    Driver& d = driver();
    const std::lock_guard lock(d.mutex);
    if (result < CUDA_ERROR_INVALID_IMAGE || d.report.empty() || result == CUDA_ERROR_NOT_READY) return CUDA_SUCCESS;
    static std::set<std::string>& texts = *new std::set<std::string>;
    *text = texts.insert(std::string(plain) + " [" + d.report + "]").first->c_str();
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuDeviceGetCount(int* count) {
    const Call call(Call::kNothing);
    Driver& d = call.d;
    if (!d.initialized || !d.trouble.empty()) return CUDA_ERROR_NOT_INITIALIZED;
    if (!count) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<int>(d.cards.size());
    return CUDA_SUCCESS;
}

#define TSR_FIND_CARD(number)                                                    \
    Call call(Call::kNothing);                                                   \
    Driver& d = call.d;                                                          \
    if (!d.initialized || !d.trouble.empty()) return CUDA_ERROR_NOT_INITIALIZED; \
    Card* const card = find_card(d, number);                                     \
    if (!card) return CUDA_ERROR_INVALID_DEVICE

TSR_EXPORT Result cuDeviceGet(int* device, int ordinal) {
    TSR_FIND_CARD(ordinal);
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuDeviceGetName(char* name, int capacity, int device) {
    TSR_FIND_CARD(device);
    if (!name || capacity <= 0) return CUDA_ERROR_INVALID_VALUE;
    std::snprintf(name, static_cast<size_t>(capacity), "%s", card->description.name.c_str());
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
    TSR_FIND_CARD(device);
    if (!uuid) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(uuid, "tessera emulated", 16);
    uuid[15] = static_cast<unsigned char>(card->number);
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuDeviceGetAttribute(int* value, int which, int device) {
    TSR_FIND_CARD(device);
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    bool known = false;
    *value = attribute(*card, which, known);
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

TSR_EXPORT Result cuDeviceTotalMem_v2(size_t* bytes, int device) {
    TSR_FIND_CARD(device);
    if (!bytes) return CUDA_ERROR_INVALID_VALUE;
    *bytes = card->description.memory;
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuDeviceGetPCIBusId(char* id, int capacity, int device) {
    TSR_FIND_CARD(device);
    if (!id || capacity <= 0) return CUDA_ERROR_INVALID_VALUE;
    std::snprintf(id, static_cast<size_t>(capacity), "%s", pci_id(card->number).c_str());
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuDeviceCanAccessPeer(int* can, int device, int peer) {
    TSR_FIND_CARD(device);
    if (!find_card(d, peer)) return CUDA_ERROR_INVALID_DEVICE;
    if (!can) return CUDA_ERROR_INVALID_VALUE;
    *can = static_cast<int>(card->description.peers >> peer & 1);
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuDevicePrimaryCtxRetain(void** context, int device) {
    TSR_FIND_CARD(device);
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    if (card->lost) return CUDA_ERROR_DEVICE_UNAVAILABLE;
    if (card->context.retained == 0 && card->used() + card->description.context_bytes > card->description.memory)
        return CUDA_ERROR_OUT_OF_MEMORY;
    ++card->context.retained;
    *context = &card->context;
    return CUDA_SUCCESS;
}

// With the last reference all that belongs to the context goes.
TSR_EXPORT Result cuDevicePrimaryCtxRelease_v2(int device) {
    TSR_FIND_CARD(device);
    if (card->context.retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (card->context.retained == 1) wait_for_all(d, call.lock);
    if (--card->context.retained > 0) return CUDA_SUCCESS;
    while (!card->allocations.empty()) release(d, *card, card->allocations.begin()->first);
    std::erase_if(d.functions, [&](const auto& f) { return f.second->module->context == &card->context; });
    std::erase_if(d.modules, [&](const auto& m) { return m.second->context == &card->context; });
    card->code_bytes = 0;
    card->local = 0;
    card->reach = uint64_t{1} << card->number;
    return CUDA_SUCCESS;
}

namespace {

bool known_context(Driver& d, void* context) {
    return std::any_of(d.cards.begin(), d.cards.end(), [&](const auto& card) { return &card->context == context; });
}

}  // namespace

TSR_EXPORT Result cuCtxPushCurrent_v2(void* context) {
    const Call call(Call::kNothing);
    Driver& d = call.d;
    if (!known_context(d, context)) return CUDA_ERROR_INVALID_CONTEXT;
    if (static_cast<Context*>(context)->retained == 0) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    context_stack.push_back(static_cast<Context*>(context));
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuCtxPopCurrent_v2(void** context) {
    if (context_stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (context) *context = context_stack.back();
    context_stack.pop_back();
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuCtxSetCurrent(void* context) {
    const Call call(Call::kNothing);
    Driver& d = call.d;
    if (context && !known_context(d, context)) return CUDA_ERROR_INVALID_CONTEXT;
    if (!context_stack.empty()) context_stack.pop_back();
    if (context) context_stack.push_back(static_cast<Context*>(context));
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuCtxGetCurrent(void** context) {
    if (!context) return CUDA_ERROR_INVALID_VALUE;
    *context = context_stack.empty() ? nullptr : context_stack.back();
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuCtxGetDevice(int* device) {
    const Call call(Call::kContext);
    if (!call) return call.result;
    if (!device) return CUDA_ERROR_INVALID_VALUE;
    *device = static_cast<int>(call.context->card->number);
    return CUDA_SUCCESS;
}

TSR_EXPORT Result cuCtxSynchronize() {
    Call call(Call::kWork | Call::kNoCapture);
    if (!call) return call.result;
    wait_for_all(call.d, call.lock);
    return call.context->card->error;
}

TSR_EXPORT Result cuCtxEnablePeerAccess(void* peer, unsigned flags) {
    const Call call(Call::kWork);
    if (!call) return call.result;
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    if (!known_context(call.d, peer) || peer == call.context) return CUDA_ERROR_INVALID_CONTEXT;
    const uint64_t bit = uint64_t{1} << static_cast<Context*>(peer)->card->number;
    Card& card = *call.context->card;
    if (!(card.description.peers & bit)) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
    if (card.reach & bit) return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    card.reach |= bit;
    return CUDA_SUCCESS;
}

// ---- beyond the manual ----

// The report of the last fault; empty if there was none. Returns its length.
TSR_EXPORT size_t tesseraEmulatedReport(char* text, size_t capacity) {
    Driver& d = driver();
    const std::lock_guard lock(d.mutex);
    if (text && capacity > 0) std::snprintf(text, capacity, "%s", d.report.c_str());
    return d.report.size();
}

// From now on every call for the card fails, as if it had left the bus.
TSR_EXPORT Result tesseraEmulatedLoseCard(int device) {
    TSR_FIND_CARD(device);
    card->lost = true;
    fail(d, *card, CUDA_ERROR_UNKNOWN, "the card is lost, as was asked for");
    return CUDA_SUCCESS;
}

// Faults as in TESSERA_EMULATED_FAULTS, counted from now on.
TSR_EXPORT Result tesseraEmulatedFaults(const char* text) {
    const Call call(Call::kNothing);
    if (!call.d.initialized || !text) return CUDA_ERROR_INVALID_VALUE;
    for (const auto& card : call.d.cards) {
        card->faults.clear();
        card->calls.clear();
        card->operations = card->launches = card->allocated = 0;
    }
    try {
        parse_faults(call.d, text);
    } catch (const std::invalid_argument&) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

// How often a function has been called for a card, where statistics are kept.
TSR_EXPORT size_t tesseraEmulatedCalls(int device, const char* function) {
    Driver& d = driver();
    const std::lock_guard lock(d.mutex);
    const auto found = d.statistics.find({device, function});
    return found == d.statistics.end() ? 0 : found->second.calls;
}

// While held, streams do no work; calls that wait for them do not return.
TSR_EXPORT Result tesseraEmulatedHold(int held) {
    const Call call(Call::kNothing);
    call.d.held = held != 0;
    call.d.changed.notify_all();
    return CUDA_SUCCESS;
}

// For NVML.
TSR_EXPORT Result tesseraEmulatedMemory(int device, unsigned long long* free_bytes) {
    TSR_FIND_CARD(device);
    *free_bytes = card->description.memory - std::min(card->used(), card->description.memory);
    card->taken = card->to_be_taken;
    return CUDA_SUCCESS;
}
