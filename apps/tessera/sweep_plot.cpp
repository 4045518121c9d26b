#include "apps/tessera/sweep_results.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace tessera::app {
namespace {

// Colours that are distinguishable with any colour vision (Okabe and Ito, 2008).
constexpr std::array<std::string_view, 7> kColours = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                      "#E69F00", "#56B4E9", "#000000"};

// Pixels.
constexpr double kPanelWidth = 420, kPanelHeight = 300, kLeft = 64, kTop = 40, kBetween = 84, kBelow = 56,
                 kLegendLine = 20;
constexpr double kTicks = 6;

// 1, 2 or 5 times a power of ten, of which about six span the range.
double tick_step(double range) {
    const double rough = range / kTicks;
    const double power = std::pow(10.0, std::floor(std::log10(rough)));
    for (const double factor : {1.0, 2.0, 5.0}) {
        if (rough <= factor * power) return factor * power;
    }
    return 10 * power;
}

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '<':
                out += "&lt;";
                break;
            case '&':
                out += "&amp;";
                break;
            case '"':
                out += "&quot;";
                break;
            default:
                out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
        }
    }
    return out;
}

struct Panel {
    std::string_view title;
    double (SweepRow::*speed)() const;
    double x;  // left edge of its frame
};

std::string text_at(double x, double y, std::string_view anchor, std::string_view text) {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor, escaped(text));
}

std::string draw(const Panel& panel, const std::vector<SweepResults>& results) {
    double deepest = 1, fastest = 0;
    for (const SweepResults& result : results) {
        for (const SweepRow& row : result.rows) {
            deepest = std::max<double>(deepest, row.depth);
            fastest = std::max(fastest, (row.*panel.speed)());
        }
    }
    if (fastest <= 0) fastest = 1;
    const double x_step = tick_step(deepest), y_step = tick_step(fastest);
    const double top = std::ceil(fastest / y_step) * y_step;
    const auto x_of = [&](double depth) { return panel.x + depth / deepest * kPanelWidth; };
    const auto y_of = [&](double speed) { return kTop + kPanelHeight - speed / top * kPanelHeight; };

    std::string svg = text_at(panel.x + kPanelWidth / 2, kTop - 14, "middle", panel.title);
    for (double y = 0; y <= top * 1.0001; y += y_step) {
        svg += fmt::format("<path class=\"grid\" d=\"M{:.1f} {:.1f}h{}\"/>\n", panel.x, y_of(y), kPanelWidth) +
               text_at(panel.x - 8, y_of(y) + 4, "end", fmt::format("{:g}", y));
    }
    for (double x = 0; x <= deepest * 1.0001; x += x_step)
        svg += text_at(x_of(x), kTop + kPanelHeight + 18, "middle", fmt::format("{:g}", x));
    svg += text_at(panel.x + kPanelWidth / 2, kTop + kPanelHeight + 38, "middle", "cached tokens");
    for (size_t i = 0; i < results.size(); ++i) {
        std::string line, points;
        for (const SweepRow& row : results[i].rows) {
            const double speed = (row.*panel.speed)();
            if (speed <= 0) continue;
            line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : "L", x_of(row.depth), y_of(speed));
            points += fmt::format(
                "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"><title>{}: {:.2f} tokens/s at {}</title></circle>\n",
                x_of(row.depth), y_of(speed), escaped(results[i].name), speed, row.depth);
        }
        const std::string_view colour = kColours[i % kColours.size()];
        svg += fmt::format(
            "<path fill=\"none\" stroke=\"{0}\" stroke-width=\"2\" d=\"{1}\"/>\n<g fill=\"{0}\">\n{2}</g>\n", colour,
            line, points);
    }
    return svg;
}

}  // namespace

std::string sweep_plot(const std::vector<SweepResults>& results) {
    const double width = kLeft + 2 * kPanelWidth + kBetween + 24;
    const double below = kTop + kPanelHeight + kBelow;
    const double height = below + kLegendLine * static_cast<double>(results.size()) + 12;
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
        "{1:.0f}\" font-family=\"sans-serif\" font-size=\"13\">\n"
        "<style>.grid {{ stroke: #ccc; }}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        width, height);
    svg += draw({"prompt, tokens/s", &SweepRow::prompt_speed, kLeft}, results);
    svg += draw({"generation, tokens/s", &SweepRow::generation_speed, kLeft + kPanelWidth + kBetween}, results);
    for (size_t i = 0; i < results.size(); ++i) {
        const double y = below + kLegendLine * static_cast<double>(i) + 10;
        svg += fmt::format("<path stroke=\"{}\" stroke-width=\"3\" d=\"M{:.1f} {:.1f}h24\"/>\n",
                           kColours[i % kColours.size()], kLeft, y - 4) +
               text_at(kLeft + 32, y, "start", results[i].name);
    }
    return svg + "</svg>\n";
}

}  // namespace tessera::app
