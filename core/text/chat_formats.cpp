// The forms of known families. Sources: the chat_template of each model's published tokenizer_config.json.
#include "core/text/chat_template.hpp"

namespace tessera::text {
namespace {

constexpr const char* kDeepSeekEnd = "<\uff5cend\u2581of\u2581sentence\uff5c>";
constexpr const char* kDeepSeekUser = "<\uff5cUser\uff5c>";
constexpr const char* kDeepSeekAssistant = "<\uff5cAssistant\uff5c>";

ChatFormat deepseek2() {
    ChatFormat f;
    f.bos = true;
    f.system = {"", "\n\n"};
    f.user = {"User: ", "\n\n"};
    f.assistant = {"Assistant: ", ""};
    f.eos_after_assistant = true;
    f.generation = "Assistant:";
    return f;
}

ChatFormat deepseek3(ChatFormat::System place, ChatFormat::Thoughts thoughts, const char* opening) {
    ChatFormat f;
    f.bos = true;
    f.system_place = place;
    f.user = {kDeepSeekUser, ""};
    f.assistant = {kDeepSeekAssistant, kDeepSeekEnd};
    f.thoughts = thoughts;
    f.generation = std::string(kDeepSeekAssistant) + opening;
    return f;
}

ChatFormat deepseek3_0324() {
    ChatFormat f = deepseek3(ChatFormat::System::kJoined, ChatFormat::Thoughts::kKeep, "");
    f.user.after = kDeepSeekAssistant;
    f.assistant.before.clear();
    f.generation_when = ChatFormat::When::kNotAfterUser;
    return f;
}

ChatFormat deepseek3_1() {
    ChatFormat f = deepseek3(ChatFormat::System::kJoined, ChatFormat::Thoughts::kDropToFirstEnd, "");
    f.assistant.before = kDeepSeekAssistant;
    f.assistant.before += "</think>";
    f.assistant_before = ChatFormat::When::kAfterUser;
    f.generation_when = ChatFormat::When::kAfterUser;
    f.can_think = true;
    f.generation_thinking = "<think>";
    f.generation_direct = "</think>";
    return f;
}

ChatFormat deepseek_coder() {
    ChatFormat f;
    f.bos = true;
    f.user = {"### Instruction:\n", "\n"};
    f.assistant = {"### Response:\n", "\n<|EOT|>\n"};
    f.default_system =
        "You are an AI programming assistant, utilizing the Deepseek Coder model, developed by Deepseek Company, and "
        "you only "
        "answer questions related to computer science. For politically sensitive questions, security and privacy "
        "issues, and "
        "other non-computer science questions, you will refuse to answer\n";
    f.default_system_only_without_any = true;
    f.generation = "### Response:\n";
    return f;
}

ChatFormat chatml() {
    ChatFormat f;
    f.system = {"<|im_start|>system\n", "<|im_end|>\n"};
    f.user = {"<|im_start|>user\n", "<|im_end|>\n"};
    f.assistant = {"<|im_start|>assistant\n", "<|im_end|>\n"};
    f.generation = "<|im_start|>assistant\n";
    return f;
}

ChatFormat chatml_with(const char* default_system) {
    ChatFormat f = chatml();
    f.default_system = default_system;
    return f;
}

ChatFormat qwen3() {
    ChatFormat f = chatml();
    f.qwen3_thoughts = true;
    f.can_think = true;
    f.thinks_by_default = true;
    f.generation_direct = "<think>\n\n</think>\n\n";
    return f;
}

ChatFormat llama3() {
    ChatFormat f;
    f.bos = true;
    f.trim = true;
    f.system = {"<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>"};
    f.user = {"<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"};
    f.assistant = {"<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"};
    f.generation = "<|start_header_id|>assistant<|end_header_id|>\n\n";
    return f;
}

ChatFormat llama3_1() {
    ChatFormat f = llama3();
    f.system_place = ChatFormat::System::kFirstInBlock;
    // The date that the published program uses if its host has no clock.
    f.default_system = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n";
    return f;
}

ChatFormat kimi_k2() {
    ChatFormat f;
    f.system = {"<|im_system|>system<|im_middle|>", "<|im_end|>"};
    f.user = {"<|im_user|>user<|im_middle|>", "<|im_end|>"};
    f.assistant = {"<|im_assistant|>assistant<|im_middle|>", "<|im_end|>"};
    f.default_system = "You are a helpful assistant";
    f.generation = "<|im_assistant|>assistant<|im_middle|>";
    return f;
}

}  // namespace

const std::vector<NamedChatFormat>& known_chat_formats() {
    using System = ChatFormat::System;
    using Thoughts = ChatFormat::Thoughts;
    static const std::vector<NamedChatFormat> known = [] {
        std::vector<NamedChatFormat> all = {
            {{"deepseek2", "deepseek-v2", "deepseek-llm", "deepseek"}, deepseek2()},
            {{"deepseek-v2.5", "deepseek2.5"}, deepseek3(System::kLast, Thoughts::kKeep, "")},
            {{"deepseek3"}, deepseek3(System::kInPlace, Thoughts::kKeep, "")},
            {{"deepseek-v3"}, deepseek3(System::kJoined, Thoughts::kKeep, "")},
            {{"deepseek-v3-0324"}, deepseek3_0324()},
            {{"deepseek-v3.1"}, deepseek3_1()},
            {{"deepseek-r1"}, deepseek3(System::kJoined, Thoughts::kDropToLastEnd, "<think>\n")},
            {{"deepseek-r1-first"}, deepseek3(System::kLast, Thoughts::kDropToLastEnd, "")},
            {{"deepseek-r1-distill"}, deepseek3(System::kLast, Thoughts::kDropToLastEnd, "<think>\n")},
            {{"deepseek-coder"}, deepseek_coder()},
            {{"chatml"}, chatml()},
            {{"qwen2"}, chatml_with("You are a helpful assistant.")},
            {{"qwen2.5"}, chatml_with("You are Qwen, created by Alibaba Cloud. You are a helpful assistant.")},
            {{"qwen3"}, qwen3()},
            {{"llama3", "llama-3"}, llama3()},
            {{"llama3.1", "llama-3.1", "llama3.2", "llama3.3"}, llama3_1()},
            {{"kimi-k2"}, kimi_k2()},
        };
        for (NamedChatFormat& one : all) one.format.name = one.names.front();
        return all;
    }();
    return known;
}

}  // namespace tessera::text
