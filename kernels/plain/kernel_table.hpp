// The kernel table of a plugin that computes with the oracle.
#pragma once

#include "plain.hpp"

#include <tessera/kernel.h>

#include <array>
#include <string>

namespace tessera::plain {

// A kernel for each of kOps, named "OP.SUFFIX": `prototype` (kind, priority and functions) with the algorithm as its
// context. Kernels point into the table, so it is not moved.
class KernelTable {
  public:
    KernelTable(const tsr_kernel& prototype, const std::string& suffix) {
        for (uint32_t i = 0; i < kOpCount; ++i) {
            names_[i] = std::string(kOps[i].name) + "." + suffix;
            kernels_[i] = prototype;
            kernels_[i].struct_size = sizeof(tsr_kernel);
            kernels_[i].name = names_[i].c_str();
            kernels_[i].op = kOps[i].name;
            kernels_[i].op_version = 1;
            kernels_[i].context = &kOps[i];
            list_[i] = &kernels_[i];
        }
    }
    KernelTable(const KernelTable&) = delete;
    KernelTable& operator=(const KernelTable&) = delete;

    const tsr_kernel* const* list() const noexcept { return list_.data(); }

    // The algorithm of a kernel of the table.
    static const Op& op_of(const tsr_kernel* kernel) noexcept { return *static_cast<const Op*>(kernel->context); }

  private:
    std::array<std::string, kOpCount> names_;
    std::array<tsr_kernel, kOpCount> kernels_{};
    std::array<const tsr_kernel*, kOpCount> list_{};
};

}  // namespace tessera::plain
