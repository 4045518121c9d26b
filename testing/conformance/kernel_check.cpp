#include "kernel_check.hpp"

#include "memory.hpp"
#include "random_rows.hpp"
#include "workers.hpp"
#include "wrong.hpp"

#include <tessera/cpp/float_state.hpp>
#include <tessera/cpp/plan_fault.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>

namespace tessera::conformance {
namespace {

constexpr uint32_t kTeams[] = {1, 2, 3, 8};
// No case needs more; a workspace of this size is not given.
constexpr uint64_t kMaxTestWorkspace = uint64_t{1} << 31;

std::string operand_name(const Case& of, size_t index) {
    const Operand& operand = of.operand(index);
    const bool input = index < of.inputs();
    return (input ? "input " + std::to_string(index) : "output " + std::to_string(index - of.inputs())) + " (" +
           operand.name + ")";
}

void take_status(const tsr_status* status, const char* function) {
    if (status) wrong(std::string(function) + " failed: " + text_of(status));
}

// Storage of every operand of a case, in guarded memory; constants cannot be written.
class Storage {
  public:
    Storage(const Case& of, const std::vector<const tsr_layout*>& layouts) : case_(of), layouts_(layouts) {
        for (size_t i = 0; i < of.operands(); ++i) {
            const Operand& operand = of.operand(i);
            if (operand.tensor.type == TSR_TYPE_NONE || operand.shares_input >= 0) {
                buffers_.push_back(nullptr);
                initial_.emplace_back();
            } else {
                initial_.push_back(packed(operand, layouts[i]));
                buffers_.push_back(std::make_unique<GuardedBuffer>(operand_name(of, i), initial_.back().size()));
            }
        }
        for (size_t i = 0; i < of.operands(); ++i) {
            const int shared = of.operand(i).shares_input;
            GuardedBuffer* buffer = buffers_[shared >= 0 ? static_cast<size_t>(shared) : i].get();
            data_.push_back(buffer ? buffer->data() : nullptr);
            if (shared >= 0) written_.insert(static_cast<size_t>(shared));
            if (of.operand(i).is_output && shared < 0) written_.insert(i);
        }
    }

    // As before the first run.
    void reset() {
        for (size_t i = 0; i < buffers_.size(); ++i) {
            if (!buffers_[i]) continue;
            buffers_[i]->protect(false);
            std::ranges::copy(initial_[i], buffers_[i]->data());
            if (!written_.contains(i)) buffers_[i]->protect(true);
        }
    }
    // In the canonical layout.
    Result result() const {
        Result result;
        for (size_t i = 0; i < case_.operands(); ++i) {
            const auto* from = static_cast<const std::byte*>(data_[i]);
            if (!from) {
                result.emplace_back();
            } else if (layouts_[i]) {
                result.push_back(unpacked(case_.operand(i), layouts_[i], from));
            } else {
                result.emplace_back(from, from + case_.operand(i).bytes.size());
            }
        }
        return result;
    }
    void check_margins() const {
        for (const auto& buffer : buffers_) {
            if (buffer) buffer->check_margins();
        }
    }
    void* const* data() const { return data_.data(); }

  private:
    const Case& case_;
    std::vector<const tsr_layout*> layouts_;
    std::vector<std::unique_ptr<GuardedBuffer>> buffers_;
    std::vector<std::vector<std::byte>> initial_;
    std::vector<void*> data_;
    std::set<size_t> written_;
};

// Calls a function other than run, which must leave the thread as it was.
template <typename Function>
void call(const char* name, Function&& function) {
    const sdk::FloatState before = sdk::FloatState::of_this_thread();
    take_status(function(), name);
    const sdk::FloatState after = sdk::FloatState::of_this_thread();
    if (after == before) return;
    before.restore();
    wrong(std::string(name) + " leaves its thread computing differently: " + before.difference(after));
}

tsr_kernel_plan ask(const tsr_kernel& kernel, const tsr_node& node, const tsr_device_info& info) {
    tsr_kernel_plan plan{};
    plan.struct_size = sizeof plan;
    call("plan", [&] { return kernel.plan(&kernel, &node, &info, &plan); });
    return plan;
}

// A kernel that was prepared for a node.
class Prepared {
  public:
    Prepared(const tsr_kernel& kernel, const tsr_node& node, const tsr_device_info& info) : kernel_(kernel) {
        call("prepare", [&] { return kernel.prepare(&kernel, &node, &info, nullptr, &state_); });
    }
    ~Prepared() { kernel_.release(&kernel_, state_); }
    Prepared(const Prepared&) = delete;
    Prepared& operator=(const Prepared&) = delete;
    void* state() const { return state_; }

