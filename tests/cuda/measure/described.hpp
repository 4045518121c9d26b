// A node and what its operands are to hold, for measuring a kernel.
#pragma once

#include <tessera/cpp/node.hpp>
#include <tessera/kernel.h>
#include <tessera/ops.h>

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <vector>

namespace tessera::test {

// What an operand holds.
enum class Content {
    kNumbers,   // some numbers of its type, all finite: weights, caches and activations that are read
    kIntegers,  // given ones
    kNothing,   // an output
};

struct DescribedOperand {
    tsr_tensor tensor{};  // dense, in the canonical layout; type NONE: absent
    Content content = Content::kNothing;
    std::vector<int32_t> integers;
};

// Operands are added inputs first, then outputs, in the order of the op. Pointers in node() are valid as long as the
// object and until the next change.
class Described {
  public:
    explicit Described(const char* op) : op_(op) {}
    Described(const Described&) = delete;
    Described& operator=(const Described&) = delete;

    // Extents fastest first. Throws std::invalid_argument for a type without a size.
    void weight(tsr_type type, std::initializer_list<int64_t> dims);
    void cache(tsr_type type, std::initializer_list<int64_t> dims);
    void activation(std::initializer_list<int64_t> dims);  // f32, over all rows of the step
    void integers(std::initializer_list<int64_t> dims, std::vector<int32_t> values, int32_t range = TSR_RANGE_ROWS);
    void absent();
    void output(std::initializer_list<int64_t> dims);  // f32, over all rows
    void attribute(const char* name, int64_t value);
    void attribute(const char* name, double value);

    const tsr_node& node();
    std::deque<DescribedOperand>& operands() noexcept { return operands_; }

  private:
    DescribedOperand& add(tsr_type type, tsr_role role, std::initializer_list<int64_t> dims, int32_t range,
                          Content content);

    const char* op_;
    std::deque<DescribedOperand> operands_;
    size_t outputs_ = 0;
    std::deque<tsr_attribute> attributes_;
    std::vector<const tsr_attribute*> attribute_pointers_;
    std::vector<const tsr_tensor*> pointers_;
    tsr_node node_{};
};

// Rows over all dimensions but the first, and bytes of all of them.
int64_t rows_of(const tsr_tensor& tensor) noexcept;
int64_t bytes_of(const tsr_tensor& tensor) noexcept;
// Bytes of one row of `elements`; throws std::invalid_argument for a type without a size.
int64_t row_bytes_of(tsr_type type, int64_t elements);

}  // namespace tessera::test
