#include "core/setup/model_check.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/graph/types.hpp"
#include "core/model/model.hpp"
#include "core/run/loader.hpp"

#include <tessera/formats/formats.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>

namespace tessera {
namespace {

// Bytes that a thread reads at a time, if a group of rows has no more.
constexpr uint64_t kAtOnce = 1 << 20;

class TensorBytes : public WeightSource {
  public:
    explicit TensorBytes(const gguf::GgufFile& file) : file_(file) {}
    void read(const std::string& name, uint64_t offset, std::span<std::byte> to) const override {
        file_.read(file_.tensor(name), offset, to);
    }
    const std::byte* mapped(const std::string&) const override { return nullptr; }

  private:
    const gguf::GgufFile& file_;
};

// Rows [first, first + count) of a tensor, and what is wrong with them.
struct Piece {
    const gguf::TensorEntry* tensor;
    uint64_t first, count;
    BadValues bad;  // rows: 0 if nothing is
};

class Checker {
  public:
    Checker(const gguf::GgufFile& file, const Registry& registry, ValuesReport& report)
        : registry_(registry), source_(file), report_(report) {
        for (const gguf::TensorEntry& tensor : file.tensors()) {
            if (can_read(tensor)) add(tensor);
        }
    }

    void run(uint32_t threads, const std::function<void(uint64_t, uint64_t)>& progress) {
        using namespace std::chrono_literals;
        uint64_t total = 0;
        for (const Piece& piece : pieces_) total += piece.count * piece.tensor->bytes_per_row();
        std::atomic<uint32_t> working{std::max(threads, 1u)};
        {
            std::vector<std::jthread> team;
            for (uint32_t i = working; i > 0; --i) {
                team.emplace_back([&] {
                    work();
                    --working;
                });
            }
            try {
                while (working > 0) {
                    if (progress) progress(done_, total);
                    std::this_thread::sleep_for(20ms);
                }
            } catch (...) {
                next_ = pieces_.size();
                throw;
            }
        }
        if (failure_) std::rethrow_exception(failure_);
        if (progress) progress(total, total);
        for (const Piece& piece : pieces_) {
            if (piece.bad.rows == 0) continue;
            if (report_.bad.empty() || report_.bad.back().tensor != piece.tensor->name) {
                report_.bad.push_back(piece.bad);
            } else {
                report_.bad.back().rows += piece.bad.rows;
            }
        }
    }

  private:
    bool can_read(const gguf::TensorEntry& tensor) {
        const TypeInfo& type = type_info(tensor.type);
        if (tensor.type >= TSR_TYPE_I8 && tensor.type <= TSR_TYPE_I64) return false;  // any bits are numbers
        const bool interleaved = type.interleaved_rows > 1;
        const tsr_layout* layout = interleaved ? registry_.find_layout(type.name) : nullptr;
        if (formats::can_decode(type.rows_type) && (!interleaved || (layout && layout->unpack))) return true;
        report_.unreadable.push_back(tensor.name);
        return false;
    }

    void add(const gguf::TensorEntry& tensor) {
        const TypeInfo& type = type_info(tensor.type);
        const uint64_t group = type.interleaved_rows;
        const uint64_t at_once = std::max<uint64_t>(kAtOnce / tensor.bytes_per_row() / group, 1) * group;
        for (uint64_t row = 0; row < tensor.rows(); row += at_once)
            pieces_.push_back({&tensor, row, std::min(at_once, tensor.rows() - row), {}});
    }

    void work() {
        std::vector<std::byte> rows, scratch;
        std::vector<float> values;
        try {
            for (size_t i; (i = next_++) < pieces_.size();) check(pieces_[i], rows, scratch, values);
        } catch (...) {
            const std::lock_guard lock(mutex_);
            if (!failure_) failure_ = std::current_exception();
            next_ = pieces_.size();
        }
    }

    void check(Piece& piece, std::vector<std::byte>& rows, std::vector<std::byte>& scratch,
               std::vector<float>& values) {
        const gguf::TensorEntry& tensor = *piece.tensor;
        const TypeInfo& type = type_info(tensor.type);
        const uint64_t row_size = tensor.bytes_per_row();
        Storage weight;
        weight.name = tensor.name;
        weight.role = TSR_ROLE_WEIGHT;
        weight.type = type.rows_type;
        weight.row_elements = tensor.dims[0];
        weight.bytes = tensor.bytes;
        if (type.interleaved_rows > 1) weight.source_layout = type.name;
        rows.resize(piece.count * row_size);
        scratch.resize(weight.source_layout.empty() ? 0 : 2 * rows.size());
        read_rows(source_, registry_, weight, piece.first * row_size, rows, scratch);
        values.resize(tensor.dims[0]);
        for (uint64_t row = 0; row < piece.count; ++row) {
            formats::decode_row(type.rows_type, rows.data() + row * row_size, values.size(), values.data());
            const auto bad = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
            if (bad == values.end()) continue;
            if (piece.bad.rows++ == 0) {
                piece.bad.tensor = tensor.name;
                piece.bad.row = piece.first + row;
                piece.bad.column = static_cast<uint64_t>(bad - values.begin());
                piece.bad.value = *bad;
            }
        }
        done_ += piece.count * row_size;
    }

