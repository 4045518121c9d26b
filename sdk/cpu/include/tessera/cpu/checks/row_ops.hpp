// The checks of all ops that work on one row at a time, by the name of the op.
#pragma once

#include <tessera/cpu/checks/elementwise.hpp>
#include <tessera/cpu/checks/routing.hpp>
#include <tessera/cpu/checks/storage.hpp>

#include <span>

namespace tessera::cpu {

// nullptr if the op is not among them.
constexpr CheckFunction find_row_check(std::string_view op) noexcept {
    for (const std::span<const NamedCheck> checks :
         {std::span<const NamedCheck>(kElementwiseChecks), std::span<const NamedCheck>(kRoutingChecks),
          std::span<const NamedCheck>(kStorageChecks)}) {
        for (const NamedCheck& named : checks) {
            if (named.op == op) return named.check;
        }
    }
    return nullptr;
}

}  // namespace tessera::cpu
