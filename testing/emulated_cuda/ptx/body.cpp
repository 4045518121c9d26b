#include "body.hpp"

#include <algorithm>
#include <charconv>

namespace tessera::cuda::ptx {
namespace {

constexpr uint64_t kMostLocal = 1 << 20, kMostParameters = 32 << 10;
constexpr uint64_t kRedZone = 256;  // between arrays in shared memory
constexpr uint32_t kMostRegisters = 1 << 20;

uint64_t rounded(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

struct NamedSpecial {
    std::string_view name;
    Special which;
};
constexpr NamedSpecial kSpecials[] = {
    {"%tid.x", Special::kThreadX},
    {"%tid.y", Special::kThreadY},
    {"%tid.z", Special::kThreadZ},
    {"%ntid.x", Special::kThreadsX},
    {"%ntid.y", Special::kThreadsY},
    {"%ntid.z", Special::kThreadsZ},
    {"%ctaid.x", Special::kBlockX},
    {"%ctaid.y", Special::kBlockY},
    {"%ctaid.z", Special::kBlockZ},
    {"%nctaid.x", Special::kBlocksX},
    {"%nctaid.y", Special::kBlocksY},
    {"%nctaid.z", Special::kBlocksZ},
    {"%laneid", Special::kLane},
    {"%warpid", Special::kWarp},
    {"%nwarpid", Special::kWarps},
    {"%lanemask_eq", Special::kMaskEqual},
    {"%lanemask_lt", Special::kMaskBelow},
    {"%lanemask_le", Special::kMaskUpTo},
    {"%lanemask_gt", Special::kMaskAbove},
    {"%lanemask_ge", Special::kMaskFrom},
    {"%dynamic_smem_size", Special::kDynamicShared},
};

uint32_t small_number(Tokens& tokens, uint32_t most) {
    uint64_t value = 0;
    const std::string_view token = tokens.next();
    if (!read_integer(token, value) || value > most)
        throw Error(tokens.line(),
                    "expected a number up to " + std::to_string(most) + ", found \"" + std::string(token) + "\"");
    return static_cast<uint32_t>(value);
}

}  // namespace

void Body::read(std::string_view text, uint32_t line) {
    Tokens tokens(text, line);
    Program& program = translation_.program;
    program.name = tokens.next();
    if (tokens.accept("(")) read_parameters(tokens);
    while (!tokens.accept("{")) {
        const std::string_view directive = tokens.next();
        if (directive == ".maxntid" || directive == ".reqntid") {
            do small_number(tokens, 1 << 20);
            while (tokens.accept(","));
        } else if (directive == ".minnctapersm" || directive == ".maxnctapersm" || directive == ".maxnreg") {
            small_number(tokens, 1 << 20);
        } else if (directive == ".pragma") {
            tokens.next();
            tokens.accept(";");
        } else {
            throw Error(tokens.line(), "unknown or unsupported of a kernel: \"" + std::string(directive) + "\"");
        }
    }
    for (const Variable* variable : around_.shared) place_shared(*variable);
    read_block(tokens);
    // What falls off the end ends.
    statement_.line = tokens.line();
    statement_.opcode = "exit";
    statement_.operands.clear();
    statement_.guard = kNowhere;
    Coder end(translation_, statement_);
    translator_of("exit")(end);

    for (const Fixup& fixup : fixups_) {
        const auto found = labels_.find(fixup.label);
        if (found == labels_.end()) throw Error(fixup.line, "no label " + std::string(fixup.label));
        program.code[fixup.instruction].more = found->second;
    }
}

void Body::read_parameters(Tokens& tokens) {
    Program& program = translation_.program;
    if (tokens.accept(")")) return;
    do {
        tokens.expect(".param");
        const Variable variable = read_variable(tokens);
        if (variable.bytes == 0) throw Error(tokens.line(), std::string(variable.name) + " has no extent");
        const uint64_t at = rounded(program.parameter_bytes, variable.alignment);
        if (at + variable.bytes > kMostParameters) throw Error(tokens.line(), "parameters of more than 32 KB");
        symbols_[variable.name] = at;
        program.parameters.push_back({std::string(variable.name), at, variable.bytes});
        program.parameter_bytes = at + variable.bytes;
    } while (tokens.accept(","));
    tokens.expect(")");
}

void Body::place_shared(const Variable& variable) {
    const uint64_t at = rounded(shared_ + kRedZone, std::max<uint64_t>(variable.alignment, 16));
    if (at + variable.bytes + kRedZone > kDynamicShared)
        throw Error(1, std::string(variable.name) + ": more than 256 KB of static shared memory");
    symbols_[variable.name] = at;
    translation_.program.shared.push_back({std::string(variable.name), at, variable.bytes});
    shared_ = at + variable.bytes + kRedZone;
}

// Behind '{', to its '}'.
void Body::read_block(Tokens& tokens) {
    const size_t single = single_.size(), prefixes = prefixes_.size();
    for (;;) {
        const std::string_view token = tokens.next();
        if (token.empty()) throw Error(tokens.line(), "a { without its }");
        if (token == "}") break;
        if (token == ";") continue;
        if (token == "{") {
            read_block(tokens);
        } else if (token[0] == '.') {
            read_directive(tokens, token);
        } else if (token != "@" && tokens.accept(":")) {
            if (!labels_.emplace(token, static_cast<uint32_t>(translation_.program.code.size())).second)
                throw Error(tokens.line(), "two labels " + std::string(token));
        } else {
            read_statement(tokens, token);
        }
    }
    single_.resize(single);
    prefixes_.resize(prefixes);
}

void Body::read_directive(Tokens& tokens, std::string_view directive) {
    Program& program = translation_.program;
    if (directive == ".reg") return read_registers(tokens);
    if (directive == ".shared" || directive == ".local") {
        do {
            const Variable variable = read_variable(tokens);
            if (variable.bytes == 0 || !variable.initial.empty())
                throw Error(tokens.line(), std::string(variable.name) + ": expected an extent and no initial values");
            if (directive == ".shared") {
                place_shared(variable);
                continue;
            }
            const uint64_t at = rounded(program.local_bytes, variable.alignment);
            if (at + variable.bytes > kMostLocal) throw Error(tokens.line(), "local memory of more than 1 MiB");
            symbols_[variable.name] = at;
            program.local_bytes = at + variable.bytes;
        } while (tokens.accept(","));
        return tokens.expect(";");
    }
    if (directive == ".pragma") {
        constexpr std::string_view kUsed = "\"used_bytes_mask ";
        std::string_view what = tokens.next();
        if (what.starts_with(kUsed)) {
            what = what.substr(kUsed.size(), what.size() - kUsed.size() - 1);
            if (!read_integer(what, used_bytes_)) throw Error(tokens.line(), "used_bytes_mask of no number");
        } else if (what != "\"nounroll\"") {
            throw Error(tokens.line(), "unknown pragma " + std::string(what));
        }
        return tokens.expect(";");
    }
    if (directive == ".loc") {
        for (int i = 0; i < 3; ++i) small_number(tokens, UINT32_MAX - 1);
        return;
    }
    throw Error(tokens.line(), "unknown or unsupported in a kernel: \"" + std::string(directive) + "\"");
}

void Body::read_registers(Tokens& tokens) {
    std::string_view token = tokens.next();
    const Type type = type_named(token.starts_with('.') ? token.substr(1) : token);
    if (type.kind == Kind::kNone || type.bits == 8)
        throw Error(tokens.line(), "registers of the type \"" + std::string(token) + "\"");
    do {
        const std::string_view name = tokens.next();
        if (name.empty() || name == ";") throw Error(tokens.line(), "expected the name of a register");
        if (!tokens.accept("<")) {
            single_.emplace_back(name, translation_.add_register(type));
            continue;
        }
        const uint32_t count = small_number(tokens, kMostRegisters);
        tokens.expect(">");
        if (translation_.registers.size() + count > kMostRegisters) throw Error(tokens.line(), "too many registers");
        prefixes_.push_back({name, static_cast<uint32_t>(translation_.registers.size()), count});
        for (uint32_t i = 0; i < count; ++i) translation_.add_register(type);
    } while (tokens.accept(","));
    tokens.expect(";");
}

bool Body::find_register(std::string_view name, uint32_t& number) {
    size_t digits = name.size();
    while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
    if (digits < name.size()) {
        const std::string_view prefix = name.substr(0, digits);
        for (auto p = prefixes_.rbegin(); p != prefixes_.rend(); ++p) {
            if (p->name != prefix) continue;
            uint32_t index = 0;
            std::from_chars(name.data() + digits, name.data() + name.size(), index);
            if (index >= p->count) continue;
            number = p->first + index;
            return true;
        }
    }
    for (auto s = single_.rbegin(); s != single_.rend(); ++s) {
        if (s->first != name) continue;
        number = s->second;
        return true;
    }
    return false;
}

bool Body::find_special(std::string_view name, uint32_t& number) {
    for (const NamedSpecial& special : kSpecials) {
        if (special.name != name) continue;
        number = translation_.special(special.which);
        return true;
    }
    return false;
}

bool Body::find_symbol(std::string_view name, uint64_t& address) const {
    if (const auto found = symbols_.find(name); found != symbols_.end()) {
        address = found->second;
        return true;
    }
    if (!around_.dynamic_shared.empty() && name == around_.dynamic_shared) {
        address = kDynamicShared;
        return true;
    }
    const auto found = around_.symbols->find(name);
    if (found == around_.symbols->end()) return false;
    address = found->second.address;
    return true;
}

Operand Body::read_number(Tokens& tokens, std::string_view token, bool negative) {
    Operand operand;
    const bool single = token.starts_with("0f") || token.starts_with("0F");
    if (single || token.starts_with("0d") || token.starts_with("0D")) {
        const std::string_view digits = token.substr(2);
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), operand.bits, 16);
        if (negative || error != std::errc() || end != digits.data() + digits.size() ||
            digits.size() != (single ? 8u : 16u))
            throw Error(tokens.line(), "malformed number " + std::string(token));
        operand.kind = single ? OperandKind::kFloat32 : OperandKind::kFloat64;
        return operand;
    }
    if (!read_integer(token, operand.bits)) throw Error(tokens.line(), "malformed number " + std::string(token));
    if (negative) operand.bits = ~operand.bits + 1;
    operand.kind = OperandKind::kInteger;
    return operand;
}

