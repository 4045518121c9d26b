// What an op of ops.h needs beside its meaning: shape inference, a plain kernel or lowerings, cases for kernels.
#include "core/graph/op_set.hpp"
#include "kernels/plain/plain.hpp"
#include "testing/conformance/case.hpp"

#include <tessera/cpp/op_shapes.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace tessera {
namespace {

// Of the header that people read.
std::set<std::string> ops_of_header() {
    std::ifstream file(TSR_SOURCE_DIR "/sdk/include/tessera/ops.h");
    std::set<std::string> ops;
    const std::regex define("#define TSR_OP_\\w+ \"(\\w+)\"");
    for (std::string line; std::getline(file, line);) {
        if (std::smatch found; std::regex_search(line, found, define)) ops.insert(found[1]);
    }
    return ops;
}

// No kernel computes it: its lowerings say how it is cached.
bool is_abstract(const tsr_operator& op) {
    return op.lowering_count > 0 && op.lowerings[0]->components;
}

TEST(Operators, AreTheOpsOfTheHeader) {
    std::set<std::string> ops;
    for (const tsr_operator* op : builtin_operators()) ops.insert(op->name);
    EXPECT_EQ(ops, ops_of_header());
}

TEST(Operators, HaveAPlainKernelOrLowerings) {
    for (const tsr_operator* op : builtin_operators()) {
        EXPECT_NE(plain::find_op(op->name) != nullptr, op->lowering_count > 0) << op->name;
        for (uint32_t i = 0; i < op->lowering_count; ++i) EXPECT_STREQ(op->lowerings[i]->op, op->name);
    }
}

TEST(Operators, HaveCasesForTheirKernels) {
    std::set<std::string> with_kernels;
    for (const tsr_operator* op : builtin_operators()) {
        if (!is_abstract(*op)) with_kernels.insert(op->name);
    }
    EXPECT_THAT(conformance::ops_with_cases(), testing::UnorderedElementsAreArray(with_kernels));
}

// A node of a signature of an op, with an extent of its own for each letter; '*' is two dimensions.
class FormNode {
  public:
    explicit FormNode(const sdk::OpShapes& row) : row_(row) {
        for (const sdk::OperandShape& shape : row.inputs) inputs_.push_back(tensor(shape));
        for (const sdk::OperandShape& shape : row.outputs) outputs_.push_back(tensor(shape));
        attributes_ = {
            sdk::attribute("head_dim_v", extent('v')),
            sdk::attribute("used", extent('K')),
            sdk::attribute("length", int64_t{1}),
            sdk::attribute("factor", 1.0),
            sdk::attribute("kv_heads", int64_t{2}),
            sdk::attribute("transpose_weight", int64_t{row.inputs.size() > 1 && row.inputs[1].dims[0] == 'n'})};
        // The plain variant of attention.
        if (row.agrees == sdk::shapes::attention_agrees) {
            inputs_[1].dims[0] = 2 * extent('d');
            inputs_[2].dims[0] = 2 * extent('v');
            for (const size_t projection : {6u, 7u}) inputs_[projection].type = TSR_TYPE_NONE;
        }
        if (row.agrees == sdk::shapes::rope_agrees) inputs_[2].dims[0] = extent('d') / 2;
        for (tsr_tensor& input : inputs_) input_pointers_.push_back(&input);
        for (tsr_tensor& output : outputs_) output_pointers_.push_back(&output);
        for (tsr_attribute& attribute : attributes_) attribute_pointers_.push_back(&attribute);
        node_.struct_size = sizeof node_;
        node_.op = row.op.data();
        node_.inputs = input_pointers_.data();
        node_.input_count = static_cast<uint32_t>(inputs_.size());
        node_.outputs = output_pointers_.data();
        node_.output_count = static_cast<uint32_t>(outputs_.size());
        node_.attributes = attribute_pointers_.data();
        node_.attribute_count = static_cast<uint32_t>(attributes_.size());
    }

    std::string fit() const {
        sdk::ShapeFault fault;
        return sdk::shapes_fit(row_, node_, fault) ? "" : fault.text();
    }
    std::string inferred(std::vector<tsr_tensor>& results) const {
        results.assign(outputs_.size(), {});
        std::vector<tsr_tensor*> pointers;
        for (tsr_tensor& result : results) pointers.push_back(&result);
        sdk::ShapeFault fault;
        return sdk::infer_shapes(row_, node_, pointers.data(), fault) ? "" : fault.text();
    }

