// measure_card PLUGIN.so [--megabytes N] [--rounds N]: what a card does with a CUDA plugin's kernels, as a table in
// Markdown: the rate of copies within the card, and the rates at which products of one and few rows and norms pass over
// memory, each beside the copy rate. Uses the plugin through the C ABI alone. For tools/gpu_acceptance.
#include "card.hpp"

#include <tessera/cpp/node.hpp>
#include <tessera/kernel.h>
#include <tessera/ops.h>
#include <tessera/plugin.h>

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string_view>

namespace tessera::test {
namespace {

constexpr int kL2Bytes = 38;  // CUdevice_attribute

const tsr_plugin& load(const char* path) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(dlerror());
    auto* query = reinterpret_cast<tsr_plugin_query_function>(dlsym(library, TSR_PLUGIN_QUERY));
    if (!query) throw std::runtime_error(std::string(path) + " is no plugin");
    static tsr_host host{};
    host.struct_size = sizeof host;
    host.abi_major = TSR_ABI_MAJOR;
    host.log = [](const tsr_host*, tsr_log_level, const char*, const char*) {};
    const tsr_plugin* plugin = query(&host);
    if (!plugin) throw std::runtime_error(std::string(path) + " does not serve this ABI");
    return *plugin;
}

tsr_tensor tensor(tsr_type type, tsr_role role, int64_t elements, int64_t rows, int64_t row_bytes, int32_t range) {
    tsr_tensor made{};
    made.struct_size = sizeof made;
    made.type = type;
    made.role = role;
    made.rank = rows > 0 ? 2 : 1;
    made.range = range;
    std::fill_n(made.dims, TSR_MAX_RANK, 1);
    made.dims[0] = elements;
    made.dims[1] = std::max<int64_t>(rows, 1);
    made.strides[0] = type == TSR_TYPE_Q8_0 ? 34 : type == TSR_TYPE_F32 ? 4 : 2;
    made.strides[1] = row_bytes;
    made.strides[2] = made.strides[3] = row_bytes * made.dims[1];
    made.layout = "";
    made.name = "measured";
    return made;
}

class Measure {
  public:
    Measure(const tsr_plugin& plugin, const tsr_device_info& info, int64_t bytes, int rounds)
        : plugin_(plugin), info_(info), card_(info), bytes_(bytes), rounds_(rounds) {
        sdk::check(device().create_event(&device(), 1, &begin_));
        sdk::check(device().create_event(&device(), 1, &end_));
        from_ = allocate(bytes);
        to_ = allocate(bytes);
        // Weights whose values do not matter but are finite: bytes of small codes and scales.
        std::vector<unsigned char> pattern(static_cast<size_t>(std::min<int64_t>(bytes, 1 << 20)), 0x1C);
        for (int64_t at = 0; at < bytes; at += static_cast<int64_t>(pattern.size())) {
            const auto part =
                static_cast<uint64_t>(std::min<int64_t>(static_cast<int64_t>(pattern.size()), bytes - at));
            sdk::check(device().upload(&device(), card_.queue(), static_cast<char*>(from_) + at, pattern.data(), part));
        }
        card_.wait();
    }
    ~Measure() {
        device().destroy_event(&device(), begin_);
        device().destroy_event(&device(), end_);
        for (void* address : memory_) device().release(&device(), address);
    }
    Measure(const Measure&) = delete;
    Measure& operator=(const Measure&) = delete;

    void run() {
        copy_rate_ = 2 * static_cast<double>(bytes_) / seconds([&] {
                         sdk::check(device().copy(&device(), card_.queue(), to_, from_, static_cast<uint64_t>(bytes_)));
                     });
        std::printf(
            "| what | rows | MB | us | GB/s | share of the copy rate |\n| --- | --- | --- | --- | --- | --- |\n");
        row("copy within the card (read and written)", 0, 2 * static_cast<double>(bytes_),
            2 * static_cast<double>(bytes_) / copy_rate_);
        for (const int64_t k : {2048, 1408, 7168}) {
            for (const int rows : {1, 4, 8, 64}) product(TSR_TYPE_Q8_0, "q8_0", k, rows);
        }
        for (const int rows : {1, 8}) product(TSR_TYPE_F16, "f16", 4096, rows);
        norm(7168, 1);
        norm(7168, static_cast<int>(std::min<int64_t>(bytes_ / (7168 * 4), 4096)));
    }

