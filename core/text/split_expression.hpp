// The regular expressions of pre-tokenizers, parsed.
//
// Understood as models publish them: alternatives, groups, (?i:...) for letters of ASCII, ? * + {n} {n,m}, classes with
// ranges, nested classes and && (as Oniguruma has them), \p{..} \P{..} \s \S \d \r \n \t \x{..}, and what looks at one
// character: (?=X) (?!X) (?<=X) (?<!X) where X is a class, and $, the end of the text. \s is White_Space, \d is \p{Nd}.
#pragma once

#include "core/text/char_set.hpp"

#include <string_view>
#include <vector>

namespace tessera::text {

struct SplitNode {
    enum class Kind {
        kSet,          // one character of `set`
        kSequence,     // all of `parts`
        kAlternative,  // the first of `parts` that leads to a match
        kRepeat,       // parts[0], `least` to `most` times, as often as leads to a match
        kNext,         // the next character is in `set`
        kNotNext,      // it is not, or there is none
        kBefore,       // the character before is in `set`
        kNotBefore,    // it is not, or there is none
    };
    static constexpr int kUnbounded = -1;

    Kind kind;
    CharSet set = {};
    std::vector<SplitNode> parts = {};
    int least = 0;
    int most = 0;
};

// Throws Error(TSR_INVALID_ARGUMENT) that says where, for what is not understood.
SplitNode parse_split_expression(std::string_view expression);

}  // namespace tessera::text
