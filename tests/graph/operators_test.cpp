// What an op of ops.h needs beside its meaning: shape inference, a plain kernel or lowerings, cases for kernels.
#include "core/graph/op_set.hpp"
#include "kernels/plain/plain.hpp"
#include "testing/conformance/case.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <string>

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

}  // namespace
}  // namespace tessera