  private:
    tsr_device& device() { return card_.device(); }
    void* allocate(int64_t bytes) {
        void* address = nullptr;
        sdk::check(device().allocate(&device(), static_cast<uint64_t>(bytes), &address));
        memory_.push_back(address);
        return address;
    }
    // The median of the rounds, each of as many calls as one recording has.
    template <class Body>
    double seconds(Body&& body) {
        constexpr int kCalls = 4;
        body();
        std::vector<double> times;
        for (int round = 0; round < rounds_; ++round) {
            sdk::check(device().record_event(&device(), card_.queue(), begin_));
            for (int call = 0; call < kCalls; ++call) body();
            sdk::check(device().record_event(&device(), card_.queue(), end_));
            sdk::check(device().wait_event(&device(), end_));
            double passed = 0;
            sdk::check(device().event_seconds(&device(), begin_, end_, &passed));
            times.push_back(passed / kCalls);
        }
        card_.wait();
        std::ranges::nth_element(times, times.begin() + static_cast<ptrdiff_t>(times.size() / 2));
        return times[times.size() / 2];
    }
    void row(const std::string& what, int rows, double bytes, double time) {
        std::printf("| %s | %s | %.1f | %.1f | %.1f | %.2f |\n", what.c_str(), rows ? std::to_string(rows).c_str() : "",
                    bytes / 1e6, time * 1e6, bytes / time / 1e9, bytes / time / copy_rate_);
        std::fflush(stdout);
    }

    const tsr_kernel& kernel(const char* op) const {
        for (uint32_t i = 0; i < plugin_.kernel_count; ++i) {
            if (std::strcmp(plugin_.kernels[i]->op, op) == 0) return *plugin_.kernels[i];
        }
        throw std::runtime_error(std::string("the plugin has no kernel of ") + op);
    }
    void node(const char* op, const std::vector<tsr_tensor>& operands, const std::vector<void*>& data, int rows,
              const std::string& what, double bytes) {
        const std::vector<const tsr_tensor*> pointers = sdk::pointers_to(operands.data(), operands.size());
        const tsr_attribute epsilon = sdk::attribute("epsilon", 1e-6);
        const tsr_attribute* const attributes[] = {&epsilon};
        tsr_node described{};
        described.struct_size = sizeof described;
        described.op_version = 1;
        described.op = op;
        described.name = "measured";
        described.inputs = pointers.data();
        described.input_count = static_cast<uint32_t>(operands.size() - 1);
        described.outputs = pointers.data() + operands.size() - 1;
        described.output_count = 1;
        described.layer = -1;
        if (std::strcmp(op, TSR_OP_RMS_NORM) == 0) {
            described.attributes = attributes;
            described.attribute_count = 1;
        }
        const tsr_kernel& used = kernel(op);
        tsr_kernel_plan plan{};
        plan.struct_size = sizeof plan;
        sdk::check(used.plan(&used, &described, &info_, &plan));
        if (!plan.supported) throw std::runtime_error(plan.reason);
        void* state = nullptr;
        sdk::check(used.prepare(&used, &described, &info_, &device(), &state));
        tsr_range ranges[TSR_RANGE_COUNT] = {{0, rows}, {0, rows}, {0, rows}, {0, rows}};
        const int32_t bounds[TSR_RANGE_COUNT] = {rows, rows, rows, rows};
        tsr_launch launch{};
        launch.struct_size = sizeof launch;
        launch.data = data.data();
        launch.ranges = static_cast<const tsr_range*>(card_.upload(ranges, sizeof ranges));
        launch.row_bounds = bounds;
        launch.token_bound = 1;
        launch.workspace = allocate(static_cast<int64_t>(plan.workspace_bytes) + 1);
        launch.queue = card_.queue();
        const double time = seconds([&] { sdk::check(used.enqueue(&used, state, &launch)); });
        used.release(&used, state);
        row(what, rows, bytes, time);
    }
    void product(tsr_type type, const char* name, int64_t k, int rows) {
        const int64_t row_bytes = type == TSR_TYPE_Q8_0 ? k / 32 * 34 : 2 * k;
        const int64_t n = std::min<int64_t>(bytes_ / row_bytes, 1 << 20);
        const std::vector<float> x(static_cast<size_t>(k * rows), 0.5f);
        void* y = allocate(4 * n * rows);
        node(TSR_OP_MATMUL,
             {tensor(TSR_TYPE_F32, TSR_ROLE_ACTIVATION, k, rows, 4 * k, TSR_RANGE_ROWS),
              tensor(type, TSR_ROLE_WEIGHT, k, n, row_bytes, TSR_RANGE_FIXED),
              tensor(TSR_TYPE_F32, TSR_ROLE_ACTIVATION, n, rows, 4 * n, TSR_RANGE_ROWS)},
             {card_.upload(x), from_, y}, rows, std::string("product, ") + name + ", k = " + std::to_string(k),
             static_cast<double>(n * row_bytes));
    }
    void norm(int64_t n, int rows) {
        if (rows < 1) return;
        const std::vector<float> weight(static_cast<size_t>(n), 1.f);
        node(TSR_OP_RMS_NORM,
             {tensor(TSR_TYPE_F32, TSR_ROLE_ACTIVATION, n, rows, 4 * n, TSR_RANGE_ROWS),
              tensor(TSR_TYPE_F32, TSR_ROLE_WEIGHT, n, 0, 4 * n, TSR_RANGE_FIXED),
              tensor(TSR_TYPE_F32, TSR_ROLE_ACTIVATION, n, rows, 4 * n, TSR_RANGE_ROWS)},
             {from_, card_.upload(weight), to_}, rows, "rms_norm, n = " + std::to_string(n),
             static_cast<double>(8 * n * rows));
    }

