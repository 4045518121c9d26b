#include "bench.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <regex>
#include <stdexcept>

namespace tessera::test {
namespace {

constexpr int64_t kAlignment = 256;
constexpr int64_t kPatternBytes = 8 << 20;

// Bytes that are finite numbers in every type: the bit by which exponents of f16, bf16, f32 and e8m0 become large is 0.
std::vector<unsigned char> finite_bytes(int64_t count) {
    std::vector<unsigned char> bytes(static_cast<size_t>(count));
    std::mt19937 random(1);
    for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random() & 0xBF);
    return bytes;
}

double since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void print(const boost::json::object& line) {
    std::printf("%s\n", boost::json::serialize(line).c_str());
    std::fflush(stdout);
}

// Undoes a prepare.
class State {
  public:
    State(const tsr_kernel& kernel, const tsr_node& node, const tsr_device_info& info, tsr_device& device)
        : kernel_(kernel) {
        sdk::check(kernel.prepare(&kernel, &node, &info, &device, &state_));
    }
    ~State() { kernel_.release(&kernel_, state_); }
    State(const State&) = delete;
    State& operator=(const State&) = delete;
    void* get() const { return state_; }

  private:
    const tsr_kernel& kernel_;
    void* state_ = nullptr;
};

}  // namespace

Bench::Bench(const tsr_plugin& plugin, const tsr_device_info& info, const Scale& scale)
    : plugin_(plugin), info_(info), scale_(scale), card_(info) {
    sdk::check(device().create_event(&device(), 1, &begin_));
    sdk::check(device().create_event(&device(), 1, &end_));
    if (scale_.plan_only) return;
    void* content = nullptr;
    sdk::check(device().allocate(&device(), static_cast<uint64_t>(scale_.content_bytes), &content));
    content_ = static_cast<char*>(content);
    const std::vector<unsigned char> pattern = finite_bytes(std::min(scale_.content_bytes, kPatternBytes));
    const auto size = static_cast<int64_t>(pattern.size());
    sdk::check(device().upload(&device(), card_.queue(), content_, pattern.data(), pattern.size()));
    for (int64_t at = size; at < scale_.content_bytes; at += size) {
        sdk::check(device().copy(&device(), card_.queue(), content_ + at, content_,
                                 static_cast<uint64_t>(std::min(size, scale_.content_bytes - at))));
    }
    card_.wait();
}

Bench::~Bench() {
    forget();
    if (content_) device().release(&device(), content_);
    device().destroy_event(&device(), begin_);
    device().destroy_event(&device(), end_);
}

void* Bench::allocate(int64_t bytes) {
    void* address = nullptr;
    sdk::check(device().allocate(&device(), static_cast<uint64_t>(std::max<int64_t>(bytes, 1)), &address));
    memory_.push_back(address);
    return address;
}

void Bench::forget() {
    for (void* address : memory_) device().release(&device(), address);
    memory_.clear();
}

void Bench::check_size(int64_t bytes) const {
    if (bytes > scale_.content_bytes)
        throw sdk::Failure(TSR_DOES_NOT_FIT, "an operand of " + std::to_string(bytes) + " bytes; there are " +
                                                 std::to_string(scale_.content_bytes));
}

void* Bench::numbers(int64_t bytes) {
    check_size(bytes);
    if (next_ + bytes > scale_.content_bytes) next_ = 0;
    char* const at = content_ + next_;
    next_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return at;
}

bool Bench::out_of_time() const {
    return since(started_) > scale_.seconds;
}

