#include "core/run/loader.hpp"

#include "core/base/checked.hpp"
#include "core/base/error.hpp"
#include "core/graph/types.hpp"
#include "core/run/device_uploads.hpp"
#include "core/run/each_on_team.hpp"
#include "core/run/fetch_groups.hpp"
#include "core/run/for_weight.hpp"
#include "core/run/init_runner.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <vector>

namespace tessera {
namespace {

constexpr auto kProgressInterval = std::chrono::milliseconds(100);

// What one worker loads at a time of one weight: bytes of the source if the instance holds them as they are, else
// whole groups of canonical rows.
struct Piece {
    const Instance* instance;
    uint64_t offset;
    uint64_t bytes;
};

class Loader {
  public:
    Loader(const Plan& plan, const Registry& registry, PlanMemory& memory, const WeightSource& source, Team& team,
           const LoadProgress& progress)
        : plan_(plan),
          registry_(registry),
          memory_(memory),
          source_(source),
          team_(team),
          progress_(progress),
          read_in_mapped_(plan.memory[0].mapped + plan.memory[0].allocated() <= plan.devices[0]->free_memory_bytes),
          buffers_(plan.memory[0].loading, "loading", false),
          init_(plan, registry, memory, source, team, {buffers_.data(), buffers_.size()}) {}

    void run() {
        const std::vector<Piece> pieces = split();
        for (const PlannedNode& node : plan_.init_nodes) total_ += init_.bytes(node);
        run_init_nodes(false);
        load(pieces);
        run_init_nodes(true);
        release_shared_pages();
        memory_.release_loading();
        if (progress_) progress_(total_, total_);
    }

  private:
    const Storage& storage(const Instance& instance) const { return plan_.graph.storage(instance.storage); }

    Packing packing(const Instance& instance) const { return {plan_, registry_, instance}; }

    std::vector<Piece> split() {
        std::vector<Piece> pieces;
        for (const Instance& instance : plan_.instances) {
            if (instance.storage == 0 || instance.place == Place::kLoading || (in_file(instance) && !read_in_mapped_))
                continue;
            const Storage& weight = storage(instance);
            if (weight.role != TSR_ROLE_WEIGHT || weight.derived) continue;
            uint64_t at_once = kLoadingPiece;
            if (!holds_source_bytes(plan_, instance)) {
                const Packing pack = packing(instance);
                at_once = pack.groups_of(plan_.loading.piece) * pack.canonical_bytes;
            }
            for (uint64_t offset = 0; offset < weight.bytes; offset += at_once)
                pieces.push_back({&instance, offset, std::min(at_once, weight.bytes - offset)});
            total_ += weight.bytes;
        }
        return pieces;
    }

    // Device queues belong to one thread, so the caller packs what goes to devices and puts copies under way; all
    // workers load the rest.
    void load(const std::vector<Piece>& pieces) {
        upload_as_they_are(pieces);
        for (const Piece& piece : pieces) {
            if (piece.instance->device == 0 || is_upload(piece)) continue;
            load(piece, buffers_.data());
            done_ += piece.bytes;
            report();
        }
        each_on_team(team_, static_cast<uint32_t>(buffers_.size() / plan_.loading.piece), pieces.size(),
                     [&](uint32_t worker, size_t i) {
                         if (pieces[i].instance->device != 0) return;
                         load(pieces[i], buffers_.data() + worker * plan_.loading.piece);
                         done_ += pieces[i].bytes;
                         if (worker == 0) report();
                     });
    }

    bool is_upload(const Piece& piece) const {
        return piece.instance->device != 0 && holds_source_bytes(plan_, *piece.instance);
    }

    void upload_as_they_are(const std::vector<Piece>& pieces) {
        std::vector<DeviceUpload> uploads;
        for (const Piece& piece : pieces) {
            if (!is_upload(piece)) continue;
            uploads.push_back({&storage(*piece.instance).name, piece.instance->device, piece.offset, piece.bytes,
                               static_cast<std::byte*>(memory_.address(*piece.instance)) + piece.offset});
        }
        if (uploads.empty()) return;
        const auto count = static_cast<uint32_t>(buffers_.size() / plan_.loading.piece);
        DeviceUploads(memory_, source_, team_, {buffers_.data(), count * plan_.loading.piece}, count)
            .run(uploads, [&](uint64_t bytes) {
                done_ += bytes;
                report();
            });
    }

    // Pages that two pieces share.
    void release_shared_pages() const {
        for (const Instance& instance : plan_.instances) {
            if (instance.storage == 0 || in_file(instance) || instance.place == Place::kLoading) continue;
            const Storage& weight = storage(instance);
            if (weight.role == TSR_ROLE_WEIGHT && !weight.derived) source_.release(weight.name, 0, weight.bytes);
        }
    }

    // Kernels read it in the mapped file, always or until it is packed.
    static bool in_file(const Instance& instance) {
        return instance.place == Place::kMapped || instance.place == Place::kDeferred;
    }

    void load(const Piece& piece, std::byte* buffer) {
        const Instance& instance = *piece.instance;
        const Storage& weight = storage(instance);
        if (in_file(instance)) {
            source_.acquire(weight.name, piece.offset, piece.bytes);
        } else if (holds_source_bytes(plan_, instance)) {
            source_.read(weight.name, piece.offset,
                         {static_cast<std::byte*>(memory_.address(instance)) + piece.offset, piece.bytes});
        } else {
            const Packing pack = packing(instance);
            fetch_groups(source_, registry_, weight, pack, piece.offset / pack.canonical_bytes,
                         piece.bytes / pack.canonical_bytes, {buffer, plan_.loading.piece},
                         [&](uint64_t group, std::span<const std::byte> rows) { put(instance, pack, group, rows); });
        }
    }

