#include "apps/tessera/other_programs.hpp"

#include "apps/tessera/flags.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>

namespace tessera::app {
namespace {

struct Other {
    std::string_view names;  // between blanks
    std::string_view instead;
};

constexpr Other kOthers[] = {
    {" cli main completion simple generate ", "use 'tessera run' for a completion, 'tessera chat' for a conversation"},
    {" simple-chat talk ", "use 'tessera chat'"},
    {" server api ", "use 'tessera serve'"},
    {" batched parallel speculative lookup lookahead ", "use 'tessera run --parallel N -f FILE' for several prompts"},
    {" batched-bench benchmark ", "use 'tessera bench'"},
    {" sweep-bench ", "use 'tessera sweep'"},
    {" ppl ", "use 'tessera perplexity'"},
    {" fit-params fit estimate ", "use 'tessera plan'"},
    {" gguf gguf-dump gguf-hash gguf-info show info ", "use 'tessera inspect'"},
    {" detokenize tokenizer ", "use 'tessera tokenize'"},
    {" gguf-split gguf-merge split merge ", "split files are used as they are: name any part with -m"},
    {" quantize quantise ",
     "weights are not converted to other formats here: llama-quantize of llama.cpp does, and 'tessera repack' packs a "
     "model for its kernels"},
    {" convert convert-hf-to-gguf convert-lora-to-gguf ", "GGUF files are made by convert_hf_to_gguf.py of llama.cpp"},
    {" imatrix cvector-generator export-lora finetune train ",
     "importance matrices, adapters and training are not part of Tessera; llama.cpp has them"},
    {" embedding embed embeddings rerank retrieval ",
     "embeddings are computed by 'tessera serve --embeddings', rankings are not"},
    {" mtmd-cli mtmd llava-cli gemma3-cli minicpmv-cli qwen2vl-cli tts ", "images and sound are not read, only text"},
    {" pull download get list ls ps rm create push ",
     "models are files: nothing is downloaded or listed, a file is named with -m FILE"},
    {" rpc-server rpc ", "devices of other machines are not used"},
    {" test-plugin plugintest ", "use 'tessera plugin-test'"},
    {" validate check verify ", "use 'tessera inspect'"},
};

}  // namespace

std::string instead_of(std::string_view word) {
    std::string name(word.substr(word.rfind('/') + 1));
    for (const std::string_view end : {".exe", ".py", ".cpp"}) {
        if (name.ends_with(end)) name.erase(name.rfind('.'));
    }
    std::ranges::replace(name, '_', '-');
    if (name.starts_with("llama-")) name.erase(0, 6);
    if (name.empty()) return "";
    if (std::ranges::find(all_commands(), name, &CommandInfo::name) != std::ranges::end(all_commands()))
        return name == word ? "" : fmt::format("use 'tessera {}'", name);
    const auto* const other = std::ranges::find_if(
        kOthers, [&](const Other& one) { return one.names.find(fmt::format(" {} ", name)) != std::string_view::npos; });
    return other == std::end(kOthers) ? "" : std::string(other->instead);
}

}  // namespace tessera::app