double Bench::seconds(const std::function<void()>& body) {
    constexpr double kOfRecording = 2e-3, kOfAll = 0.1, kLong = 0.25;
    constexpr int kMinimumRounds = 5, kMaximumRounds = 25, kMaximumCalls = 64;
    const auto timed = [&](const std::function<void()>& work) {
        sdk::check(device().record_event(&device(), card_.queue(), begin_));
        work();
        sdk::check(device().record_event(&device(), card_.queue(), end_));
        sdk::check(device().wait_event(&device(), end_));
        double passed = 0;
        sdk::check(device().event_seconds(&device(), begin_, end_, &passed));
        return passed;
    };
    double once = timed(body);
    if (once > kLong && !scale_.small) return once;
    if (!scale_.small) once = timed(body);  // the first call found cold caches
    const int calls =
        scale_.small ? 1
                     : static_cast<int>(std::clamp(kOfRecording / std::max(once, 1e-9), 1.0, double{kMaximumCalls}));
    tsr_recording recording = nullptr;
    sdk::check(device().begin_recording(&device(), card_.queue()));
    for (int call = 0; call < calls; ++call) body();
    sdk::check(device().end_recording(&device(), card_.queue(), &recording));
    std::vector<double> times;
    const auto begin = std::chrono::steady_clock::now();
    const int rounds = scale_.small ? 1 : kMaximumRounds;
    for (int round = 0; round < rounds && (round < kMinimumRounds || since(begin) < kOfAll); ++round)
        times.push_back(timed([&] { sdk::check(device().replay(&device(), card_.queue(), recording)); }) / calls);
    card_.wait();
    device().destroy_recording(&device(), recording);
    std::ranges::nth_element(times, times.begin() + static_cast<ptrdiff_t>(times.size() / 2));
    return times[times.size() / 2];
}

bool Bench::offers(const char* op) const {
    return std::any_of(plugin_.kernels, plugin_.kernels + plugin_.kernel_count,
                       [op](const tsr_kernel* kernel) { return std::strcmp(kernel->op, op) == 0; });
}

const tsr_kernel* Bench::find_kernel(const tsr_node& node, tsr_kernel_plan& plan, std::string& refusal) const {
    refusal.clear();
    for (uint32_t i = 0; i < plugin_.kernel_count; ++i) {
        const tsr_kernel& kernel = *plugin_.kernels[i];
        if (std::strcmp(kernel.op, node.op) != 0) continue;
        plan = {};
        plan.struct_size = sizeof plan;
        sdk::check(kernel.plan(&kernel, &node, &info_, &plan));
        if (plan.supported) return &kernel;
        if (refusal.empty()) refusal = plan.reason;  // kernels of special cases come later
    }
    if (refusal.empty()) refusal = std::string("no kernel of ") + node.op;
    return nullptr;
}

bool Bench::claims(Described& described, std::string& refusal) const {
    tsr_kernel_plan plan{};
    return find_kernel(described.node(), plan, refusal) != nullptr;
}

void Bench::choose_layouts(Described& described, const tsr_kernel_plan& plan) const {
    size_t index = 0;
    for (DescribedOperand& operand : described.operands()) {
        const char* const* names = plan.layouts[index++];
        operand.tensor.layout = "";
        for (; names && *names; ++names) {
            if (!**names) break;
            for (uint32_t i = 0; i < plugin_.layout_count; ++i) {
                if (std::strcmp(plugin_.layouts[i]->name, *names) == 0) operand.tensor.layout = *names;
            }
            if (*operand.tensor.layout) break;
        }
    }
}

int64_t Bench::stored_bytes(const tsr_tensor& tensor) const {
    for (uint32_t i = 0; i < plugin_.layout_count; ++i) {
        const tsr_layout& layout = *plugin_.layouts[i];
        if (tensor.layout && std::strcmp(layout.name, tensor.layout) == 0)
            return static_cast<int64_t>(layout.group_bytes(&layout, tensor.dims[0])) *
                   ((rows_of(tensor) + layout.group_rows - 1) / layout.group_rows);
    }
    return bytes_of(tensor);
}

