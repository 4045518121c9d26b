#include "apps/tessera/bundled.hpp"

#include "core/base/file.hpp"
#include "core/setup/machine.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include <exception>

namespace tessera::app {
namespace {

constexpr uint64_t kMaxBytes = uint64_t{16} << 20;
constexpr std::string_view kAboutItself = "What can you do?";

}  // namespace

BundledKnowledge bundled_knowledge() {
    BundledKnowledge knowledge;
    try {
        const auto file = boost::json::parse(read_all(bundled_model().parent_path() / "prompts.json", kMaxBytes));
        for (const auto& kind : file.at("forms").as_array()) {
            const auto& example = kind.at("example").as_array();
            knowledge.questions.emplace_back(example.at(0).as_string());
            if (example.at(0).as_string() == kAboutItself) knowledge.summary = example.at(1).as_string();
        }
    } catch (const std::exception&) {
        return {};
    }
    return knowledge;
}

}  // namespace tessera::app