    std::vector<tsr_tensor> inputs_, outputs_;

  private:
    static int64_t extent(char letter) {
        if (letter == 'E') return 8;
        if (letter == 'K') return 3;
        if (letter == 'H' || letter == 'G') return letter == 'H' ? 6 : 2;
        return 10 + 2 * (letter % 64);
    }
    static tsr_tensor tensor(const sdk::OperandShape& shape) {
        tsr_tensor t{};
        t.struct_size = sizeof t;
        t.type = shape.kind == sdk::OperandKind::kIndices ? TSR_TYPE_I32 : TSR_TYPE_F32;
        std::ranges::fill(t.dims, 1);
        for (const char letter : shape.dims) {
            for (int i = 0; i < (letter == '*' ? 2 : 1); ++i) t.dims[t.rank++] = letter == '*' ? 5 + i : extent(letter);
        }
        const bool rows = shape.dims.back() == 'R' || shape.dims.back() == '*';
        t.range = rows ? TSR_RANGE_ROWS : TSR_RANGE_FIXED;
        return t;
    }

    const sdk::OpShapes& row_;
    std::vector<tsr_attribute> attributes_;
    std::vector<const tsr_tensor*> input_pointers_, output_pointers_;
    std::vector<const tsr_attribute*> attribute_pointers_;
    tsr_node node_{};
};

// What the host infers is what kernels ask for.
TEST(OpShapes, ResultsAreInferredAsTheyAreChecked) {
    for (const sdk::OpShapes& row : sdk::kOpShapes) {
        SCOPED_TRACE(std::string(row.op) + " " + std::string(row.inputs[0].dims));
        FormNode node(row);
        EXPECT_EQ(node.fit(), "");
        std::vector<tsr_tensor> results;
        EXPECT_EQ(node.inferred(results), "");
        if (row.op == TSR_OP_CACHE_WRITE) continue;  // its result is given
        for (size_t i = 0; i < results.size(); ++i) {
            EXPECT_EQ(results[i].rank, node.outputs_[i].rank);
            EXPECT_EQ(results[i].range, node.outputs_[i].range);
            EXPECT_TRUE(std::ranges::equal(results[i].dims, node.outputs_[i].dims));
        }
    }
}

// Each extent that two operands share is compared, and so is the range of rows.
TEST(OpShapes, OperandsThatDoNotFitAreNamed) {
    for (const sdk::OpShapes& row : sdk::kOpShapes) {
        SCOPED_TRACE(std::string(row.op) + " " + std::string(row.inputs[0].dims));
        const FormNode good(row);
        const auto shared = [&](char letter) {
            int64_t uses = 0;
            for (const auto& all : {row.inputs, row.outputs}) {
                for (const sdk::OperandShape& shape : all) {
                    const bool absent = row.agrees == sdk::shapes::attention_agrees && shape.dims[0] == 'c';
                    uses += absent ? 0 : std::ranges::count(shape.dims, letter);
                }
            }
            return uses > 1;
        };
        for (size_t i = 0; i < good.inputs_.size(); ++i) {
            if (good.inputs_[i].type == TSR_TYPE_NONE || row.inputs[i].any_rank()) continue;
            for (uint32_t axis = 0; axis < good.inputs_[i].rank; ++axis) {
                if (!shared(row.inputs[i].dims[axis])) continue;
                FormNode node(row);
                node.inputs_[i].dims[axis] *= 6;
                EXPECT_THAT(node.fit(), testing::HasSubstr("required")) << row.inputs[i].name << ", axis " << axis;
            }
            if (row.inputs[i].dims.back() != 'R') continue;
            FormNode node(row);
            node.inputs_[i].range = TSR_RANGE_FIXED;
            EXPECT_THAT(node.fit(), testing::HasSubstr("range")) << row.inputs[i].name;
        }
        for (size_t i = 0; i < good.outputs_.size(); ++i) {
            FormNode node(row);
            node.outputs_[i].dims[0] *= 6;
            EXPECT_THAT(node.fit(), testing::HasSubstr(row.outputs[i].name));
        }
    }
}

}  // namespace
}  // namespace tessera
