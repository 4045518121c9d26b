#include "translate.hpp"

#include <algorithm>

namespace tessera::cuda::ptx {
namespace {

std::string described(Type type) {
    if (type == kPredicate) return "a predicate";
    return std::to_string(type.bits) + " bits";
}

}  // namespace

Coder::Coder(Translation& translation, const Statement& statement) : translation_(translation), statement_(statement) {
    std::string_view rest = statement.opcode;
    for (;;) {
        const size_t point = rest.find('.');
        words_.push_back(rest.substr(0, point));
        if (point == std::string_view::npos) break;
        rest = rest.substr(point + 1);
    }
}

void Coder::refuse(const std::string& why) const {
    throw Error(statement_.line, std::string(statement_.opcode) + ": " + why);
}

bool Coder::accept(std::string_view word) {
    if (next_word_ == words_.size() || words_[next_word_] != word) return false;
    ++next_word_;
    return true;
}

void Coder::expect(std::string_view word) {
    if (!accept(word)) refuse("expected ." + std::string(word));
}

std::string_view Coder::word() {
    return next_word_ == words_.size() ? std::string_view() : words_[next_word_++];
}

std::string_view Coder::peek() const {
    return next_word_ == words_.size() ? std::string_view() : words_[next_word_];
}

Type Coder::type() {
    const Type found = type_named(peek());
    if (found.kind == Kind::kNone) refuse("expected a type, found \"" + std::string(peek()) + "\"");
    ++next_word_;
    return found;
}

Type Coder::type(std::string_view allowed) {
    const std::string_view name = peek();
    const Type found = type();
    for (size_t at = 0; at < allowed.size();) {
        const size_t end = std::min(allowed.find(' ', at), allowed.size());
        if (allowed.substr(at, end - at) == name) return found;
        at = end + 1;
    }
    refuse("not of the type " + std::string(name));
}

const Operand& Coder::operand(size_t i) const {
    if (i >= statement_.operands.size()) refuse("expected more operands");
    return statement_.operands[i];
}

std::span<const Operand> Coder::parts(const Operand& vector) const {
    if (vector.kind != OperandKind::kVector) return {&vector, 1};
    return std::span(statement_.parts).subspan(vector.first, vector.size);
}

void Coder::expect_count(size_t least, size_t most) const {
    if (count() < least || count() > std::max(least, most))
        refuse("expected " + std::to_string(least) + " operands, found " + std::to_string(count()));
}

uint32_t Coder::width(const Operand& operand, uint32_t fallback) const {
    return operand.kind == OperandKind::kRegister ? operand.type.bits : fallback;
}

void Coder::add(Place place, bool written) {
    if (written && writes_ != places_.size()) refuse("a result behind its operands");
    places_.push_back(place);
    if (written) ++writes_;
}

void Coder::check_register(const Operand& operand, Type type, bool wide) const {
    const Type found = operand.type;
    if (operand.negated) refuse("! stands before predicates only");
    if (found == kPredicate || (wide ? found.bits < type.bits : found.bits != type.bits))
        refuse("an operand of " + described(type) + " cannot be a register of " + described(found));
    if (wide || found.kind == Kind::kBits || type.kind == Kind::kBits) return;
    if (found.is_float() != type.is_float())
        refuse("an integer and a floating-point number are no operands of each other");
}

void Coder::write(const Operand& operand, Type type) {
    if (operand.kind == OperandKind::kSink) return write_nothing(type);
    if (operand.kind != OperandKind::kRegister) refuse("a result must be a register");
    check_register(operand, type, false);
    add(operand.reg, true);
}

void Coder::write_wide(const Operand& operand, Type type) {
    if (operand.kind == OperandKind::kSink) return write_nothing(type);
    if (operand.kind != OperandKind::kRegister) refuse("a result must be a register");
    check_register(operand, type, true);
    add(operand.reg, true);
}

void Coder::read(const Operand& operand, Type type) {
    switch (operand.kind) {
        case OperandKind::kRegister:
            check_register(operand, type, false);
            return add(operand.reg, false);
        case OperandKind::kInteger:
            if (type.is_float() && type.kind != Kind::kPair && type.kind != Kind::kBrainPair)
                refuse("expected a floating-point number");
            break;
        case OperandKind::kFloat32:
            if (type.bits != 32 || type.is_integer()) {
                if (type != kB32) refuse("a number of 32 bits does not fit");
            }
            break;
        case OperandKind::kFloat64:
            if (type.bits != 64 || (type.is_integer() && type != kB64)) refuse("a number of 64 bits does not fit");
            break;
        default:
            refuse("expected a register or a number");
    }
    read_constant(operand.bits, type.bytes());
}

void Coder::read_wide(const Operand& operand, Type type) {
    if (operand.kind != OperandKind::kRegister) return read(operand, type);
    check_register(operand, type, true);
    add(operand.reg, false);
}

void Coder::write_predicate(const Operand& operand) {
    if (operand.kind == OperandKind::kSink) return write_nothing(kPredicate);
    if (operand.kind != OperandKind::kRegister || operand.type != kPredicate) refuse("expected a predicate");
    add(operand.reg, true);
}

void Coder::write_joined_predicate(bool given) {
    if (given)
        write_predicate(operand(1));
    else
        write_nothing(kPredicate);
}

void Coder::read_predicate(const Operand& operand) {
    if (operand.kind == OperandKind::kInteger)
        return add(translation_.constant(operand.bits != 0 ? kAllLanes : 0, 0), false);
    if (operand.kind != OperandKind::kRegister || operand.type != kPredicate) refuse("expected a predicate");
    if (operand.negated) refuse("a negated predicate cannot stand here");
    add(operand.reg, false);
}

void Coder::write_nothing(Type type) {
    add(translation_.add_register(type == kPredicate ? type : Type{Kind::kBits, std::max<uint8_t>(type.bits, 16)}),
        true);
}

Type Coder::last_type() const {
    return type_named(words_.back());
}

void Coder::read_constant(uint64_t bits, uint32_t bytes) {
    add(translation_.constant(bytes < 8 ? bits & ((1ull << 8 * bytes) - 1) : bits, bytes), false);
}

void Coder::read_special(Special which) {
    add(translation_.special(which), false);
}

uint32_t Coder::read_address(const Operand& operand) {
    if (operand.kind != OperandKind::kAddress) refuse("expected an address");
    instruction_.immediate = operand.bits;
    if (operand.reg == kNowhere) {
        read_constant(0, 8);
        return 64;
    }
    add(operand.reg, false);
    return operand.type.bits;
}

void Coder::emit(Handler handler, Flow flow) {
    if (next_word_ != words_.size()) refuse("unknown or unsupported: ." + std::string(words_[next_word_]));
    if (!handler.whole || !handler.some) refuse("not supported with these types");
    Program& program = translation_.program;
    Instruction& i = instruction_;
    i.whole = handler.whole;
    i.some = handler.some;
    i.line = statement_.line;
    i.guard = statement_.guard;
    i.negated = statement_.guard_negated;
    i.writes = static_cast<uint8_t>(writes_);
    i.reads = static_cast<uint8_t>(places_.size() - writes_);
    if (places_.size() > Instruction::kPlaces) {
        i.has_list = true;
        i.more = static_cast<uint32_t>(program.lists.size());
        program.lists.insert(program.lists.end(), places_.begin(), places_.end());
    } else {
        i.places.fill(kNowhere);
        std::copy(places_.begin(), places_.end(), i.places.begin());
    }
    program.code.push_back(i);
    translation_.flow.push_back(i.guard != kNowhere && (flow == Flow::kJump || flow == Flow::kEnd)
                                    ? (flow == Flow::kJump ? Flow::kBranch : Flow::kNext)
                                    : flow);
}

}  // namespace tessera::cuda::ptx
