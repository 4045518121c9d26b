// Weights whose file interleaves rows, loaded and used: rows of a table, which stay as they are, and a product, which
// packs them anew. With TESSERA_TEST_DEVICE=CUDA0 on a card, which takes rows as they are unpacked while loading.
#include "core/graph/graph.hpp"
#include "core/graph/op_set.hpp"
#include "core/graph/types.hpp"
#include "core/plan/make_plan.hpp"
#include "core/run/executor.hpp"
#include "recorded.hpp"
#include "tests/support.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

namespace tessera::tests {
namespace {

constexpr int64_t kCopies = 6;  // of the recorded group
constexpr int32_t kRows = 3;    // of a step

const gguf::GgufFile& goldens() {
    static const gguf::GgufFile kFile = gguf::GgufFile::open(TSR_SOURCE_DIR "/tests/formats/ik_rows.gguf");
    return kFile;
}

// One weight: copies of a recorded group.
class Source : public WeightSource {
  public:
    explicit Source(const std::vector<unsigned char>& group) {
        for (int64_t i = 0; i < kCopies; ++i) bytes_.insert(bytes_.end(), group.begin(), group.end());
    }
    void read(const std::string&, uint64_t offset, std::span<std::byte> to) const override {
        std::memcpy(to.data(), bytes_.data() + offset, to.size());
    }
    const std::byte* mapped(const std::string&) const override { return nullptr; }

  private:
    std::vector<unsigned char> bytes_;
};

class InterleavedWeight : public testing::TestWithParam<std::string> {};

TEST_P(InterleavedWeight, IsReadAsItsRows) {
    const TypeInfo& type = *find_type(GetParam());
    const TypeInfo& rows_type = type_info(type.rows_type);
    const auto rows = recorded<unsigned char>(goldens(), GetParam() + ".rows");
    const uint64_t bytes = goldens().tensor(GetParam() + ".rows").dims[0];
    const auto elements = static_cast<int64_t>((bytes - type.prefix_bytes) / type.block_bytes * type.block_elements);
    const std::vector<float> wanted = decoded(rows_type.id, rows, bytes, static_cast<size_t>(elements));
    const auto group = static_cast<int64_t>(type.interleaved_rows), all = group * kCopies;

    const Hardware hardware = Hardware::detect();
    const Registry registry = Registry::load(test::plugins_without({}), hardware);
    OpSet ops;
    for (const tsr_operator* op : registry.operators()) ops.add(op, registry.owner(*op).table->name);
    Graph graph(ops);
    const Value tokens = graph.input("tokens", {TSR_TYPE_I32, {kRows}, TSR_RANGE_ROWS});
    graph.set_layer(0);
    const Value weight = graph.weight("w", {rows_type.id, {elements, all}}, GetParam());
    const Value taken = graph.add_one("get_rows", "taken", {weight, tokens});
    graph.set_output("hidden", taken);
    graph.set_output("logits", graph.add_one("matmul", "product", {taken, weight}));
    ScheduleOptions options;
    options.max_rows = kRows;
    const char* const device = std::getenv("TESSERA_TEST_DEVICE");
    if (device) options.placement.rules = {{".*", device}};
    Team team(2);
    Plan plan = make_plan(graph, registry, hardware, options);
    for (const PlannedNode& node : plan.nodes) ASSERT_EQ(node.device != 0, device != nullptr);
    Executor executor(std::move(plan), registry, team);
    executor.load(Source(recorded<unsigned char>(goldens(), GetParam() + ".interleaved")));

    const int32_t chosen[kRows] = {1, static_cast<int32_t>(all - 1), static_cast<int32_t>(group)};
    std::memcpy(executor.input("tokens").data(), chosen, sizeof chosen);
    std::array<tsr_range, TSR_RANGE_COUNT> ranges{};
    ranges[TSR_RANGE_ROWS] = {0, kRows};
    executor.run(ranges);
    const auto* got = reinterpret_cast<const float*>(executor.output("hidden"));
    const auto* product = reinterpret_cast<const float*>(executor.output("logits"));
    for (int32_t r = 0; r < kRows; ++r) {
        const float* row = &wanted[static_cast<size_t>(chosen[r] % group * elements)];
        for (int64_t i = 0; i < elements; ++i) ASSERT_EQ(got[r * elements + i], row[i]) << r << " " << i;
        for (int64_t n = 0; n < all; ++n) {
            double sum = 0, size = 0;
            for (int64_t i = 0; i < elements; ++i) {
                const double term = static_cast<double>(row[i]) * wanted[static_cast<size_t>(n % group * elements + i)];
                sum += term, size += std::fabs(term);
            }
            ASSERT_NEAR(product[r * all + n], sum, 0.01 * size) << r << " " << n;
        }
    }
}

std::vector<std::string> recorded_types() {
    std::vector<std::string> names;
    for (const TypeInfo& type : known_types()) {
        const std::string name(type.name);
        if (goldens().find_tensor(name + ".interleaved")) names.push_back(name);
    }
    return names;
}
INSTANTIATE_TEST_SUITE_P(Types, InterleavedWeight, testing::ValuesIn(recorded_types()),
                         [](const auto& type) { return type.param; });

}  // namespace
}  // namespace tessera::tests
