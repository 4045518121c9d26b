// What of a file a model does without: refused, unless it is known not to matter.
#pragma once

#include "core/model/model_file.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// A key that an architecture does not read, with the values that change nothing.
struct KeyRule {
    std::string_view name;     // without the prefix; a final '*' stands for any rest
    std::string_view neutral;  // values separated by blanks ("0 1", "false"), all elements of an array; "context": at
                               // least the key context_length; "*": any value; empty: none
    std::string_view reason;   // what is computed, or why those change nothing
    bool is_said = false;      // its value is of something that is not computed: a note says so
};

// An architecture's own lists. The keys are looked up before those that are common to all.
struct KnownUnused {
    std::span<const UnusedTensors> tensors;
    std::span<const KeyRule> keys;
};

// Call it when the graph is built. Every tensor that was neither claimed nor is known to be unused, and every key under
// the prefix that was not read and whose name shows that it changes results, throws Error(TSR_UNSUPPORTED) naming them;
// with `allow` they are told in a note instead. Returns notes, a line each.
std::vector<std::string> check_unused(const ModelFile& model, const KnownUnused& known, bool allow);

}  // namespace tessera