    const Registry& registry_;
    const TensorBytes source_;
    ValuesReport& report_;
    std::vector<Piece> pieces_;
    std::atomic<size_t> next_{0};
    std::atomic<uint64_t> done_{0};
    std::mutex mutex_;
    std::exception_ptr failure_;
};

// Bytes at the end of a tensor that are zeros; of more than `most` some.
uint64_t zeros_at_end(const gguf::GgufFile& file, const gguf::TensorEntry& tensor, uint64_t most) {
    std::vector<std::byte> some;
    uint64_t zeros = 0;
    while (zeros < tensor.bytes && zeros <= most) {
        // A small read first: nearly all tensors end otherwise.
        some.resize(std::min<uint64_t>(zeros == 0 ? 4096 : kAtOnce, tensor.bytes - zeros));
        file.read(tensor, tensor.bytes - zeros - some.size(), some);
        const auto last = std::find_if(some.rbegin(), some.rend(), [](std::byte b) { return b != std::byte{0}; });
        zeros += static_cast<uint64_t>(last - some.rbegin());
        if (last != some.rend()) break;
    }
    return zeros;
}

// Whether no model has so many zeros at the end of this tensor.
bool is_no_model(const gguf::TensorEntry& tensor, uint64_t zeros) {
    constexpr uint64_t kFew = 4096;
    if (tensor.rows() < 2 || zeros < kFew) return false;
    const bool is_vocabulary = tensor.name == "output.weight" || tensor.name.find("token_embd") != std::string::npos;
    return !is_vocabulary || zeros > tensor.bytes / 2;
}

}  // namespace

std::string zero_tail_text(const gguf::GgufFile& file, uint64_t most) {
    for (uint32_t shard = 0; shard < file.file_count(); ++shard) {
        std::vector<const gguf::TensorEntry*> order;
        for (const gguf::TensorEntry& tensor : file.tensors()) {
            if (tensor.file == shard) order.push_back(&tensor);
        }
        std::ranges::sort(order, std::greater(), &gguf::TensorEntry::offset);
        uint64_t zeros = 0;
        bool counts = false;
        for (const gguf::TensorEntry* tensor : order) {
            const uint64_t tail = zeros_at_end(file, *tensor, most - std::min(most, zeros));
            zeros += tail;
            counts = counts || is_no_model(*tensor, tail);
            if (tail < tensor->bytes || zeros >= most) break;
        }
        if (!counts) continue;
        return fmt::format(
            "{}: the last {}{} of its tensors are zeros: the download is not complete, or the file is "
            "damaged; download it again",
            printable(file.file_path(shard).native(), 4096), zeros < most ? "" : "more than ",
            size_text(std::min(zeros, most)));
    }
    return {};
}

std::vector<std::string> file_notes(const gguf::GgufFile& file, const Registry& registry, bool allow_unused) {
    GraphLimits limits;
    limits.allow_unused = allow_unused;
    return build_model(file, registry, limits).notes;
}

std::string bad_values_text(const BadValues& bad, const gguf::GgufFile& file) {
    const uint64_t rows = file.tensor(bad.tensor).dims[1];
    const bool stack = file.tensor(bad.tensor).rows() > rows;
    const std::string where =
        stack ? fmt::format("row {} of matrix {}", bad.row % rows, bad.row / rows) : fmt::format("row {}", bad.row);
    return fmt::format("{}: element {} of {} is {}{}", bad.tensor, bad.column, where, bad.value,
                       bad.rows > 1 ? fmt::format(" ({} rows have such values)", bad.rows) : "");
}

ValuesReport check_values(const gguf::GgufFile& file, const Registry& registry, uint32_t threads,
                          const std::function<void(uint64_t done, uint64_t total)>& progress) {
    ValuesReport report;
    report.zero_tail = zero_tail_text(file, std::numeric_limits<uint64_t>::max());
    Checker(file, registry, report).run(threads, progress);
    return report;
}

std::string unreadable_text(const std::string& tensor) {
    return fmt::format("{}: not checked, neither the program nor a plugin reads its type", tensor);
}

std::vector<std::string> require_values(const gguf::GgufFile& file, const Registry& registry, uint32_t threads) {
    const ValuesReport report = check_values(file, registry, threads);
    if (!report.zero_tail.empty()) fail(TSR_CORRUPT_DATA, "{}", report.zero_tail);
    if (report.bad.empty()) {
        std::vector<std::string> lines;
        for (const std::string& tensor : report.unreadable) lines.push_back(unreadable_text(tensor));
        return lines;
    }
    const std::string more =
        report.bad.size() > 1 ? fmt::format(", and {} more are broken", counted(report.bad.size() - 1, "tensor")) : "";
    fail(TSR_CORRUPT_DATA,
         Notice(fmt::format("{}: {}{}", file.metadata().source(), bad_values_text(report.bad.front(), file), more),
                {{AdviceCode::kCheckFile, ""}}));
}

}  // namespace tessera