    // Stores canonical rows, whole groups of them, in the layout and on the device of the instance.
    void put(const Instance& instance, const Packing& pack, uint64_t first_group, std::span<const std::byte> rows) {
        std::byte* target = static_cast<std::byte*>(memory_.address(instance)) + first_group * pack.packed_bytes;
        OpenDevice* device = memory_.device(instance.device);
        if (!device) {
            if (pack.layout) {
                pack.pack(rows, target);
            } else {
                std::ranges::copy(rows, target);
            }
            return;
        }
        // Init nodes give whole weights.
        const uint64_t at_once = pack.groups_of(plan_.loading.piece) * pack.canonical_bytes;
        for_weight(storage(instance).name, [&] {
            for (uint64_t at = 0; at < rows.size(); at += at_once) {
                const auto part = rows.subspan(at, std::min(at_once, rows.size() - at));
                std::byte* to = target + at / pack.canonical_bytes * pack.packed_bytes;
                switch (pack.on) {
                    case PackedOn::kNowhere:
                        device->upload_now(to, part);
                        break;
                    case PackedOn::kHost:
                        device->upload_now(to, pack_for_device(pack, part));
                        break;
                    case PackedOn::kDevice:
                        device->pack_now(pack, to, memory_.packing(instance.device), part);
                        break;
                }
            }
        });
    }

    // Packs with the whole team into the memory that is there for it.
    std::span<const std::byte> pack_for_device(const Packing& pack, std::span<const std::byte> rows) {
        constexpr uint64_t kPiece = 128 << 10;
        std::byte* packed = buffers_.data() + buffers_.size() - plan_.loading.packed;
        const uint64_t groups = rows.size() / pack.canonical_bytes, at_once = pack.groups_of(kPiece);
        each_on_team(team_, 0, (groups + at_once - 1) / at_once, [&](uint32_t, size_t i) {
            const uint64_t first = i * at_once, count = std::min(at_once, groups - first);
            pack.pack(rows.subspan(first * pack.canonical_bytes, count * pack.canonical_bytes),
                      packed + first * pack.packed_bytes);
        });
        return {packed, groups * pack.packed_bytes};
    }

    void run_init_nodes(bool on_devices) {
        for (const PlannedNode& node : plan_.init_nodes) {
            if ((node.device != 0) != on_devices) continue;
            if (on_devices) {
                init_.run_on_device(node);
            } else {
                init_.run_on_host(node, [&](const Instance& instance, std::span<const std::byte> rows) {
                    put(instance, packing(instance), 0, rows);
                });
            }
            done_ += init_.bytes(node);
            report();
        }
    }

    void report() {
        const auto now = std::chrono::steady_clock::now();
        if (!progress_ || now - reported_ < kProgressInterval) return;
        reported_ = now;
        progress_(done_, total_);
    }

    const Plan& plan_;
    const Registry& registry_;
    PlanMemory& memory_;
    const WeightSource& source_;
    Team& team_;
    const LoadProgress& progress_;
    bool read_in_mapped_;  // there is memory for all of them: read now rather than during a prompt
    HostBlock buffers_;
    InitRunner init_;
    std::atomic<uint64_t> done_{0};
    uint64_t total_ = 0;
    std::chrono::steady_clock::time_point reported_{};
};

}  // namespace

void read_rows(const WeightSource& source, const Registry& registry, const Storage& weight, uint64_t offset,
               std::span<std::byte> to, std::span<std::byte> scratch) {
    if (weight.source_layout.empty()) {
        source.read(weight.name, offset, to);
        return;
    }
    const tsr_layout* layout = registry.find_layout(weight.source_layout);
    if (!layout || !layout->unpack) {
        fail(TSR_UNSUPPORTED, Notice(fmt::format("{}: the file holds {} rows in layout {}, which no loaded plugin can "
                                                 "unpack, and plugins are not used",
                                                 weight.name, type_info(weight.type).name, weight.source_layout),
                                     {{AdviceCode::kSeeWhyNotUsed, ""}}));
    }
    const uint64_t row = row_bytes(weight.type, weight.row_elements), group = row * layout->group_rows;
    const uint64_t end = offset + to.size(), half = scratch.size() / 2;
    if (half < group) {
        fail(TSR_INTERNAL, "{}: {} bytes to unpack groups of {} bytes", weight.name, scratch.size(), group);
    }
    for (uint64_t first = offset / group * group; first < end;) {
        const uint64_t bytes = std::min(half, end - first + group - 1) / group * group;
        const std::span packed = scratch.first(bytes), rows = scratch.subspan(half, bytes);
        source.read(weight.name, first, packed);
        call_plugin(registry.call(*layout, "unpack"), [&] {
            layout->unpack(layout, static_cast<int64_t>(weight.row_elements), static_cast<int64_t>(bytes / group),
                           packed.data(), rows.data());
        });
        const uint64_t from = std::max(first, offset), until = std::min(first + bytes, end);
        std::ranges::copy(rows.subspan(from - first, until - from), to.begin() + static_cast<ptrdiff_t>(from - offset));
        first += bytes;
    }
}

void load_weights(const Plan& plan, const Registry& registry, PlanMemory& memory, const WeightSource& source,
                  Team& team, const LoadProgress& progress) {
    Loader(plan, registry, memory, source, team, progress).run();
}

}  // namespace tessera
