// A module of PTX: its variables, which are given memory, and its kernels, which are translated when they are asked
// for.
#pragma once

#include "lexer.hpp"
#include "program.hpp"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::cuda::ptx {

// A declaration in a state space: what stands between ".shared" and so on and the ';', ',' or ')' that ends it.
struct Variable {
    std::string_view name;
    Type type;
    uint32_t alignment = 1;
    uint64_t bytes = 0;  // 0: of an array without an extent
    std::vector<uint8_t> initial;
};
// Behind the name of the state space. Leaves what ends the declaration. Throws Error.
Variable read_variable(Tokens& tokens);

struct Symbol {
    Space space;
    uint64_t address;  // in its space
};

// Any thread may ask for kernels once it is made, one at a time.
class Module {
  public:
    // Throws Error, with the line of what is malformed or unknown. Bodies of kernels are not read.
    explicit Module(std::string text);
    ~Module();
    Module(const Module&) = delete;
    Module& operator=(const Module&) = delete;

    std::vector<std::string_view> kernels() const;
    // The kernel, translated at the first call; null if there is none of that name. Lives as long as the module. Throws
    // Error.
    const Program* kernel(std::string_view name);
    // Value of a variable of 32 bits as it was at first; false if there is none of that name.
    bool initial_value(std::string_view name, uint32_t& value) const;
    // The line of that number, counted from 1, without what surrounds it.
    std::string_view line(uint32_t number) const;

  private:
    struct Entry {
        std::string_view text;  // from behind ".entry" to the end of its body
        uint32_t line;
        std::unique_ptr<Program> program;
    };
    void declare(Tokens& tokens, Space space);
    void place_data();

    std::string text_;
    std::map<std::string_view, Entry, std::less<>> entries_;
    std::map<std::string_view, Symbol, std::less<>> symbols_;
    std::vector<std::pair<Variable, Space>> variables_;
    std::vector<DataRange> data_;
    uint8_t* memory_ = nullptr;
    uint64_t memory_bytes_ = 0;
    std::string_view dynamic_shared_;                 // name of the array without an extent
    std::vector<std::pair<Variable, Space>> shared_;  // declared outside of kernels
};

}  // namespace tessera::cuda::ptx
