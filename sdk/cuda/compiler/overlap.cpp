#include "overlap.hpp"

#include <algorithm>
#include <stdexcept>

namespace tessera::cuda::compiler {

std::string overlapping(const std::string& ptx, int real) {
    constexpr char kTarget[] = "\n.target sm_", kEntry[] = ".entry ";
    const size_t target = ptx.find(kTarget);
    if (target == std::string::npos) throw std::runtime_error("PTX without .target");
    const size_t number = target + sizeof kTarget - 1;
    size_t copied = ptx.find_first_not_of("0123456789", number);
    // The instruction is one of sm_90; what was made for an earlier target means the same there.
    std::string made = ptx.substr(0, number) + std::to_string(real);
    constexpr char kWait[] = "// tessera wait\n", kPrefetch[] = "// tessera prefetch [";
    // Blocks of the next grid that come while this one's are spread over the card would leave some multiprocessors two
    // of them and others none, so only grids that are a small part of a card let the next one begin before they end.
    constexpr char kBegin[] =
        "griddepcontrol.wait;\n"
        "\t{\n\t.reg .pred few;\n\t.reg .u32 blocks, extent;\n"
        "\tmov.u32 blocks, %nctaid.x;\n"
        "\tmov.u32 extent, %nctaid.y;\n\tmul.lo.u32 blocks, blocks, extent;\n"
        "\tmov.u32 extent, %nctaid.z;\n\tmul.lo.u32 blocks, blocks, extent;\n"
        "\tsetp.le.u32 few, blocks, 32;\n\t@few griddepcontrol.launch_dependents;\n\t}\n";
    for (size_t at = ptx.find(kEntry); at != std::string::npos; at = ptx.find(kEntry, at)) {
        at = ptx.find("\n{\n", at);
        if (at == std::string::npos) throw std::runtime_error("PTX with .entry without a body");
        at += 3;
        const size_t end = std::min(ptx.find(kEntry, at), ptx.size());
        const bool waits = ptx.substr(at, end - at).find(kWait) != std::string::npos;
        made.append(ptx, copied, at - copied);
        copied = at;
        if (!waits) made.append("\t").append(kBegin);
        for (size_t mark = ptx.find("// tessera ", at); mark < end; mark = ptx.find("// tessera ", mark + 1)) {
            made.append(ptx, copied, mark - copied);
            const size_t line = ptx.find('\n', mark) + 1;
            if (ptx.compare(mark, sizeof kWait - 1, kWait) == 0) {
                made.append(kBegin);
            } else if (ptx.compare(mark, sizeof kPrefetch - 1, kPrefetch) == 0) {
                const size_t address = mark + sizeof kPrefetch - 1;
                made.append("prefetch.global.L2 [").append(ptx, address, line - 1 - address).append(";\n");
            }
            copied = line;
        }
    }
    return made.append(ptx, copied);
}

}  // namespace tessera::cuda::compiler
