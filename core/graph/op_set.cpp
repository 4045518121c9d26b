#include "core/graph/op_set.hpp"

#include "core/base/error.hpp"

#include <algorithm>

namespace tessera {

void OpSet::add(const tsr_operator* op, const char* plugin) {
    if (find(op->name)) fail(TSR_INVALID_ARGUMENT, "the op '{}' exists already", op->name);
    operators_.push_back(op);
    if (plugin) plugins_[op->name] = plugin;
}

const char* OpSet::plugin_of(std::string_view op) const noexcept {
    const auto at = plugins_.find(op);
    return at == plugins_.end() ? "(core)" : at->second;
}

PluginCall OpSet::call(const tsr_operator& op, const char* function, const char* node) const {
    return {plugin_of(op.name), function, "operator", op.name, node};
}

const tsr_operator* OpSet::find(std::string_view name) const noexcept {
    const auto at = std::ranges::find_if(operators_, [&](const tsr_operator* op) { return name == op->name; });
    return at == operators_.end() ? nullptr : *at;
}

}  // namespace tessera
