#include "translate.hpp"

#include "body.hpp"

#include <unordered_map>

namespace tessera::cuda::ptx {

uint32_t Translation::add_register(Type type) {
    registers.push_back(type);
    return static_cast<uint32_t>(registers.size() - 1);
}

Place Translation::constant(uint64_t bits, uint32_t bytes) {
    const auto [at, made] = constant_numbers.emplace(Constant{bits, bytes}, static_cast<uint32_t>(constants.size()));
    if (made) constants.push_back(at->first);
    return kConstant | at->second;
}

Place Translation::special(Special which) {
    for (const auto& [known, number] : specials) {
        if (known == which) return number;
    }
    specials.emplace_back(which, add_register(kB32));
    return specials.back().second;
}

Translate translator_of(std::string_view word) {
    static const std::unordered_map<std::string_view, Translate> table = [] {
        std::unordered_map<std::string_view, Translate> made;
        for (const auto opcodes :
             {integer_opcodes(), float_opcodes(), bit_opcodes(), compare_opcodes(), conversion_opcodes(),
              move_opcodes(), memory_opcodes(), atomic_opcodes(), control_opcodes(), barrier_opcodes(),
              exchange_opcodes(), matrix_opcodes(), copy_opcodes()}) {
            for (const Opcode& opcode : opcodes) made.emplace(opcode.name, opcode.translate);
        }
        return made;
    }();
    const auto found = table.find(word);
    return found == table.end() ? nullptr : found->second;
}

Program translate(std::string_view text, uint32_t line, const Surroundings& around) {
    Translation translation;
    Body(translation, around).read(text, line);
    place_registers(translation);
    return std::move(translation.program);
}

}  // namespace tessera::cuda::ptx
