// Where text comes to lie on a terminal of a given width.
#pragma once

#include <cstddef>
#include <string_view>

namespace tessera::app {

struct ScreenPlace {
    size_t row = 0, column = 0;

    bool operator==(const ScreenPlace&) const = default;
};

// The place after `text`, in UTF-8, that begins in the first column of a terminal with `columns` columns and is
// broken at its edge, as the line editor draws it: control characters are two columns, a tab goes to the next multiple
// of eight. The locale decides how wide other characters are.
ScreenPlace place_after(std::string_view text, size_t columns);

}  // namespace tessera::app
