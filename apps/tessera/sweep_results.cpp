#include "apps/tessera/sweep_results.hpp"

#include "apps/tessera/text_input.hpp"
#include "core/base/error.hpp"
#include "core/setup/prompts.hpp"

#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>

namespace tessera::app {
namespace {

namespace json = boost::json;

constexpr uint32_t kMaximumRowTokens = 1u << 30;

SweepRow checked(double prompt, double generation, double depth, double prompt_seconds, double generation_seconds) {
    const auto tokens = [](double value) {
        if (!(value >= 0 && value <= kMaximumRowTokens)) fail(TSR_CORRUPT_DATA, "a row of {} tokens", value);
        return static_cast<uint32_t>(value);
    };
    if (!(prompt_seconds >= 0 && generation_seconds >= 0 && std::isfinite(prompt_seconds + generation_seconds))) {
        fail(TSR_CORRUPT_DATA, "a row of {} and {} seconds", prompt_seconds, generation_seconds);
    }
    return {tokens(prompt), tokens(generation), tokens(depth), prompt_seconds, generation_seconds};
}

std::optional<SweepRow> row_of_json(std::string_view line) {
    boost::system::error_code error;
    const json::value value = json::parse(line, error);
    const json::object* object = error ? nullptr : value.if_object();
    if (!object || !object->contains("n_kv")) return std::nullopt;
    const auto number = [&](std::string_view name) {
        const json::value* field = object->if_contains(name);
        if (!field || !field->is_number())
            fail(TSR_CORRUPT_DATA, "expected a number '{}' in {}", name, line.substr(0, 200));
        return field->to_number<double>();
    };
    return checked(number("pp"), number("tg"), number("n_kv"), number("t_pp"), number("t_tg"));
}

// "| 512 | 128 | 0 | T_PP s | S_PP t/s | T_TG s | S_TG t/s |", perhaps with more columns.
std::optional<SweepRow> row_of_table(std::string line) {
    std::ranges::replace(line, '|', ' ');
    std::istringstream stream(line);
    double prompt = 0, generation = 0, depth = 0, prompt_seconds = 0, prompt_speed = 0, generation_seconds = 0,
           generation_speed = 0;
    if (!(stream >> prompt >> generation >> depth >> prompt_seconds >> prompt_speed >> generation_seconds >>
          generation_speed))
        return std::nullopt;
    return checked(prompt, generation, depth, prompt_seconds, generation_seconds);
}

}  // namespace

std::string sweep_table_head() {
    return fmt::format(
        "|{0:>6} | {1:>6} | {2:>6} | {3:>8} | {4:>8} | {5:>8} | {6:>8} "
        "|\n|{7:->6}-|-{7:->6}-|-{7:->6}-|-{7:->8}-|-{7:->8}-|-{7:->8}-|-{7:->8}-|\n",
        "PP", "TG", "N_KV", "T_PP s", "S_PP t/s", "T_TG s", "S_TG t/s", "");
}

std::string sweep_table_line(const SweepRow& row) {
    return fmt::format("|{:>6} | {:>6} | {:>6} | {:>8.3f} | {:>8.2f} | {:>8.3f} | {:>8.2f} |\n", row.prompt,
                       row.generation, row.depth, row.prompt_seconds, row.prompt_speed(), row.generation_seconds,
                       row.generation_speed());
}

std::string sweep_json_line(const SweepRow& row) {
    return json::serialize(json::object{{"pp", row.prompt},
                                        {"tg", row.generation},
                                        {"n_kv", row.depth},
                                        {"t_pp", row.prompt_seconds},
                                        {"speed_pp", row.prompt_speed()},
                                        {"t_tg", row.generation_seconds},
                                        {"speed_tg", row.generation_speed()}}) +
           '\n';
}

SweepResults read_sweep_results(const std::filesystem::path& file) {
    SweepResults results{file.stem().string(), {}};
    for (const std::string& line : lines_of(read_text(file))) {
        const size_t start = line.find_first_not_of(" \t");
        if (start == std::string::npos) continue;
        try {
            const auto row = line[start] == '{'   ? row_of_json(line)
                             : line[start] == '|' ? row_of_table(line)
                                                  : std::nullopt;
            if (row) results.rows.push_back(*row);
        } catch (const Error& error) {
            fail(error.code(), "{}: {}", file.string(), error.what());
        }
    }
    if (results.rows.empty()) {
        fail(TSR_CORRUPT_DATA, "{}: expected rows of a sweep, as JSON lines or as a table, found none", file.string());
    }
    std::ranges::stable_sort(results.rows, {}, &SweepRow::depth);
    return results;
}

}  // namespace tessera::app
