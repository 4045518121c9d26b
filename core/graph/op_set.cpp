#include "core/graph/op_set.hpp"

#include "core/base/error.hpp"

#include <algorithm>

namespace tessera {

void OpSet::add(const tsr_operator* op) {
    if (find(op->name)) fail(TSR_INVALID_ARGUMENT, "the op '{}' is there already", op->name);
    operators_.push_back(op);
}

const tsr_operator* OpSet::find(std::string_view name) const noexcept {
    const auto at = std::ranges::find_if(operators_, [&](const tsr_operator* op) { return name == op->name; });
    return at == operators_.end() ? nullptr : *at;
}

}  // namespace tessera