Operand Body::read_address(Tokens& tokens) {
    Operand address;
    address.kind = OperandKind::kAddress;
    const std::string_view base = tokens.next();
    uint64_t offset = 0;
    if (base.empty()) throw Error(tokens.line(), "an address without its ]");
    if (find_register(base, address.reg)) {
        address.type = translation_.registers[address.reg];
        if (!address.type.is_integer() || address.type.bits < 32)
            throw Error(tokens.line(), std::string(base) + " cannot hold an address");
    } else if (!find_symbol(base, offset) && !read_integer(base, offset)) {
        throw Error(tokens.line(), "unknown in an address: " + std::string(base));
    }
    if (tokens.accept("+")) {
        const bool negative = tokens.accept("-");
        uint64_t more = 0;
        const std::string_view token = tokens.next();
        if (!read_integer(token, more)) throw Error(tokens.line(), "malformed offset " + std::string(token));
        offset += negative ? ~more + 1 : more;
    }
    tokens.expect("]");
    address.bits = offset;
    return address;
}

Operand Body::read_operand(Tokens& tokens) {
    const std::string_view token = tokens.next();
    Operand operand;
    if (token == "[") return read_address(tokens);
    if (token == "{") {
        std::vector<Operand> parts;
        do parts.push_back(read_operand(tokens));
        while (tokens.accept(","));
        tokens.expect("}");
        operand.kind = OperandKind::kVector;
        operand.first = static_cast<uint32_t>(statement_.parts.size());
        operand.size = static_cast<uint32_t>(parts.size());
        statement_.parts.insert(statement_.parts.end(), parts.begin(), parts.end());
        return operand;
    }
    if (token == "_") return operand;
    if (token == "!") {
        operand = read_operand(tokens);
        operand.negated = true;
        return operand;
    }
    if (token == "-") return read_number(tokens, tokens.next(), true);
    if (!token.empty() && token[0] >= '0' && token[0] <= '9') return read_number(tokens, token, false);
    if (find_register(token, operand.reg) || find_special(token, operand.reg)) {
        operand.kind = OperandKind::kRegister;
        operand.type = translation_.registers[operand.reg];
        return operand;
    }
    if (find_symbol(token, operand.bits)) {
        operand.kind = OperandKind::kInteger;
        if (tokens.accept("+")) operand.bits += read_number(tokens, tokens.next(), false).bits;
        return operand;
    }
    if (token.starts_with('%')) throw Error(tokens.line(), "unknown register " + std::string(token));
    operand.kind = OperandKind::kLabel;
    operand.text = token;
    return operand;
}

