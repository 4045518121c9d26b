#include "apps/tessera/commands.hpp"
#include "apps/tessera/output.hpp"
#include "apps/tessera/read_settings.hpp"
#include "apps/tessera/text_input.hpp"
#include "apps/wording/wording.hpp"
#include "core/base/text.hpp"
#include "core/gguf/value.hpp"
#include "core/setup/machine.hpp"
#include "core/setup/prompts.hpp"

#include <spdlog/fmt/fmt.h>

namespace tessera::app {

int tokenize_command(Arguments& arguments) {
    const CommonSettings settings = read_common(arguments);
    const auto prompt = arguments.text("prompt");
    const auto file = arguments.text("file");
    if (prompt && file) throw UsageError("-p and -f contradict each other: give one of them");
    std::string text = prompt ? *prompt : read_text(file.value_or("-"));
    if (arguments.has("escape") && !arguments.has("no-escape")) text = unescape(text);

    const OpenedModel model = open_model(settings);
    for (const std::string& key : model.file.added_keys()) say(worded(unknown_key(key, model.file)));
    const auto tokenizer = make_tokenizer(model.file);
    if (settings.verbose) {
        const auto& metadata = model.file.metadata();
        say(fmt::format("vocabulary of {}: {}, model {}, pre-tokenizer {}", model.path.string(),
                        counted(tokenizer->size(), "token"), metadata.find_string("tokenizer.ggml.model").value_or("?"),
                        metadata.find_string("tokenizer.ggml.pre").value_or("default")));
    }
    const std::vector<text::Token> tokens = tokenizer->encode(
        text, {.add_special = !arguments.has("no-bos"), .parse_special = !arguments.has("no-parse-special")});
    std::string out;
    if (arguments.has("ids")) {
        for (const text::Token token : tokens) out += fmt::format("{}{}", out.empty() ? "" : " ", token);
        out += '\n';
    } else {
        for (const text::Token token : tokens) {
            out += fmt::format("{:>8}  {}\n", token, gguf::to_text(gguf::Value(std::string(tokenizer->bytes(token)))));
        }
    }
    print(out);
    say(fmt::format("{} for {}", counted(tokens.size(), "token"), counted(text.size(), "byte")));
    return kExitDone;
}

}  // namespace tessera::app
