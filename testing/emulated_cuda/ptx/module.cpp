#include "module.hpp"

#include "translate.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

namespace tessera::cuda::ptx {
namespace {

constexpr uint64_t kMostBytes = 1ull << 32;  // of a variable
constexpr uint64_t kGap = 256;               // between variables, where nothing may be accessed

uint64_t rounded(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

uint64_t integer(Tokens& tokens) {
    const bool negative = tokens.accept("-");
    uint64_t value = 0;
    const std::string_view token = tokens.next();
    if (!read_integer(token, value))
        throw Error(tokens.line(), "expected a number, found \"" + std::string(token) + "\"");
    return negative ? ~value + 1 : value;
}

// A number in an initialiser as the bits of an element.
uint64_t element(Tokens& tokens, Type type) {
    const std::string_view token = tokens.peek();
    if ((token.starts_with("0f") || token.starts_with("0F") || token.starts_with("0d") || token.starts_with("0D")) &&
        type.is_float()) {
        tokens.next();
        uint64_t bits = 0;
        if (token.size() != 2 + type.bits / 4u || !read_integer("0x" + std::string(token.substr(2)), bits))
            throw Error(tokens.line(), "expected a number of " + std::to_string(type.bits) + " bits, found \"" +
                                           std::string(token) + "\"");
        return bits;
    }
    return integer(tokens);
}

void read_initial(Tokens& tokens, Variable& variable, bool array) {
    const uint32_t size = variable.type.bytes();
    const auto add = [&] {
        const uint64_t value = element(tokens, variable.type);
        const auto* const from = reinterpret_cast<const uint8_t*>(&value);
        variable.initial.insert(variable.initial.end(), from, from + size);
    };
    if (!array) {
        add();
    } else {
        tokens.expect("{");
        if (!tokens.accept("}")) {
            do add();
            while (tokens.accept(","));
            tokens.expect("}");
        }
    }
    if (variable.bytes == 0) variable.bytes = variable.initial.size();
    if (variable.initial.size() > variable.bytes)
        throw Error(tokens.line(), std::string(variable.name) + " has more initial values than elements");
}

}  // namespace

Variable read_variable(Tokens& tokens) {
    Variable variable;
    uint64_t count = 1;
    for (;;) {
        const std::string_view token = tokens.peek();
        if (token == ".align") {
            tokens.next();
            const uint64_t alignment = integer(tokens);
            if (alignment == 0 || alignment > 4096 || (alignment & (alignment - 1)) != 0)
                throw Error(tokens.line(), "an alignment of " + std::to_string(alignment));
            variable.alignment = static_cast<uint32_t>(alignment);
        } else if (token == ".attribute") {
            tokens.next();
            while (!tokens.accept(")")) {
                if (tokens.next().empty()) throw Error(tokens.line(), ".attribute without its )");
            }
        } else if (token == ".v2" || token == ".v4") {
            tokens.next();
            count *= token == ".v2" ? 2 : 4;
        } else if (token == ".ptr") {  // .param .u64 .ptr .global .align 16 name: what the pointer points to
            tokens.next();
            while (tokens.peek() == ".global" || tokens.peek() == ".const" || tokens.peek() == ".shared" ||
                   tokens.peek() == ".local")
                tokens.next();
            if (tokens.accept(".align")) integer(tokens);
        } else {
            break;
        }
        if (variable.type.kind != Kind::kNone) continue;
        if (!tokens.peek().starts_with('.')) break;
        const Type type = type_named(tokens.peek().substr(1));
        if (type.kind == Kind::kNone) continue;
        tokens.next();
        variable.type = type;
    }
    if (variable.type.kind == Kind::kNone) {
        const std::string_view token = tokens.next();
        variable.type = type_named(token.starts_with('.') ? token.substr(1) : token);
        if (variable.type.kind == Kind::kNone || variable.type == kPredicate)
            throw Error(tokens.line(), "expected the type of a variable, found \"" + std::string(token) + "\"");
        while (tokens.peek() == ".ptr") {
            tokens.next();
            while (tokens.peek().starts_with('.')) {
                if (tokens.next() == ".align") integer(tokens);
            }
        }
    }
    variable.name = tokens.next();
    if (variable.name.empty() || variable.name.find_first_of(";,(){}[]=") != std::string_view::npos)
        throw Error(tokens.line(), "expected the name of a variable, found \"" + std::string(variable.name) + "\"");
    bool array = false;
    while (tokens.accept("[")) {
        array = true;
        if (tokens.accept("]")) {
            count = 0;
            continue;
        }
        const uint64_t extent = integer(tokens);
        tokens.expect("]");
        if (extent > kMostBytes || count * extent > kMostBytes)
            throw Error(tokens.line(), std::string(variable.name) + " has more than 4 GiB");
        count *= extent;
    }
    variable.bytes = count * variable.type.bytes();
    if (variable.bytes > kMostBytes) throw Error(tokens.line(), std::string(variable.name) + " has more than 4 GiB");
    variable.alignment = std::max(variable.alignment, variable.type.bytes());
    if (tokens.accept("=")) read_initial(tokens, variable, array);
    return variable;
}

Module::Module(std::string text) : text_(std::move(text)) {
    Tokens tokens(text_);
    for (std::string_view token = tokens.next(); !token.empty(); token = tokens.next()) {
        if (token == ".entry") {
            const uint32_t line = tokens.line();
            const size_t begin = tokens.position();
            const std::string_view name = tokens.peek();
            for (token = tokens.next(); token != "{" && token != ";"; token = tokens.next()) {
                if (token.empty()) throw Error(line, ".entry without a body");
            }
            if (token == ";") continue;  // a declaration
            tokens.skip_block();
            const std::string_view body = std::string_view(text_).substr(begin, tokens.position() - begin);
            if (!entries_.emplace(name, Entry{body, line, nullptr}).second)
                throw Error(line, "two kernels of the name " + std::string(name));
        } else if (token == ".func") {  // its calls are refused where they stand
            for (token = tokens.next(); token != "{" && token != ";"; token = tokens.next()) {
                if (token.empty()) throw Error(tokens.line(), ".func without a body");
            }
            if (token == "{") tokens.skip_block();
        } else if (token == ".global") {
            declare(tokens, Space::kGlobal);
        } else if (token == ".const") {
            declare(tokens, Space::kConst);
        } else if (token == ".shared") {
            declare(tokens, Space::kShared);
        } else if (token == ".version" || token == ".target" || token == ".address_size") {
            if (token == ".address_size" && tokens.peek() != "64")
                throw Error(tokens.line(), "addresses of 64 bits only");
            do tokens.next();
            while (tokens.accept(","));
        } else if (token == ".file") {
            tokens.next();
            while (tokens.peek().starts_with('"') || tokens.peek() == ",") {
                if (tokens.next() == ",") tokens.next();
            }
        } else if (token == ".section") {
            while (tokens.next() != "{") {
                if (tokens.peek().empty()) throw Error(tokens.line(), ".section without a body");
            }
            tokens.skip_block();
        } else if (token == ".pragma") {
            tokens.next();
            tokens.expect(";");
        } else if (token != ".visible" && token != ".extern" && token != ".weak" && token != ".common") {
            throw Error(tokens.line(), "unknown or unsupported outside of kernels: \"" + std::string(token) + "\"");
        }
    }
    place_data();
}

Module::~Module() {
    ::operator delete (memory_, std::align_val_t{4096});
}

void Module::declare(Tokens& tokens, Space space) {
    do {
        Variable variable = read_variable(tokens);
        if (space == Space::kShared && !variable.initial.empty())
            throw Error(tokens.line(), "shared memory has no initial values");
        if (space == Space::kShared && variable.bytes == 0) {
            if (!dynamic_shared_.empty() && dynamic_shared_ != variable.name)
                throw Error(tokens.line(), "two arrays in dynamic shared memory: " + std::string(dynamic_shared_) +
                                               " and " + std::string(variable.name));
            dynamic_shared_ = variable.name;
        } else {
            if (variable.bytes == 0) throw Error(tokens.line(), std::string(variable.name) + " has no extent");
            (space == Space::kShared ? shared_ : variables_).emplace_back(std::move(variable), space);
        }
    } while (tokens.accept(","));
    tokens.expect(";");
}

// Gives variables memory, with gaps between them.
void Module::place_data() {
    std::vector<uint64_t> offsets;
    for (const auto& [variable, space] : variables_) {
        memory_bytes_ = rounded(memory_bytes_ + kGap, std::max(variable.alignment, 16u));
        offsets.push_back(memory_bytes_);
        memory_bytes_ += variable.bytes;
        if (memory_bytes_ > kMostBytes) throw Error(1, "variables of more than 4 GiB");
    }
    memory_bytes_ += kGap;
    memory_ = static_cast<uint8_t*>(::operator new (memory_bytes_, std::align_val_t{4096}));
    std::memset(memory_, 0, memory_bytes_);
    for (size_t i = 0; i < variables_.size(); ++i) {
        const auto& [variable, space] = variables_[i];
        uint8_t* const at = memory_ + offsets[i];
        std::copy(variable.initial.begin(), variable.initial.end(), at);
        const auto address = reinterpret_cast<uintptr_t>(at);
        symbols_.insert_or_assign(variable.name, Symbol{space, address});
        data_.push_back({address, variable.bytes, std::string(variable.name), space == Space::kConst});
    }
}

std::vector<std::string_view> Module::kernels() const {
    std::vector<std::string_view> names;
    for (const auto& [name, entry] : entries_) names.push_back(name);
    return names;
}

const Program* Module::kernel(std::string_view name) {
    const auto found = entries_.find(name);
    if (found == entries_.end()) return nullptr;
    Entry& entry = found->second;
    if (!entry.program) {
        Surroundings around{&symbols_, dynamic_shared_, {}};
        for (const auto& [variable, space] : shared_) around.shared.push_back(&variable);
        auto program = std::make_unique<Program>(translate(entry.text, entry.line, around));
        program->data = &data_;
        entry.program = std::move(program);
    }
    return entry.program.get();
}

bool Module::initial_value(std::string_view name, uint32_t& value) const {
    const auto found = std::find_if(variables_.begin(), variables_.end(),
                                    [&](const auto& variable) { return variable.first.name == name; });
    if (found == variables_.end() || found->first.initial.size() != sizeof value) return false;
    std::memcpy(&value, found->first.initial.data(), sizeof value);
    return true;
}

std::string_view Module::line(uint32_t number) const {
    size_t begin = 0;
    for (uint32_t i = 1; i < number; ++i) {
        begin = text_.find('\n', begin);
        if (begin == std::string::npos) return {};
        ++begin;
    }
    std::string_view line = std::string_view(text_).substr(begin, text_.find('\n', begin) - begin);
    const size_t first = line.find_first_not_of(" \t");
    return first == std::string_view::npos ? std::string_view() : line.substr(first);
}

}  // namespace tessera::cuda::ptx
