// Modules as PTX: the directives of the PTX ISA manual that say what a driver needs to know before it compiles one.
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

// Names, directives and numbers as a whole, other characters one by one; no comments and no contents of strings.
class Tokens {
  public:
    explicit Tokens(std::string_view text) : text_(text) {}

    // Empty at the end.
    std::string_view next() {
        skip();
        if (at_ == text_.size()) return {};
        size_t end = at_ + 1;
        if (text_[at_] == '"') {
            end = std::min(text_.find('"', end), text_.size() - 1) + 1;
        } else if (in_word(text_[at_])) {
            while (end < text_.size() && in_word(text_[end])) ++end;
        }
        const std::string_view token = text_.substr(at_, end - at_);
        at_ = end;
        return token;
    }

  private:
    static bool in_word(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
               c == '$' || c == '%';
    }
    void skip() {
        while (at_ < text_.size()) {
            const std::string_view rest = text_.substr(at_);
            if (rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\n' || rest[0] == '\r') {
                ++at_;
            } else if (rest.starts_with("//")) {
                at_ += std::min(rest.find('\n'), rest.size());
            } else if (rest.starts_with("/*")) {
                const size_t end = rest.find("*/");
                at_ += end == std::string_view::npos ? rest.size() : end + 2;
            } else {
                return;
            }
        }
    }

    std::string_view text_;
    size_t at_ = 0;
};

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

struct Variable {
    std::string name;
    uint32_t alignment = 1;
    uint64_t bytes = 0;
    uint32_t value = 0;     // of one number
    std::string_view last;  // the token after it
};

// What stands between ".global" (or .shared, .param and so on) and the ';', ',' or ')' that ends the declaration.
Variable read_variable(Tokens& tokens) {
    Variable variable;
    uint32_t element = 0;
    uint64_t count = 1;
    for (std::string_view token = tokens.next(); !token.empty(); token = tokens.next()) {
        if (token == ";" || token == "," || token == ")") {
            variable.last = token;
            break;
        }
        if (token == ".align") {
            variable.alignment = std::max(number(tokens.next()), 1u);
        } else if (token == "[") {
            const std::string_view extent = tokens.next();
            count = extent == "]" ? 0 : count * number(extent);
        } else if (token == "=") {
            token = tokens.next();
            variable.value = number(token);
            for (uint32_t depth = token == "{" ? 1 : 0; depth > 0 && !token.empty();) {
                token = tokens.next();
                if (token == "{") ++depth;
                if (token == "}") --depth;
            }
        } else if (token[0] == '.') {
            // .b8, .u32, .f64 and so on; .v2 and .v4 stand before one of them
            if (token == ".v2" || token == ".v4")
                count *= number(token.substr(2));
            else if (token.size() > 2 && std::strchr("busf", token[1]))
                element = number(token.substr(2)) / 8;
        } else if (variable.name.empty() && token != "]") {
            variable.name = token;
        }
    }
    variable.bytes = element * count;
    variable.alignment = std::max(variable.alignment, element);
    return variable;
}

uint32_t after(uint32_t used, const Variable& variable) {
    return static_cast<uint32_t>((used + variable.alignment - 1) / variable.alignment * variable.alignment +
                                 variable.bytes);
}

// From behind ".entry" to the end of its body.
ImageKernel read_entry(Tokens& tokens, const std::map<std::string, Variable, std::less<>>& shared_by_several) {
    ImageKernel kernel;
    kernel.name = tokens.next();
    uint32_t blocks = 1;
    std::string_view token = tokens.next();
    while (!token.empty() && token != "{" && token != ";") {
        if (token == ".param") {
            const Variable parameter = read_variable(tokens);
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
    std::map<std::string, Variable, std::less<>> used;
    for (uint32_t depth = token == "{" ? 1 : 0; depth > 0;) {
        token = tokens.next();
        if (token.empty()) break;
        if (token == "{") {
            ++depth;
        } else if (token == "}") {
            --depth;
        } else if (token == ".shared") {
            const Variable variable = read_variable(tokens);
            kernel.static_shared = after(kernel.static_shared, variable);
        } else if (token == ".local") {
            kernel.local = after(kernel.local, read_variable(tokens));
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

bool read_ptx(const void* data, Image& image, std::string& reason) {
    Tokens tokens(static_cast<const char*>(data));
    image.ptx = true;
    std::map<std::string, Variable, std::less<>> shared_by_several;
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
            const Variable variable = read_variable(tokens);
            image.data_bytes += variable.bytes;
            if (!variable.name.starts_with(kModule)) continue;
            image.module = variable.name.substr(kModule.size());
            image.virtual_arch = variable.value;
        } else if (token == ".shared") {
            const Variable variable = read_variable(tokens);
            shared_by_several.emplace(variable.name, variable);
        } else if (token == ".entry") {
            image.kernels.push_back(read_entry(tokens, shared_by_several));
        }
    }
    if (image.ptx_version == 0) reason = "the PTX has no .version";
    if (image.capability == 0) reason = "the PTX has no .target sm_NN";
    return image.ptx_version != 0 && image.capability != 0;
}

}  // namespace tessera::cuda::emulated