std::optional<Measured> Bench::measure(Described& described, int64_t rows, int64_t tokens, Depth depth,
                                       std::string& refusal) {
    const tsr_node& node = described.node();
    Measured found;
    tsr_kernel_plan plan{};
    found.kernel = find_kernel(node, plan, refusal);
    if (!found.kernel) return std::nullopt;
    found.variant = plan.reason;
    found.workspace_bytes = plan.workspace_bytes;
    found.estimated_seconds = rows == 1 ? plan.seconds_one_row : plan.seconds_all_rows;
    if (const double full = rows == 1 ? plan.seconds_one_row_full : plan.seconds_all_rows_full;
        depth == Depth::kFull && full > 0)
        found.estimated_seconds = full;

    choose_layouts(described, plan);
    if (scale_.plan_only) {
        for (const DescribedOperand& operand : described.operands()) {
            if (operand.content == Content::kNumbers) check_size(stored_bytes(operand.tensor));
        }
        return found;
    }
    std::vector<void*> data;
    for (const DescribedOperand& operand : described.operands()) {
        const tsr_tensor& tensor = operand.tensor;
        if (tensor.type == TSR_TYPE_NONE) {
            data.push_back(nullptr);
        } else if (operand.content == Content::kNumbers) {
            data.push_back(numbers(stored_bytes(tensor)));
        } else {
            data.push_back(allocate(bytes_of(tensor)));
            if (operand.content == Content::kIntegers)
                sdk::check(device().upload(&device(), card_.queue(), data.back(), operand.integers.data(),
                                           operand.integers.size() * sizeof(int32_t)));
        }
    }
    const auto bound = static_cast<int32_t>(rows);
    const tsr_range ranges[TSR_RANGE_COUNT] = {{0, bound}, {0, bound}, {0, bound}, {0, bound}};
    const int32_t bounds[TSR_RANGE_COUNT] = {bound, bound, bound, bound};
    void* const actual = allocate(sizeof ranges);
    sdk::check(device().upload(&device(), card_.queue(), actual, ranges, sizeof ranges));
    card_.wait();
    tsr_launch launch{};
    launch.struct_size = sizeof launch;
    launch.data = data.data();
    launch.ranges = static_cast<const tsr_range*>(actual);
    launch.row_bounds = bounds;
    launch.token_bound = tokens;
    launch.workspace = allocate(static_cast<int64_t>(plan.workspace_bytes));
    launch.queue = card_.queue();
    {
        const State state(*found.kernel, node, info_, device());
        found.seconds = seconds([&] { sdk::check(found.kernel->enqueue(found.kernel, state.get(), &launch)); });
    }
    forget();
    return found;
}

void Bench::report(const Row& row, Described& described, int64_t tokens, Depth depth) {
    if (scale_.only_offered && !offers(described.node().op)) return;
    if (!scale_.what.empty() && !std::regex_search(row.what + ", " + row.type + ", " + std::to_string(row.rows) +
                                                       (row.rows > 1 ? " rows" : " row"),
                                                   std::regex(scale_.what)))
        return;
    boost::json::object line = {{"topic", row.topic}, {"what", row.what},   {"type", row.type},
                                {"rows", row.rows},   {"bytes", row.bytes}, {"operations", row.operations},
                                {"unit", row.unit}};
    if (out_of_time()) {
        line["left_out"] = "no time left";
        return print(line);
    }
    std::string refusal;
    try {
        if (const auto measured = measure(described, row.rows, tokens, depth, refusal)) {
            line["kernel"] = measured->kernel->name;
            line["variant"] = measured->variant;
            if (!scale_.plan_only) line["seconds"] = measured->seconds;
            line["estimated"] = measured->estimated_seconds;
            line["workspace"] = measured->workspace_bytes;
        } else {
            line["refused"] = refusal;
        }
    } catch (const sdk::Failure& failure) {
        line["failed"] = failure.what();
        failed_ = true;
        print(line);
        if (failure.code() == TSR_DEVICE_LOST) throw;
        forget();
        return;
    }
    print(line);
}

void Bench::report_rate(std::string_view unit, double a_second) {
    print({{"topic", "rate"}, {"unit", unit}, {"rate", a_second}});
}

void Bench::report_latency(std::string_view what, double seconds, const cuda_ops::CardConstant* assumed) {
    boost::json::object line = {{"topic", "latency"}, {"what", what}, {"seconds", seconds}};
    if (assumed) {
        line["assumed"] = assumed->value;
        line["source"] = assumed->measured ? "measured (" + std::string(assumed->measured) + ")" : "assumed";
    }
    print(line);
}

}  // namespace tessera::test
