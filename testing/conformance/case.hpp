// A node with data, made from plain values: what a kernel is tested with.
#pragma once

#include <tessera/kernel.h>
#include <tessera/ops.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

namespace tessera::conformance {

using Ranges = std::array<tsr_range, TSR_RANGE_COUNT>;

// Of most rows: a range that may begin anywhere.
inline constexpr int32_t kRows = TSR_RANGE_GENERATION_ROWS;

// A tensor with the bytes of its storage in the canonical layout.
struct Operand {
    tsr_tensor tensor{};  // type NONE: absent
    std::string name;
    std::vector<std::byte> bytes;
    bool is_output = false;
    int shares_input = -1;           // output in place: the input whose storage it is
    bool keeps_what_it_had = false;  // output of which a step writes only a part

    size_t rows() const noexcept;       // over all dimensions but the first
    size_t row_bytes() const noexcept;  // 0 if the type has no rows (integers have)
    std::byte* row(std::vector<std::byte>& storage, size_t index) const;
    const std::byte* row(const std::byte* storage, size_t index) const noexcept;
    // Whether rows follow each other from the start of the storage, as layouts need it.
    bool is_dense() const noexcept;

    float* floats(size_t row) { return reinterpret_cast<float*>(this->row(bytes, row)); }
    int32_t* integers(size_t row) { return reinterpret_cast<int32_t*>(this->row(bytes, row)); }
};

// Filled in by the functions below; pointers in `node` are valid as long as the case.
class Case {
  public:
    Case(std::string op, std::string name);
    Case(const Case&) = delete;
    Case& operator=(const Case&) = delete;

    std::string name;
    double tolerance = 1e-4;     // of the difference to the reference, by the norm of what the reference gives
    std::vector<Ranges> ranges;  // that it is run with, one after another
    // Rows of output 0 that a run writes; empty: those of its range.
    std::function<std::vector<bool>(const Ranges&)> written_rows;
    std::mt19937 random;

    // `gap`: bytes between rows. Inputs are not filled, outputs hold a pattern that is no number.
    Operand& input(const char* name, tsr_type type, std::initializer_list<int64_t> dims, tsr_role role,
                   int32_t range = TSR_RANGE_FIXED, int64_t gap = 0);
    void absent();
    Operand& output(const char* name, tsr_type type, std::initializer_list<int64_t> dims,
                    int32_t range = TSR_RANGE_FIXED, int64_t gap = 0, tsr_role role = TSR_ROLE_ACTIVATION);
    void output_in_place(size_t input);
    // Filled with normally distributed values; weights and caches of any type, of about `size` each.
    Operand& fill(Operand& operand, float size = 1);
    void attribute(const char* name, int64_t value);
    void attribute(const char* name, double value);
    void attribute(const char* name, const char* value);
    // Runs of `rows` rows: all of them, some in the middle, one, none.
    void row_ranges(int32_t rows);

    size_t operands() const noexcept { return operands_.size(); }
    Operand& operand(size_t i) noexcept { return operands_[i]; }
    const Operand& operand(size_t i) const noexcept { return operands_[i]; }
    size_t inputs() const noexcept { return inputs_; }
    // Inputs that outputs are written to.
    std::vector<size_t> outputs_in_place() const {
        std::vector<size_t> shared;
        for (const Operand& operand : operands_) {
            if (operand.shares_input >= 0) shared.push_back(static_cast<size_t>(operand.shares_input));
        }
        return shared;
    }
    const std::string& op() const noexcept { return op_; }
    const std::vector<const tsr_attribute*>& attributes() const noexcept { return attribute_list_; }

  private:
    Operand& add(const char* name, tsr_type type, std::initializer_list<int64_t> dims, tsr_role role, int32_t range,
                 int64_t gap);

    std::string op_;
    std::deque<Operand> operands_;
    size_t inputs_ = 0;
    std::deque<tsr_attribute> attributes_;
    std::vector<const tsr_attribute*> attribute_list_;
};

// A node over the operands of a case: its tensors are copies, so that their layouts can be set.
class CaseNode {
  public:
    explicit CaseNode(const Case& of);
    CaseNode(const CaseNode&) = delete;
    CaseNode& operator=(const CaseNode&) = delete;

    const tsr_node& node() const noexcept { return node_; }
    tsr_tensor& tensor(size_t operand) noexcept { return tensors_[operand]; }

  private:
    std::vector<tsr_tensor> tensors_;
    std::vector<const tsr_tensor*> pointers_;
    tsr_node node_{};
};

// Calls `use` with every case of an op, one after another, in the same order and with the same data each time. False
// if no case of this op is known.
bool for_each_case(const std::string& op, const std::function<void(Case&)>& use);
// Ops of which cases are known.
std::vector<std::string> ops_with_cases();

}  // namespace tessera::conformance