void Body::read_statement(Tokens& tokens, std::string_view first) {
    Statement& s = statement_;
    s.operands.clear();
    s.parts.clear();
    s.guard = kNowhere;
    s.used_bytes = used_bytes_;
    used_bytes_ = ~0ull;
    if (first == "@") {
        s.guard_negated = tokens.accept("!");
        const std::string_view name = tokens.next();
        if (!find_register(name, s.guard) || translation_.registers[s.guard] != kPredicate)
            throw Error(tokens.line(), "expected a predicate behind @, found \"" + std::string(name) + "\"");
        first = tokens.next();
    }
    s.line = tokens.line();
    s.opcode = first;
    const Translate translate = translator_of(s.opcode.substr(0, s.opcode.find('.')));
    if (!translate) throw Error(s.line, "unknown or unsupported instruction " + std::string(s.opcode));
    if (!tokens.accept(";")) {
        bool joined = false;
        do {
            s.operands.push_back(read_operand(tokens));
            s.operands.back().joined = joined;
            if (tokens.accept("|")) {
                joined = true;
                continue;
            }
            joined = false;
            if (!tokens.accept(",")) break;
        } while (true);
        tokens.expect(";");
    }
    const size_t before = translation_.program.code.size();
    Coder coder(translation_, s);
    translate(coder);
    for (const Operand& operand : s.operands) {
        if (operand.kind == OperandKind::kLabel) fixups_.push_back({before, operand.text, s.line});
    }
}

}  // namespace tessera::cuda::ptx
