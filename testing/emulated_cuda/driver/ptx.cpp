// Modules as PTX: the directives of the PTX ISA manual that say what a driver needs to know before it compiles one.
#include "../ptx/module.hpp"
#include "image.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <string_view>

namespace tessera::cuda::emulated {
namespace {

constexpr uint32_t kRegistersOfProcessor = 65536, kMostRegisters = 255;
constexpr uint32_t kInstructionBytes = 16;

using ptx::Tokens;
using ptx::Variable;
using Variables = std::map<std::string_view, Variable, std::less<>>;

uint32_t number(std::string_view text) {
    uint32_t value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

// "8.4" -> 84
uint32_t version_number(std::string_view text) {
    const size_t point = text.find('.');
    return point == std::string_view::npos ? 0 : number(text.substr(0, point)) * 10 + number(text.substr(point + 1));
}

uint32_t after(uint32_t used, const Variable& variable) {
    return static_cast<uint32_t>((used + variable.alignment - 1) / variable.alignment * variable.alignment +
                                 variable.bytes);
}

// From behind ".entry" to the end of its body.
ImageKernel read_entry(Tokens& tokens, const Variables& shared_by_several) {
    ImageKernel kernel;
    kernel.name = tokens.next();
    uint32_t blocks = 1;
    std::string_view token = tokens.next();
    while (!token.empty() && token != "{" && token != ";") {
        if (token == ".param") {
            const Variable parameter = ptx::read_variable(tokens);
            kernel.parameters.push_back(static_cast<uint32_t>(parameter.bytes));
            kernel.parameter_bytes = after(kernel.parameter_bytes, parameter);
        } else if (token == ".maxntid" || token == ".reqntid") {
            kernel.maximum_threads = number(tokens.next());
            for (token = tokens.next(); token == ","; token = tokens.next())
                kernel.maximum_threads *= number(tokens.next());
            continue;
        } else if (token == ".minnctapersm") {
            blocks = std::max(number(tokens.next()), 1u);
        }
        token = tokens.next();
    }
    Variables used;
    for (uint32_t depth = token == "{" ? 1 : 0; depth > 0;) {
        token = tokens.next();
        if (token.empty()) break;
        if (token == "{") {
            ++depth;
        } else if (token == "}") {
            --depth;
        } else if (token == ".shared") {
            const Variable variable = ptx::read_variable(tokens);
            kernel.static_shared = after(kernel.static_shared, variable);
        } else if (token == ".local") {
            kernel.local = after(kernel.local, ptx::read_variable(tokens));
        } else if (token == ";") {
            kernel.code_bytes += kInstructionBytes;
        } else if (const auto found = shared_by_several.find(token); found != shared_by_several.end()) {
            used.insert(*found);
        }
    }
    for (const auto& [name, variable] : used) kernel.static_shared = after(kernel.static_shared, variable);
    // The compiler takes as many as the launch bounds leave at most: that many are assumed.
    const uint32_t threads = (std::max(kernel.maximum_threads, 1u) + 31) / 32 * 32;
    kernel.registers = std::min(kMostRegisters, std::max(kRegistersOfProcessor / (threads * blocks) / 8 * 8, 8u));
    return kernel;
}

}  // namespace

bool is_ptx(const void* data) {
    const auto* const text = static_cast<const char*>(data);
    return std::strncmp(text, "//", 2) == 0 || std::strncmp(text, ".version", 8) == 0;
}

bool read_ptx(const void* data, Image& image, std::string& reason) try {
    Tokens tokens(static_cast<const char*>(data));
    image.ptx = true;
    Variables shared_by_several;
    for (std::string_view token = tokens.next(); !token.empty(); token = tokens.next()) {
        if (token == ".version") {
            image.ptx_version = version_number(tokens.next());
        } else if (token == ".target") {
            const std::string_view target = tokens.next();
            if (target.starts_with("sm_")) {
                image.capability = number(target.substr(3)) * 10;
                image.this_card_alone = target.back() < '0' || target.back() > '9';
            }
        } else if (token == ".global" || token == ".const") {
            constexpr std::string_view kModule = "tessera_module_";
            const Variable variable = ptx::read_variable(tokens);
            image.data_bytes += variable.bytes;
            if (!variable.name.starts_with(kModule)) continue;
            image.module = variable.name.substr(kModule.size());
            if (variable.initial.size() == sizeof image.virtual_arch)
                std::memcpy(&image.virtual_arch, variable.initial.data(), sizeof image.virtual_arch);
        } else if (token == ".shared") {
            const Variable variable = ptx::read_variable(tokens);
            shared_by_several.emplace(variable.name, variable);
        } else if (token == ".entry") {
            image.kernels.push_back(read_entry(tokens, shared_by_several));
        }
    }
    if (image.ptx_version == 0) reason = "the PTX has no .version";
    if (image.capability == 0) reason = "the PTX has no .target sm_NN";
    return image.ptx_version != 0 && image.capability != 0;
} catch (const ptx::Error& error) {
    reason = error.what();
    return false;
}

}  // namespace tessera::cuda::emulated
