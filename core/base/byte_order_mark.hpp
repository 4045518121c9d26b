// The UTF-8 byte-order mark, which editors of Windows put before a text.
#pragma once

#include <string_view>

namespace tessera {

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace tessera
