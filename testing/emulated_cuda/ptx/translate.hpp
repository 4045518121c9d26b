// From the text of a kernel to a program.
#pragma once

#include "module.hpp"
#include "program.hpp"
#include "statement.hpp"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::cuda::ptx {

// What a kernel sees of its module.
struct Surroundings {
    const std::map<std::string_view, Symbol, std::less<>>* symbols = nullptr;  // of global and constant memory
    std::string_view dynamic_shared;                                           // name of that array; empty: none
    std::vector<const Variable*> shared;                                       // declared outside of kernels
};

// `text`: from behind ".entry" to the end of the body; `line`: the number of its first line. Throws Error.
Program translate(std::string_view text, uint32_t line, const Surroundings& around);

// How control goes on behind an instruction.
enum class Flow : uint8_t { kNext, kBranch, kJump, kEnd };

// A value that all lanes read. bytes 0: of a predicate.
struct Constant {
    uint64_t bits = 0;
    uint32_t bytes = 0;
    auto operator<=>(const Constant&) const = default;
};

// What a kernel is made of while it is translated.
struct Translation {
    Program program;
    std::vector<Type> registers;
    std::vector<std::pair<Special, uint32_t>> specials;  // and the numbers of their registers
    std::vector<Constant> constants;
    std::map<Constant, uint32_t> constant_numbers;
    std::vector<Flow> flow;  // of each instruction; targets are in Instruction::more

    uint32_t add_register(Type type);
    Place constant(uint64_t bits, uint32_t bytes);
    Place special(Special which);
};

// Gives registers and constants their places: registers that are not alive at the same time share one.
void place_registers(Translation& translation);

// One instruction being made of a statement. What is wrong is refused with the statement's line.
class Coder {
  public:
    Coder(Translation& translation, const Statement& statement);

    [[noreturn]] void refuse(const std::string& why) const;

    // ---- the opcode: words between points, behind the first one ----
    bool accept(std::string_view word);
    void expect(std::string_view word);
    Type type();                          // the next word
    Type type(std::string_view allowed);  // one of these, between spaces
    std::string_view word();              // the next one, whatever it is; empty if there is none
    std::string_view peek() const;
    Type last_type() const;  // of the last word

    // ---- operands ----
    size_t count() const noexcept { return statement_.operands.size(); }
    const Operand& operand(size_t i) const;
    std::span<const Operand> parts(const Operand& vector) const;
    void expect_count(size_t least, size_t most = 0) const;
    // Bits of the register, of `fallback` bits if it is none.
    uint32_t width(const Operand& operand, uint32_t fallback) const;

    void write(const Operand& operand, Type type);
    void write_wide(const Operand& operand, Type type);  // a register that may be wider
    void read(const Operand& operand, Type type);
    void read_wide(const Operand& operand, Type type);
    void write_predicate(const Operand& operand);
    void write_joined_predicate(bool given);      // operand 1 of "d|p"; if not given, to where nobody reads
    void read_predicate(const Operand& operand);  // not negated
    void write_nothing(Type type);                // a register that nobody reads
    void read_constant(uint64_t bits, uint32_t bytes);
    void read_special(Special which);
    // Base register of an address, of 32 or 64 bits (what is returned), and its offset as Instruction::immediate.
    uint32_t read_address(const Operand& operand);

    Instruction& instruction() noexcept { return instruction_; }
    const Statement& statement() const noexcept { return statement_; }
    Translation& translation() noexcept { return translation_; }
    // Ends it: all words must have been taken.
    void emit(Handler handler, Flow flow = Flow::kNext);

  private:
    void add(Place place, bool written);
    void check_register(const Operand& operand, Type type, bool wide) const;

    Translation& translation_;
    const Statement& statement_;
    std::vector<std::string_view> words_;
    size_t next_word_ = 1;
    Instruction instruction_;
    std::vector<Place> places_;
    uint32_t writes_ = 0;
};

// .global and so on, if it is the next word; else generic.
Space accept_space(Coder& coder);

// Translates statements of the opcodes that begin with a word; null if there are none.
using Translate = void (*)(Coder& coder);
Translate translator_of(std::string_view word);

// ---- families of opcodes: what translator_of() looks through ----

struct Opcode {
    std::string_view name;
    Translate translate;
};
std::span<const Opcode> integer_opcodes();
std::span<const Opcode> float_opcodes();
std::span<const Opcode> bit_opcodes();
std::span<const Opcode> compare_opcodes();
std::span<const Opcode> conversion_opcodes();
std::span<const Opcode> move_opcodes();
std::span<const Opcode> memory_opcodes();
std::span<const Opcode> atomic_opcodes();
std::span<const Opcode> control_opcodes();
std::span<const Opcode> barrier_opcodes();
std::span<const Opcode> exchange_opcodes();
std::span<const Opcode> matrix_opcodes();
std::span<const Opcode> copy_opcodes();

}  // namespace tessera::cuda::ptx