  private:
    const tsr_kernel& kernel_;
    void* state_ = nullptr;
};

// Names that an operand may have: "" first if nothing else.
std::vector<std::string> names_of(const char* const* list) {
    std::vector<std::string> names;
    for (uint32_t i = 0; list && list[i] && i < sdk::kMaxLayouts; ++i) names.emplace_back(list[i]);
    if (names.empty()) names.emplace_back();
    return names;
}

bool can_pack(const Operand& operand, const tsr_layout& layout, std::string_view interop) {
    return (layout.pack || sdk::packs_on_device(layout, interop)) && operand.is_dense() &&
           layout.type == operand.tensor.type && operand.rows() % layout.group_rows == 0 &&
           operand.tensor.dims[0] % layout.elements_multiple == 0;
}

std::string ranges_text(const Ranges& ranges) {
    const tsr_range& rows = ranges[TSR_RANGE_GENERATION_ROWS];
    return "rows " + std::to_string(rows.begin) + " to " + std::to_string(rows.end);
}

tsr_run arguments(const Storage& storage, const Ranges& ranges, GuardedBuffer& workspace) {
    tsr_run run{};
    run.struct_size = sizeof run;
    run.data = storage.data();
    run.ranges = ranges.data();
    run.workspace = workspace.data();
    return run;
}

bool is_float_like(tsr_type type) {
    return formats::can_decode(type);
}

std::vector<bool> written_rows(const Case& of, size_t index, const Ranges& ranges) {
    const Operand& operand = of.operand(index);
    if (of.written_rows && index == of.inputs()) return of.written_rows(ranges);
    std::vector<bool> written(operand.rows(), true);
    if (operand.tensor.range == TSR_RANGE_FIXED) return written;
    // A rank of one has one row whose elements are bounded; no case has outputs like that.
    const size_t slowest = static_cast<size_t>(operand.tensor.dims[operand.tensor.rank - 1]);
    const size_t inner = operand.rows() / slowest;
    const tsr_range& range = ranges[static_cast<size_t>(operand.tensor.range)];
    for (size_t r = 0; r < written.size(); ++r) {
        const auto at = static_cast<int32_t>(r / inner);
        written[r] = at >= range.begin && at < range.end;
    }
    return written;
}

}  // namespace

const tsr_layout* find_layout(const Setting& setting, const char* name, std::string_view interop) {
    for (const tsr_plugin* plugin : {setting.plugin, setting.reference}) {
        for (uint32_t i = 0; i < plugin->layout_count; ++i) {
            const tsr_layout& layout = *plugin->layouts[i];
            if (std::strcmp(layout.name, name) == 0 && (interop.empty() || sdk::packs_on_device(layout, interop)))
                return &layout;
        }
    }
    return nullptr;
}

std::vector<Layouts> layout_choices(const Setting& setting, const Case& of, const tsr_kernel_plan& plan,
                                    std::string_view interop) {
    std::vector<Layouts> possible;
    size_t most = 1;
    for (size_t i = 0; i < of.operands(); ++i) {
        Layouts of_operand;
        if (of.operand(i).tensor.type != TSR_TYPE_NONE) {
            for (const std::string& name : names_of(plan.layouts[i])) {
                const tsr_layout* layout = name.empty() ? nullptr : find_layout(setting, name.c_str(), interop);
                if (!layout && !name.empty()) layout = find_layout(setting, name.c_str());
                // What a kernel wrote is compared with canonical rows.
                if (layout && i >= of.inputs() && !layout->unpack && !layout->enqueue_unpack) continue;
                if (name.empty() || can_pack(of.operand(i), *layout, interop)) of_operand.push_back(layout);
            }
            if (of_operand.empty()) return {};  // it takes none that these rows can have
        } else {
            of_operand.push_back(nullptr);
        }
        most = std::max(most, of_operand.size());
        possible.push_back(std::move(of_operand));
    }
    std::vector<Layouts> all;
    for (size_t c = 0; c < most; ++c) {
        Layouts one;
        for (const auto& of_operand : possible) one.push_back(of_operand[std::min(c, of_operand.size() - 1)]);
        all.push_back(std::move(one));
    }
    return all;
}

std::string layout_text(const Layouts& layouts) {
    std::string text;
    for (const tsr_layout* layout : layouts) {
        if (layout && text.find(layout->name) == std::string::npos)
            text += (text.empty() ? "" : ", ") + std::string(layout->name);
    }
    return text.empty() ? "canonical layouts" : "layout " + text;
}

const tsr_kernel* reference_kernel(const Setting& setting, const std::string& op) {
    for (uint32_t i = 0; i < setting.reference->kernel_count; ++i) {
        const tsr_kernel* kernel = setting.reference->kernels[i];
        if (op == kernel->op && std::strcmp(kernel->device_kind, "cpu") == 0) return kernel;
    }
    return nullptr;
}

std::vector<std::byte> packed(const Operand& operand, const tsr_layout* layout) {
    if (!layout) return operand.bytes;
    const auto groups = static_cast<int64_t>(operand.rows() / layout->group_rows);
    const uint64_t bytes = layout->group_bytes(layout, operand.tensor.dims[0]) * static_cast<uint64_t>(groups);
    if (bytes == 0 || bytes > kMaxTestWorkspace)
        wrong(std::string("layout ") + layout->name + ": group_bytes gives " + std::to_string(bytes) +
              " bytes for all groups");
    GuardedBuffer from("the canonical rows of " + operand.name, operand.bytes.size()),
        to("the packed rows of " + operand.name, bytes);
    std::ranges::copy(operand.bytes, from.data());
    from.protect(true);
    layout->pack(layout, operand.tensor.dims[0], groups, from.data(), to.data());
    to.check_margins();
    return {to.data(), to.data() + bytes};
}

std::vector<std::byte> unpacked(const Operand& operand, const tsr_layout* layout, const std::byte* from) {
    if (!layout->unpack) return {};
    std::vector<std::byte> rows(operand.bytes.size());
    layout->unpack(layout, operand.tensor.dims[0], static_cast<int64_t>(operand.rows() / layout->group_rows), from,
                   rows.data());
    return rows;
}

std::string kernel_plan_fault(const Setting& setting, const tsr_kernel_plan& plan, const tsr_node& node,
                              std::string_view interop) {
    const auto find = [&](const char* name, std::string_view packs_on) { return find_layout(setting, name, packs_on); };
    const auto group_bytes = [](const tsr_layout& layout, int64_t elements) {
        return layout.group_bytes(&layout, elements);
    };
    if (const std::string why = sdk::plan_fault(plan, node, interop, find, group_bytes); !why.empty())
        return "plan: " + why;
    if (!plan.supported) return plan.reason[0] ? "" : "plan: it refuses the node without a reason";
    return {};
}

std::vector<Result> run_reference(const Setting& setting, const Case& of, std::string& why) {
    const tsr_kernel* kernel = reference_kernel(setting, of.op());
    if (!kernel) {
        why = "the reference has no kernel for this op";
        return {};
    }
    const CaseNode node(of);
    const tsr_kernel_plan plan = ask(*kernel, node.node(), *setting.cpu);
    if (!plan.supported) {
        why = std::string("the reference refuses it: ") + plan.reason;
        return {};
    }
    const Prepared prepared(*kernel, node.node(), *setting.cpu);
    Storage storage(of, std::vector<const tsr_layout*>(of.operands()));
    GuardedBuffer workspace("the workspace of the reference", plan.workspace_bytes);
    std::vector<Result> results;
    for (const Ranges& ranges : of.ranges) {
        storage.reset();
        Workers(1).run(*kernel, prepared.state(), arguments(storage, ranges, workspace), false);
        results.push_back(storage.result());
    }
    return results;
}

void check_untouched(const Case& of, const Ranges& ranges, const Result& got) {
    for (size_t i = of.inputs(); i < of.operands(); ++i) {
        const Operand& operand = of.operand(i);
        if (got[i].empty()) continue;  // its layout cannot be unpacked
        const std::vector<bool> written = written_rows(of, i, ranges);
        std::vector<bool> mine(got[i].size());
        for (size_t r = 0; r < written.size(); ++r) {
            if (!written[r]) continue;
            const auto begin = static_cast<size_t>(operand.row(got[i].data(), r) - got[i].data());
            std::fill_n(mine.begin() + static_cast<ptrdiff_t>(begin), operand.row_bytes(), true);
        }
        for (size_t b = 0; b < mine.size(); ++b) {
            if (mine[b] || got[i][b] == operand.bytes[b]) continue;
            wrong("it writes byte " + std::to_string(b) + " of " + operand_name(of, i) + ", which is not of its rows");
        }
    }
}

void compare(const Case& of, const Ranges& ranges, const Result& got, const Result& wanted) {
    for (size_t i = of.inputs(); i < of.operands(); ++i) {
        const Operand& operand = of.operand(i);
        if (got[i].empty()) continue;
        const std::vector<bool> written = written_rows(of, i, ranges);
        const auto elements = static_cast<size_t>(operand.tensor.dims[0]);
        std::vector<float> a(elements), b(elements);
        double difference = 0, norm = 0, worst = 0;
        size_t rows = 0, worst_row = 0;
        for (size_t r = 0; r < written.size(); ++r) {
            if (!written[r]) continue;
            const std::byte *is = operand.row(got[i].data(), r), *should = operand.row(wanted[i].data(), r);
            if (!is_float_like(operand.tensor.type)) {
                if (std::memcmp(is, should, operand.row_bytes()) != 0)
                    wrong(operand_name(of, i) + ", row " + std::to_string(r) + ": not what the reference gives");
                continue;
            }
            formats::decode_row(operand.tensor.type, is, elements, a.data());
            formats::decode_row(operand.tensor.type, should, elements, b.data());
            double d = 0, n = 0;  // of what is finite
            for (size_t e = 0; e < elements; ++e) {
                if (std::isfinite(a[e]) && std::isfinite(b[e])) {
                    d += (double(a[e]) - b[e]) * (double(a[e]) - b[e]);
                    n += double(b[e]) * b[e];
                }
                if (std::isfinite(a[e]) == std::isfinite(b[e])) continue;
                wrong(operand_name(of, i) + ", row " + std::to_string(r) + ", element " + std::to_string(e) +
                      ": it gives " + std::to_string(a[e]) +
                      (std::isfinite(b[e]) ? " (not written?)" : " (a NaN of the input is lost?)") +
                      ", the reference " + std::to_string(b[e]));
            }
            difference += d;
            norm += n;
            ++rows;
            if (d > worst) {
                worst = d;
                worst_row = r;
            }
        }
        if (rows == 0) continue;
        const double mean = norm / static_cast<double>(rows);
        const double error = std::sqrt(difference / std::max(norm, 1e-30));
        // One wrong row of many must not hide in the norm of all.
        const double row_error = std::sqrt(worst / std::max(mean, 1e-30));
        if (error <= of.tolerance && row_error <= 4 * of.tolerance) continue;
        char text[200];
        std::snprintf(text, sizeof text,
                      "differs from the reference by %.3g of its norm, row %zu by %.3g; %.3g is allowed", error,
                      worst_row, row_error, of.tolerance);
        wrong(operand_name(of, i) + " " + text);
    }
}

void check_version(const tsr_kernel& kernel, const tsr_node& node) {
    if (kernel.op_version == node.op_version) return;
    wrong("it computes version " + std::to_string(kernel.op_version) + " of " + node.op +
          ", which no run would use: nodes of this host are of version " + std::to_string(node.op_version));
}

Verdict check_kernel(const Setting& setting, const tsr_kernel& kernel, const Case& of) {
    try {
        CaseNode node(of);
        check_version(kernel, node.node());
        const tsr_kernel_plan plan = ask(kernel, node.node(), *setting.cpu);
        if (std::string fault = kernel_plan_fault(setting, plan, node.node(), ""); !fault.empty()) wrong(fault);
        if (!plan.supported) return {Verdict::kNotClaimed, plan.reason};
        const tsr_kernel_plan again = ask(kernel, node.node(), *setting.cpu);
        if (again.supported != plan.supported || again.workspace_bytes != plan.workspace_bytes ||
            again.seconds_one_row != plan.seconds_one_row)
            wrong("plan answers another thing when it is asked again: it must be pure");
        if (plan.workspace_bytes > kMaxTestWorkspace)
            wrong("plan asks for " + std::to_string(plan.workspace_bytes) + " bytes of workspace for a small node");

        std::string not_compared;
        const std::vector<Result> wanted = run_reference(setting, of, not_compared);
        const auto all = layout_choices(setting, of, plan, "");
        if (all.empty()) return {Verdict::kNotClaimed, "none of its layouts can hold these rows"};
        for (const auto& layouts : all) {
            for (size_t i = 0; i < layouts.size(); ++i) node.tensor(i).layout = layouts[i] ? layouts[i]->name : "";
            const Prepared prepared(kernel, node.node(), *setting.cpu);
            Storage storage(of, layouts);
            GuardedBuffer workspace("the workspace", plan.workspace_bytes);
            for (size_t r = 0; r < of.ranges.size(); ++r) {
                Result first;
                for (const uint32_t workers : kTeams) {
                    const std::string where = layout_text(layouts) + ", " + ranges_text(of.ranges[r]) + ", " +
                                              std::to_string(workers) + " workers: ";
                    try {
                        storage.reset();
                        std::fill_n(workspace.data(), workspace.size(), std::byte{0xFF});
                        // Even teams are handed pieces, odd ones share by the number of the worker.
                        Workers(workers).run(kernel, prepared.state(), arguments(storage, of.ranges[r], workspace),
                                             workers % 2 == 0);
                        storage.check_margins();
                        workspace.check_margins();
                        const Result result = storage.result();
                        check_untouched(of, of.ranges[r], result);
                        if (!wanted.empty()) compare(of, of.ranges[r], result, wanted[r]);
                        if (first.empty()) {
                            first = result;
                        } else if (first != result) {
                            wrong("the result is not the same, bit for bit, as with 1 worker");
                        }
                    } catch (const std::runtime_error& error) {
                        wrong(where + error.what());
                    }
                }
            }
            // Cancelled before it began: it may do nothing, but must return.
            const uint32_t cancelled = 1;
            storage.reset();
            tsr_run run = arguments(storage, of.ranges.front(), workspace);
            run.cancelled = &cancelled;
            Workers(2).run(kernel, prepared.state(), run, true);
        }
        return {Verdict::kPassed, not_compared};
    } catch (const std::exception& error) {
        return {Verdict::kFailed, error.what()};
    }
}

void for_each_packable(const tsr_layout& layout, const std::function<void(const Operand&)>& use) {
    const int64_t block = formats::listed_size(layout.type).elements;
    if (block == 0) wrong("its type is not known");
    for (const int64_t blocks : {1, 3}) {
        int64_t elements = layout.elements_multiple * blocks;
        while (elements % block != 0) elements += layout.elements_multiple;
        for (const int64_t groups : {1, 3}) {
            Case c("layout", layout.name);
            use(c.fill(c.input("rows", layout.type, {elements, groups * static_cast<int64_t>(layout.group_rows)},
                               TSR_ROLE_WEIGHT)));
        }
    }
}

namespace {

struct Timed {
    double seconds = 0, estimated = 0;  // the estimate of a call with all rows
};

// Nothing if the kernel does not claim the case.
std::optional<Timed> timed(const Setting& setting, const tsr_kernel& kernel, const Case& of) {
    using Clock = std::chrono::steady_clock;
    CaseNode node(of);
    const tsr_kernel_plan plan = ask(kernel, node.node(), *setting.cpu);
    const auto choices = plan.supported ? layout_choices(setting, of, plan, "") : std::vector<Layouts>();
    if (choices.empty() || plan.workspace_bytes > kMaxTestWorkspace) return std::nullopt;
    const Layouts& layouts = choices.front();
    for (size_t i = 0; i < layouts.size(); ++i) node.tensor(i).layout = layouts[i] ? layouts[i]->name : "";
    const Prepared prepared(kernel, node.node(), *setting.cpu);
    Storage storage(of, layouts);
    GuardedBuffer workspace("the workspace", plan.workspace_bytes);
    storage.reset();
    const auto rows = [](const Ranges& ranges) { return ranges[TSR_RANGE_ROWS].end - ranges[TSR_RANGE_ROWS].begin; };
    tsr_run run = arguments(storage, *std::ranges::max_element(of.ranges, {}, rows), workspace);
    run.workers = 1;
    run.barrier = [](void*, uint32_t) {};
    const auto batch = [&](size_t calls) {
        const auto begin = Clock::now();
        for (size_t i = 0; i < calls; ++i) take_status(kernel.run(&kernel, prepared.state(), &run), "run");
        return std::chrono::duration<double>(Clock::now() - begin).count();
    };
    // Batches that last long enough for the clock.
    size_t calls = 1;
    while (batch(calls) < 1e-3 && calls < 1 << 20) calls *= 2;
    std::array<double, 5> all{};
    for (double& seconds : all) seconds = batch(calls) / static_cast<double>(calls);
    std::ranges::sort(all);
    return Timed{all[all.size() / 2], plan.seconds_all_rows};
}

std::string time_text(const char* name, const Timed& time) {
    char text[200];
    std::snprintf(text, sizeof text, "%s %.2f us (estimate %.2f)", name, time.seconds * 1e6, time.estimated * 1e6);
    return text;
}

}  // namespace

Verdict time_kernel(const Setting& setting, const tsr_kernel& kernel, const Case& of) {
    try {
        // Estimates are those of one worker's machine.
        tsr_device_info one = *setting.cpu;
        one.threads = 1;
        Setting with_one = setting;
        with_one.cpu = &one;
        const std::optional<Timed> own = timed(with_one, kernel, of);
        if (!own) return {Verdict::kNotClaimed, "it does not claim the case"};
        std::string text = time_text(kernel.name, *own);
        // Of several built-in kernels for the op the fastest one.
        std::optional<Timed> best;
        const char* name = nullptr;
        for (uint32_t i = 0; i < setting.reference->kernel_count; ++i) {
            const tsr_kernel& other = *setting.reference->kernels[i];
            if (std::strcmp(other.op, kernel.op) != 0 || std::strcmp(other.device_kind, "cpu") != 0) continue;
            const std::optional<Timed> time = timed(with_one, other, of);
            if (!time || (best && best->seconds <= time->seconds)) continue;
            best = time;
            name = other.name;
        }
        if (!best) return {Verdict::kPassed, text + "; no built-in kernel claims it"};
        char ratio[60];
        std::snprintf(ratio, sizeof ratio, ": %.2f times as long", own->seconds / best->seconds);
        return {Verdict::kPassed, text + "; " + time_text(name, *best) + ratio};
    } catch (const std::exception& error) {
        return {Verdict::kFailed, error.what()};
    }
}

Verdict check_layout(const tsr_layout& layout) {
    try {
        if (!layout.pack) return {Verdict::kNotClaimed, "it cannot pack"};
        for_each_packable(layout, [&](const Operand& rows) {
            const sdk::FloatState before = sdk::FloatState::of_this_thread();
            const std::vector<std::byte> once = packed(rows, &layout);
            if (packed(rows, &layout) != once) wrong("pack gives other bytes the second time");
            if (layout.unpack && unpacked(rows, &layout, once.data()) != rows.bytes)
                wrong("unpack does not give back the rows that were packed");
            if (const sdk::FloatState after = sdk::FloatState::of_this_thread(); after != before) {
                before.restore();
                wrong("group_bytes, pack or unpack leaves its thread computing differently: " +
                      before.difference(after));
            }
        });
        return {};
    } catch (const std::exception& error) {
        return {Verdict::kFailed, error.what()};
    }
}

}  // namespace tessera::conformance
