#include "layouts.hpp"

#include <tessera/cpp/node.hpp>
#include <tessera/cpp/status.hpp>
#include <tessera/cpu/formats.hpp>

#include <array>
#include <cstring>
#include <string>

namespace tessera::simulated {
namespace {

using sdk::Failure;

// After each group; no number in any float type and no run of equal bytes.
constexpr unsigned char kMark[32] = {0xFF, 0xFE, 'p', 'a', 'c', 'k', 'e', 'd', 0xFF, 0xFE, 1,  2,  3,  4,  5,  6,
                                     0xFF, 0xFE, 7,   8,   9,   10,  11,  12,  0xFF, 0xFE, 13, 14, 15, 16, 17, 18};

// A tsr_layout with the lists of names that kernels answer.
struct Layout : tsr_layout {
    const char* names[3];  // itself, canonical, end
};

uint64_t row_bytes(const tsr_layout& layout, int64_t elements) noexcept {
    return cpu::format_bytes(layout.type, static_cast<size_t>(elements));
}

uint64_t group_bytes(const tsr_layout* self, int64_t elements) {
    return self->group_rows * row_bytes(*self, elements) + sizeof kMark;
}

// Calls body(row of the group, offset in the row, offset in the packed group, bytes) for every block.
template <class Body>
void each_block(const tsr_layout& layout, int64_t elements, Body&& body) {
    const uint64_t block = row_bytes(layout, layout.elements_multiple), row = row_bytes(layout, elements);
    uint64_t at = 0;
    for (uint64_t offset = 0; offset < row; offset += block) {
        for (uint32_t r = 0; r < layout.group_rows; ++r, at += block) body(r, offset, at, block);
    }
}

void pack(const tsr_layout* self, int64_t elements, int64_t groups, const void* rows, void* packed) {
    const uint64_t row = row_bytes(*self, elements), group = group_bytes(self, elements);
    const char* from = static_cast<const char*>(rows);
    char* to = static_cast<char*>(packed);
    for (int64_t i = 0; i < groups; ++i, from += self->group_rows * row, to += group) {
        each_block(*self, elements, [&](uint32_t r, uint64_t offset, uint64_t at, uint64_t bytes) {
            std::memcpy(to + at, from + r * row + offset, bytes);
        });
        std::memcpy(to + group - sizeof kMark, kMark, sizeof kMark);
    }
}

void unpack(const tsr_layout* self, int64_t elements, int64_t groups, const void* packed, void* rows) {
    const uint64_t row = row_bytes(*self, elements), group = group_bytes(self, elements);
    const char* from = static_cast<const char*>(packed);
    char* to = static_cast<char*>(rows);
    for (int64_t i = 0; i < groups; ++i, from += group, to += self->group_rows * row) {
        each_block(*self, elements, [&](uint32_t r, uint64_t offset, uint64_t at, uint64_t bytes) {
            std::memcpy(to + r * row + offset, from + at, bytes);
        });
    }
}

// Packing or unpacking on a queue.
class Conversion : public Work {
  public:
    Conversion(const tsr_layout& layout, bool packs, int64_t elements, int64_t groups, Place from, Place to) noexcept
        : layout_(layout), packs_(packs), elements_(elements), groups_(groups), from_(from), to_(to) {}

    void run() const override { (packs_ ? pack : unpack)(&layout_, elements_, groups_, from_.memory, to_.memory); }
    const char* op() const noexcept override { return nullptr; }
    const char* node() const noexcept override { return packs_ ? "pack" : "unpack"; }
    std::vector<Held*> held() const { return {from_.allocation, to_.allocation}; }

