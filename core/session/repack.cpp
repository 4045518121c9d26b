#include "core/session/repack.hpp"

#include "core/base/error.hpp"
#include "core/base/output_file.hpp"
#include "core/base/text.hpp"
#include "core/gguf/writer.hpp"
#include "core/graph/types.hpp"
#include "core/run/fetch_groups.hpp"
#include "core/session/file_weights.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <vector>

namespace tessera {
namespace {

// Bytes that are read, packed and written at a time.
constexpr uint64_t kAtOnce = 4 << 20;

// How one tensor is written.
struct Job {
    const gguf::TensorEntry* tensor;
    const Storage* storage = nullptr;  // of the plan; null: nothing reads it on the CPU
    std::optional<Packing> packing;    // none: it stays as it is
    tsr_type type;
};

class Repacker {
  public:
    Repacker(const gguf::GgufFile& file, const Plan& plan, const Registry& registry)
        : file_(file), plan_(plan), registry_(registry), source_(file, plan.graph, true) {
        std::unordered_map<std::string_view, StorageId> storages;
        for (StorageId id = 1; id < plan.graph.storage_count(); ++id) {
            const Storage& storage = plan.graph.storage(id);
            if (storage.role == TSR_ROLE_WEIGHT && !storage.derived && !storage.source_rows)
                storages.emplace(storage.name, id);
        }
        for (const gguf::TensorEntry& tensor : file.tensors()) {
            Job job{&tensor, nullptr, std::nullopt, tensor.type};
            if (const auto at = storages.find(tensor.name); at != storages.end()) choose(job, at->second);
            jobs_.push_back(job);
        }
    }

    RepackedFile write(const std::filesystem::path& to, const LoadProgress& progress, const std::atomic<bool>& stop) {
        gguf::Writer writer(to);
        for (const auto& [key, value] : file_.metadata().entries()) {
            if (!key.starts_with("split.")) writer.add(key, value);
        }
        uint64_t total = 0;
        RepackedFile result;
        for (const Job& job : jobs_) {
            writer.add_tensor(job.tensor->name, job.type, std::span(job.tensor->dims).first(job.tensor->rank));
            total += job.tensor->bytes;
            ++result.tensors[std::string(type_info(job.type).name)];
        }
        for (const Job& job : jobs_) {
            each_range(job, [&](uint64_t offset, uint64_t bytes) {
                if (stop.load()) fail(TSR_CANCELLED, "stopped; nothing was written");
                writer.write(bytes_of(job, offset, bytes));
                result.bytes += bytes;
                if (progress) progress(result.bytes, total);
            });
        }
        writer.finish();
        return result;
    }

  private:
    void choose(Job& job, StorageId id) const {
        const Instance* only = nullptr;
        for (const Instance& instance : plan_.instances) {
            if (instance.storage != id) continue;
            if (instance.device != 0 || instance.place == Place::kLoading || only) return;
            only = &instance;
        }
        if (!only || only->layout.empty()) return;
        job.storage = &plan_.graph.storage(id);
        const TypeInfo* type = find_type(only->layout);
        const Packing packing(plan_, registry_, *only);
        if (!type || type->id == job.tensor->type || type->rows_type != job.storage->type || !packing.layout) return;
        if (packing.packed_bytes != packing.canonical_bytes) return;
        job.packing = packing;
        job.type = type->id;
    }

    // Calls body(offset, bytes) for neighbouring ranges, whole groups of rows if they are packed.
    template <typename Body>
    void each_range(const Job& job, Body&& body) const {
        const uint64_t step = job.packing ? job.packing->groups_of(kAtOnce) * job.packing->canonical_bytes : kAtOnce;
        for (uint64_t at = 0; at < job.tensor->bytes; at += step) body(at, std::min(step, job.tensor->bytes - at));
    }

    std::span<const std::byte> bytes_of(const Job& job, uint64_t offset, uint64_t bytes) {
        if (!job.packing) {
            rows_.resize(bytes);
            file_.read(*job.tensor, offset, rows_);
            return rows_;
        }
        const Packing& packing = *job.packing;
        rows_.resize(bytes + unpacking_bytes(*job.storage, registry_));
        const uint64_t first = offset / packing.canonical_bytes;
        packed_.resize(bytes);
        fetch_groups(source_, registry_, *job.storage, packing, first, bytes / packing.canonical_bytes, rows_,
                     [&](uint64_t group, std::span<const std::byte> rows) {
                         packing.pack(rows, packed_.data() + (group - first) * packing.packed_bytes);
                     });
        return packed_;
    }

    const gguf::GgufFile& file_;
    const Plan& plan_;
    const Registry& registry_;
    const FileWeights source_;
    std::vector<Job> jobs_;
    std::vector<std::byte> rows_, packed_;
};

void check_target(const gguf::GgufFile& file, const std::filesystem::path& to) {
    const OutputPlace place = output_place(to);
    std::error_code unused;
    for (size_t i = 0; i < file.file_count(); ++i) {
        if (std::filesystem::equivalent(file.file_path(i), place.path, unused)) {
            fail(TSR_INVALID_ARGUMENT, "{}: is the model itself; give another name for the copy",
                 printable(to.native(), 4096));
        }
    }
    if (place.stream) return;
    const auto space = std::filesystem::space(place.path.parent_path(), unused);
    if (!unused && space.available < file.file_bytes()) {
        fail(TSR_DOES_NOT_FIT, "{}: the copy takes {}, the disk has {} left", printable(to.native(), 4096),
             mebibytes(file.file_bytes()), mebibytes(space.available));
    }
}

}  // namespace

RepackedFile repack(const gguf::GgufFile& file, const Plan& plan, const Registry& registry,
                    const std::filesystem::path& to, const LoadProgress& progress, const std::atomic<bool>& stop) {
    check_target(file, to);
    return Repacker(file, plan, registry).write(to, progress, stop);
}

}  // namespace tessera
