#include "tests/fuzz/json_mutator.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace tessera::fuzz {
namespace {

namespace json = boost::json;

class Mutation {
  public:
    Mutation(uint32_t seed, std::span<const std::string_view> names, std::span<const std::string_view> texts)
        : random_(seed), names_(names), texts_(texts) {}

    void apply(json::value& root) {
        collect(root);
        json::value& target = *all_[below(all_.size())];
        switch (below(6)) {
            case 0:
                target = made();
                return;
            case 1: {
                json::value copy = *all_[below(all_.size())];
                target = std::move(copy);
                return;
            }
            case 2:
                // The value may lie in itself afterwards, but not before.
                target = below(2) ? json::value(json::array{json::value(target)})
                                  : json::value(json::object{{name(), json::value(target)}});
                return;
            default:
                if (target.is_object()) return change(target.get_object());
                if (target.is_array()) return change(target.get_array());
                if (target.is_string()) return change(target.get_string());
                target = made();
        }
    }

  private:
    size_t below(size_t count) { return count == 0 ? 0 : random_() % count; }

    void collect(json::value& value) {
        constexpr size_t kLimit = 2000;
        if (all_.size() >= kLimit) return;
        all_.push_back(&value);
        if (value.is_object()) {
            for (auto& member : value.get_object()) collect(member.value());
        } else if (value.is_array()) {
            for (json::value& element : value.get_array()) collect(element);
        }
    }

    std::string name() { return std::string(names_[below(names_.size())]); }

    std::string text() {
        std::string text;
        for (size_t count = 1 + below(3); count > 0; --count) text += texts_[below(texts_.size())];
        return text;
    }

    json::value made() {
        static constexpr int64_t kIntegers[] = {0,
                                                1,
                                                -1,
                                                2,
                                                20,
                                                64,
                                                128,
                                                4096,
                                                1 << 24,
                                                std::numeric_limits<int32_t>::max(),
                                                int64_t{1} << 32,
                                                std::numeric_limits<int64_t>::max(),
                                                std::numeric_limits<int64_t>::min()};
        static constexpr double kNumbers[] = {0.5, -0.5, 1e-7, 1e6, -1e6, 1e15, 1e300, -1e300, 3.0, 1.0000001};
        switch (below(9)) {
            case 0:
                return nullptr;
            case 1:
                return below(2) == 0;
            case 2:
                return kIntegers[below(std::size(kIntegers))];
            case 3:
                return kNumbers[below(std::size(kNumbers))];
            case 4:
                return json::object{{name(), text()}};
            case 5:
                return json::array{json::value(text()), json::value(static_cast<int64_t>(below(1100)))};
            case 6:
                return json::value(std::numeric_limits<uint64_t>::max());
            default:
                return json::value(text());
        }
    }

    void change(json::object& object) {
        if (!object.empty() && below(3) == 0) {
            object.erase(object.begin() + static_cast<std::ptrdiff_t>(below(object.size())));
        } else {
            object[name()] = made();
        }
    }

    void change(json::array& array) {
        const auto at = [&](size_t index) { return array.begin() + static_cast<std::ptrdiff_t>(index); };
        switch (array.empty() ? 2 : below(4)) {
            case 0:
                array.erase(at(below(array.size())));
                return;
            case 1: {
                json::value copy = array[below(array.size())];
                array.insert(at(below(array.size())), std::move(copy));
                return;
            }
            case 2:
                array.push_back(made());
                return;
            default:
                std::swap(array[below(array.size())], array[below(array.size())]);
        }
    }

    void change(json::string& string) {
        std::string text_of(string.data(), string.size());
        const size_t at = below(text_of.size() + 1);
        switch (below(3)) {
            case 0:
                text_of.insert(at, text());
                break;
            case 1:
                text_of.erase(at, 1 + below(8));
                break;
            default:
                if (at < text_of.size()) text_of[at] = static_cast<char>(random_());
        }
        string.assign(text_of);
    }

    std::mt19937 random_;
    std::span<const std::string_view> names_, texts_;
    std::vector<json::value*> all_;
};

}  // namespace

size_t mutate_json(std::span<char> data, size_t size, uint32_t seed, std::span<const std::string_view> names,
                   std::span<const std::string_view> texts) {
    boost::system::error_code error;
    json::value root = json::parse(json::string_view(data.data(), size), error);
    if (error) return 0;
    Mutation(seed, names, texts).apply(root);
    const std::string written = json::serialize(root);
    if (written.size() > data.size()) return 0;
    std::ranges::copy(written, data.begin());
    return written.size();
}

}  // namespace tessera::fuzz