  private:
    const tsr_layout& layout_;
    bool packs_;
    int64_t elements_, groups_;
    Place from_, to_;
};

const tsr_status* enqueue(const tsr_layout& layout, bool packs, tsr_device* table, tsr_queue queue, int64_t elements,
                          int64_t groups, const void* rows, const void* packed) {
    const tsr_status* failed = nullptr;
    const tsr_status* refused = sdk::guarded([&] {
        Device& device = Device::of(table, packs ? "enqueue_pack" : "enqueue_unpack");
        failed = device.call(packs ? TSR_SIMULATED_PACK : TSR_SIMULATED_UNPACK, Threads::kOne, [&] {
            if (elements <= 0 || elements % layout.elements_multiple || groups <= 0) {
                throw Failure(TSR_INVALID_ARGUMENT, device.id() + ": " + layout.name + ": " + std::to_string(groups) +
                                                        " groups of rows of " + std::to_string(elements) +
                                                        " elements: expected at least one, and a multiple of " +
                                                        std::to_string(layout.elements_multiple));
            }
            const auto part = [&](const char* what) {
                return [&layout, what] { return std::string(layout.name) + ", " + what; };
            };
            const auto count = static_cast<uint64_t>(groups);
            const Place canonical =
                device.resolve(rows, count * layout.group_rows * row_bytes(layout, elements), part("canonical rows"));
            const Place other = device.resolve(packed, count * group_bytes(&layout, elements), part("packed rows"));
            auto work = std::make_unique<Conversion>(layout, packs, elements, groups, packs ? canonical : other,
                                                     packs ? other : canonical);
            std::vector<Held*> held = work->held();
            device.launch(device.queue(queue), std::move(work), std::move(held));
        });
    });
    return refused ? refused : failed;
}

const tsr_status* enqueue_pack(const tsr_layout* self, tsr_device* device, tsr_queue queue, int64_t elements,
                               int64_t groups, const void* rows, void* packed) {
    return enqueue(*self, true, device, queue, elements, groups, rows, packed);
}

const tsr_status* enqueue_unpack(const tsr_layout* self, tsr_device* device, tsr_queue queue, int64_t elements,
                                 int64_t groups, const void* packed, void* rows) {
    return enqueue(*self, false, device, queue, elements, groups, rows, packed);
}

constexpr uint32_t kDeviceRows = 8, kHostRows = 4;

Layout make_layout(tsr_type type, const char* name, bool on_device) noexcept {
    Layout layout{};
    layout.struct_size = sizeof(tsr_layout);
    layout.type = type;
    layout.name = name;
    layout.group_rows = on_device ? kDeviceRows : kHostRows;
    layout.elements_multiple = static_cast<uint32_t>(cpu::format_size(type).elements);
    layout.group_bytes = group_bytes;
    layout.pack = pack;
    layout.unpack = unpack;
    if (on_device) {
        layout.interop = TSR_SIMULATED_INTEROP;
        layout.device_abi = TSR_DEVICE_ABI;
        layout.enqueue_pack = enqueue_pack;
        layout.enqueue_unpack = enqueue_unpack;
    }
    layout.names[0] = name;
    layout.names[1] = "";
    return layout;
}

const std::array<Layout, 4>& layouts() {
    static const std::array<Layout, 4> kLayouts = {
        make_layout(TSR_TYPE_F16, "f16_simulated_x8", true),
        make_layout(TSR_TYPE_Q8_0, "q8_0_simulated_x8", true),
        make_layout(TSR_TYPE_F16, "f16_simulated_x4", false),
        make_layout(TSR_TYPE_Q8_0, "q8_0_simulated_x4", false),
    };
    return kLayouts;
}

// Whether the weight is made of whole groups that follow each other.
bool fits(const tsr_tensor& weight, const tsr_layout& layout) noexcept {
    const auto row = static_cast<int64_t>(row_bytes(layout, weight.dims[0])), group = row * layout.group_rows;
    if (weight.type != layout.type || weight.rank < 2 || weight.dims[0] % layout.elements_multiple ||
        weight.strides[1] != row || weight.dims[1] % layout.group_rows || weight.offset % group)
        return false;
    for (uint32_t i = 2; i < weight.rank; ++i) {
        if (weight.strides[i] % group) return false;
    }
    return true;
}

}  // namespace

const tsr_layout* const* layout_list(uint32_t& count) {
    static const std::array<const tsr_layout*, 4> kList = [] {
        std::array<const tsr_layout*, 4> list{};
        for (size_t i = 0; i < list.size(); ++i) list[i] = &layouts()[i];
        return list;
    }();
    count = static_cast<uint32_t>(kList.size());
    return kList.data();
}

const char* const* layouts_of(const tsr_tensor& weight, const tsr_device_info& device,
                              const Options& options) noexcept {
    if (device.compute_capability < kAmpere || (options.without & TSR_SIMULATED_NO_LAYOUTS)) return nullptr;
    const bool on_device = (options.without & TSR_SIMULATED_NO_PACKING) == 0;
    for (const Layout& layout : layouts()) {
        if ((layout.enqueue_pack != nullptr) == on_device && fits(weight, layout)) return layout.names;
    }
    return nullptr;
}

PackedWeight PackedWeight::of(const tsr_tensor& weight) {
    if (sdk::canonical(weight)) return {};
    for (const Layout& layout : layouts()) {
        if (std::strcmp(layout.name, weight.layout) != 0 || !fits(weight, layout)) continue;
        const uint64_t group = layout.group_rows * row_bytes(layout, weight.dims[0]);
        uint64_t reach = static_cast<uint64_t>(weight.dims[1]) * row_bytes(layout, weight.dims[0]);
        for (uint32_t i = 2; i < weight.rank; ++i)
            reach += static_cast<uint64_t>((weight.dims[i] - 1) * weight.strides[i]);
        PackedWeight packed;
        packed.layout = &layout;
        packed.groups = static_cast<int64_t>(reach / group);
        packed.canonical_bytes = reach;
        packed.offset = static_cast<uint64_t>(weight.offset) / group * group_bytes(&layout, weight.dims[0]);
        packed.bytes = static_cast<uint64_t>(packed.groups) * group_bytes(&layout, weight.dims[0]);
        return packed;
    }
    throw Failure(TSR_UNSUPPORTED, std::string(weight.name ? weight.name : "a weight") + " in layout " + weight.layout +
                                       ": expected the canonical layout or one of this plugin's");
}

std::vector<char> unpacked_rows(const PackedWeight& weight, int64_t elements, const char* packed) {
    const uint64_t group = group_bytes(weight.layout, elements);
    for (int64_t i = 0; i < weight.groups; ++i) {
        const char* mark = packed + static_cast<uint64_t>(i + 1) * group - sizeof kMark;
        if (std::memcmp(mark, kMark, sizeof kMark) == 0) continue;
        throw Failure(TSR_INVALID_ARGUMENT, std::string("group ") + std::to_string(i) + " of " +
                                                std::to_string(weight.groups) + " is not packed as " +
                                                weight.layout->name);
    }
    std::vector<char> rows(weight.canonical_bytes);
    unpack(weight.layout, elements, weight.groups, packed, rows.data());
    return rows;
}

}  // namespace tessera::simulated