    const tsr_plugin& plugin_;
    const tsr_device_info& info_;
    Card card_;
    int64_t bytes_;
    int rounds_;
    tsr_event begin_ = nullptr, end_ = nullptr;
    void *from_ = nullptr, *to_ = nullptr;
    std::vector<void*> memory_;
    double copy_rate_ = 0;
};

int run(int count, char** words) {
    if (count < 2) throw std::runtime_error("usage: measure_card PLUGIN.so [--megabytes N] [--rounds N]");
    double megabytes = 0;
    int rounds = 11;
    for (int i = 2; i + 1 < count; i += 2) {
        const std::string_view option = words[i];
        if (option == "--megabytes")
            megabytes = std::stod(words[i + 1]);
        else if (option == "--rounds")
            rounds = std::max(1, std::stoi(words[i + 1]));
        else
            throw std::runtime_error("unknown option " + std::string(option));
    }
    const tsr_plugin& plugin = load(words[1]);
    int measured = 0;
    for (const auto& card : list_cards()) {
        char reason[TSR_REASON_BYTES] = "";
        if (!plugin.providers[0]->match(plugin.providers[0], &card->info, reason, sizeof reason)) continue;
        int l2 = 0;
        const cuda::Driver& driver = cuda::Driver::get();
        cuda::DeviceNumber number = 0;
        driver.check(driver.device(&number, static_cast<int>(card->info.index)), "cuDeviceGet", "");
        driver.check(driver.device_attribute(&l2, kL2Bytes, number), "cuDeviceGetAttribute", "");
        // Four times the second-level cache, so that little of a matrix is still there from the call before.
        const double bytes = megabytes > 0 ? megabytes * 1e6 : std::max(4.0 * l2, 64e6);
        std::printf("%s, compute capability %u.%u, plugin %s\n\n", card->id.c_str(),
                    card->info.compute_capability / 100, card->info.compute_capability / 10 % 10, plugin.name);
        Measure(plugin, card->info, static_cast<int64_t>(bytes) / 4096 * 4096, rounds).run();
        std::printf("\n");
        ++measured;
    }
    if (measured == 0) throw std::runtime_error("no card here that the plugin owns");
    return 0;
}

}  // namespace
}  // namespace tessera::test

int main(int count, char** words) {
    try {
        return tessera::test::run(count, words);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "measure_card: %s\n", error.what());
        return 1;
    }
}
