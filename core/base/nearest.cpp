#include "core/base/nearest.hpp"

#include "core/base/text.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace tessera {
namespace {

constexpr size_t kMaxLength = 64;  // time grows with the product of the lengths

// Insertions, deletions, replacements and swaps of neighbours that change one name into the other (Damerau, CACM
// 7(3), 1964; each position is edited once).
size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
    for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
    std::iota(d[0].begin(), d[0].end(), size_t{0});
    for (size_t i = 1; i <= a.size(); ++i) {
        for (size_t j = 1; j <= b.size(); ++j) {
            d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[a.size()][b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view word, std::span<const std::string_view> names) {
    std::string_view best;
    // A third of the letters may be wrong; with more it is another name.
    size_t limit = std::max<size_t>(2, word.size() / 3 + 1);
    for (const std::string_view name : names) {
        if (name.size() > kMaxLength) continue;
        const size_t distance = edit_distance(word.substr(0, kMaxLength), name);
        if (distance < limit) {
            limit = distance;
            best = name;
        }
    }
    return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> names) {
    const std::string_view near = nearest_name(word, names);
    return near.empty() ? "" : fmt::format(" (did you mean '{}'?)", printable(near, 60));
}

}  // namespace tessera
