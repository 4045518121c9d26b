#include "tests/fuzz/request_target.hpp"

#include "apps/server/access_control.hpp"
#include "apps/server/api_error.hpp"
#include "apps/server/chat_fields.hpp"
#include "apps/server/chat_messages.hpp"
#include "apps/server/dialects/anthropic/dialect.hpp"
#include "apps/server/dialects/anthropic/messages_request.hpp"
#include "apps/server/dialects/llama/dialect.hpp"
#include "apps/server/dialects/llama/requests.hpp"
#include "apps/server/dialects/llama/text_api.hpp"
#include "apps/server/dialects/ollama/dialect.hpp"
#include "apps/server/dialects/ollama/requests.hpp"
#include "apps/server/dialects/openai/dialect.hpp"
#include "apps/server/dialects/openai/requests.hpp"
#include "apps/server/dialects/responses/dialect.hpp"
#include "apps/server/dialects/responses/request.hpp"
#include "apps/server/generation_fields.hpp"
#include "apps/server/http_text.hpp"
#include "apps/server/query.hpp"
#include "apps/server/saved_slot.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "tests/fuzz/promises.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/json/parse.hpp>
#include <spdlog/fmt/fmt.h>

#include <map>
#include <string>
#include <vector>

namespace tessera::fuzz {
namespace {

using namespace server;
namespace json = boost::json;

// A vocabulary in which every byte can be spelt, with the markers of all families as control tokens.
text::VocabularyData sentencepiece_vocabulary() {
    text::VocabularyData data{
        .model = "llama",
        .tokens = {"<unk>", "<s>", "</s>"},
        .types = {text::TokenType::kUnknown, text::TokenType::kControl, text::TokenType::kControl}};
    const auto add = [&](std::string text, text::TokenType type) {
        data.tokens.push_back(std::move(text));
        data.types.push_back(type);
    };
    for (unsigned byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), text::TokenType::kByte);
    for (const char* marker : {"<|im_start|>", "<|im_end|>", "<|python_tag|>", "<|eot_id|>"})
        add(marker, text::TokenType::kControl);
    for (const char* marker : {"<think>", "</think>", "<tool_call>", "</tool_call>"})
        add(marker, text::TokenType::kUserDefined);
    for (const char* piece : {"\u2581", "a", "e", "\u2581a", "the", "\u2581the", "\n", "{", "\":", "user", "assistant"})
        add(piece, text::TokenType::kNormal);
    for (size_t i = 0; i < data.tokens.size(); ++i) data.scores.push_back(-static_cast<float>(i));
    data.bos = 1;
    data.eos = 2;
    data.unk = 0;
    return data;
}

const gguf::GgufFile& bundled() {
    static const gguf::GgufFile file = gguf::GgufFile::open(TSR_FUZZ_MODEL);
    return file;
}

const ModelText& model_of(uint8_t choice) {
    static const std::vector<std::string> names = text::ChatTemplate::names();
    static std::vector<std::unique_ptr<ModelText>> models(2 * names.size());
    const size_t index = choice % models.size();
    if (!models[index]) {
        auto model = std::make_unique<ModelText>();
        model->name = "fuzz";
        model->context = 512;
        model->tokenizer =
            index % 2 ? std::make_unique<text::Tokenizer>(sentencepiece_vocabulary()) : make_tokenizer(bundled());
        model->writer = std::make_unique<ChatWriter>(bundled(), *model->tokenizer, names[index / 2]);
        models[index] = std::move(model);
    }
    return *models[index];
}

void check_answer(const HttpResponse& response) {
    expect(response.status == 200 || (response.status >= 400 && response.status < 500) || response.status == 501,
           "status of an answer");
    boost::system::error_code error;
    json::parse(response.body, error);
    expect(!error, "an answer is JSON");
    const std::string head = response_head(response, true);
    expect(head.find("\r\n\r\n") == head.size() - 4, "one header");
}

// What the engine may rely on.
void check_request(const session::Request& request, const ModelText& model) {
    const size_t vocabulary = model.tokenizer->size();
    for (const text::Token token : request.prompt)
        expect(token >= 0 && static_cast<size_t>(token) < vocabulary, "a token of the vocabulary");
    expect(request.sampling.penalty_last_n <= static_cast<int32_t>(model.context), "a window of the context's size");
    session::Sampler sampler(request.sampling, vocabulary);
    for (const text::Token token : request.prompt) sampler.accept(token);
    std::vector<float> logits(vocabulary);
    for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i * 7919 % 1000) / 100 - 5;
    const int32_t sampled = sampler.sample(logits);
    expect(sampled >= 0 && static_cast<size_t>(sampled) < vocabulary, "a token of the vocabulary is sampled");
    // Stop strings are looked for in any text.
    session::StopStrings stop = request.stop;
    std::string shown;
    stop.push("the \u00e4 text ", shown);
    stop.finish(shown);
}

void check_requests(std::span<const session::Request> prompts, const Delivery& delivery, const ModelText& model) {
    expect(!prompts.empty() && prompts.size() * delivery.choices <= kMaximumChoices, "a number of answers");
    for (const session::Request& prompt : prompts) check_request(prompt, model);
}

size_t control_tokens(const ModelText& model, std::span<const text::Token> tokens) {
    return static_cast<size_t>(std::ranges::count_if(
        tokens, [&](text::Token token) { return model.tokenizer->type(token) == text::TokenType::kControl; }));
}

// Only what the template itself wrote becomes control tokens.
void check_control(std::string_view body, const ModelText& model, std::span<const text::Token> tokens) {
    const json::object object = parse_object(body);
    const text::WrittenChat chat =
        write(read_conversation(Fields(object, template_table()), model), model, [](uint64_t) {});
    size_t own = 0, at = 0;
    const auto count = [&](size_t end) {
        own += control_tokens(model, model.tokenizer->encode(std::string_view(chat.text).substr(at, end - at),
                                                             {.add_special = false, .parse_special = true}));
    };
    for (const text::TextRange& range : chat.contents) {
        expect(at <= range.begin && range.end <= chat.text.size(), "ranges in order");
        count(range.begin);
        at = range.end;
    }
    count(chat.text.size());
    expect(control_tokens(model, tokens) == own, "control tokens are the template's own");
}

ByteBudget memory(1 << 30);

constexpr uint8_t kKinds = 13, kHttp = 6;
constexpr size_t kTemplateTokens = 1 << 20;  // that a template writes by itself

void use_body(uint8_t kind, std::string_view body, const ModelText& model) {
    try {
        switch (kind) {
            case 0: {
                const ChatRequest read = read_chat(body, model);
                check_request(read.request, model);
                check_control(body, model, read.request.prompt);
                break;
            }
            case 1: {
                const CompletionRequest read = read_completion(body, model);
                check_requests(read.prompts, read.delivery, model);
                break;
            }
            case 2: {
                const PlainRequest read = read_plain_completion(body, model);
                check_requests(read.prompts, read.delivery, model);
                boost::system::error_code error;
                json::parse(read.plain.settings.json(read.prompts.front().sampling.seed), error);
                expect(!error, "settings are JSON");
                for (const std::string& prompt : read.plain.prompts) {
                    if (prompt.empty()) continue;
                    json::parse(prompt, error);
                    expect(!error, "prompts are JSON");
                }
                break;
            }
            case 3:
                return check_answer(tokenize_response(body, model, memory));
            case 4:
                return check_answer(detokenize_response(body, model, memory));
            case 5:
                return check_answer(apply_template_response(body, model, memory));
            case 7:
                return check_request(anthropic::read_messages(body, model).request, model);
            case 8:
                expect(anthropic::count_tokens(body, model) <= 8 * body.size() + kTemplateTokens, "tokens of a text");
                break;
            case 9:
            case 10: {
                const ollama::Asked read =
                    kind == 9 ? ollama::read_chat(body, model) : ollama::read_generate(body, model);
                if (read.loading.empty()) check_request(read.request, model);
                break;
            }
            case 11: {
                const ChatRequest read = responses::read_response(body, model);
                check_request(read.request, model);
                for (const auto& [name, value] : read.chat.repeated) {
                    boost::system::error_code error;
                    json::parse(value, error);
                    expect(!error, "what is repeated is JSON");
                }
                break;
            }
            default: {
                const PlainRequest read = read_infill(body, model);
                check_requests(read.prompts, read.delivery, model);
            }
        }
    } catch (const ApiError& error) {
        // No vocabulary here has tokens of gaps, and there is no helper for forms.
        expect(error.status() == 400 || error.status() == 501, "the client's fault");
        for (const Dialect* dialect : {&kOpenAi, &anthropic::kAnthropic, &ollama::kOllama, &responses::kResponses})
            check_answer(to_response(error, *dialect));
    } catch (const Error& error) {
        expect(error.code() == TSR_INVALID_ARGUMENT || error.code() == TSR_UNSUPPORTED, "the client's fault");
        check_answer(to_response(ApiError(400, error.what())));
    }
}

void use_http(std::string_view input, const ModelText& model) {
    static const ServerSettings settings = [] {
        ServerSettings made;
        made.keys = {"key", "other"};
        made.origins = {"https://allowed.example"};
        made.hosts = {"box.lan"};
        return made;
    }();
    static const AccessControl access(settings);

    namespace http = boost::beast::http;
    http::request_parser<http::string_body> parser;
    parser.header_limit(4096);
    parser.body_limit(4096);
    parser.eager(true);
    boost::system::error_code error;
    for (std::string_view rest = input; !rest.empty() && !parser.is_done();) {
        const size_t taken = parser.put(boost::asio::buffer(rest.data(), rest.size()), error);
        if (error || taken == 0) break;
        rest.remove_prefix(taken);
    }
    if (!parser.is_header_done()) return;
    const auto& message = parser.get();
    HttpRequest request;
    request.address = "127.0.0.1";
    request.version = message.version();
    split_target(std::string_view(message.target().data(), message.target().size()), request.path, request.query);
    expect(request.path.find('?') == std::string::npos, "a path without query");
    try {
        check_query(request.path, request.query);
        if (request.path == "/slots") fails_on_no_slot(request.query);
    } catch (const ApiError& fault) {
        check_answer(to_response(fault));
    }
    for (const auto& field : message) {
        request.headers.emplace_back(lower_case({field.name_string().data(), field.name_string().size()}),
                                     std::string(field.value()));
    }
    const auto refused = access.refusal(request, true);
    if (refused) {
        check_answer(to_response(*refused));
    } else {
        const Sender sender = access.sender_of(request);
        static std::map<std::string, std::string> clients;  // by space
        const auto& [space, client] = *clients.try_emplace(sender.space, sender.client).first;
        expect(!space.empty() && client.starts_with("key ") && client == sender.client, "a space for each key");
    }
    for (const auto& [name, value] : access.cors_headers(request))
        expect(value == "Origin" || value == "https://allowed.example", "sites that are allowed alone");
    if (!error && parser.is_done()) use_body(0, message.body(), model);
}

}  // namespace

void run_request(std::string_view input) {
    if (input.size() < 2) return;
    const auto kind = static_cast<uint8_t>(static_cast<uint8_t>(input[0]) % kKinds);
    const ModelText& model = model_of(static_cast<uint8_t>(input[1]));
    const std::string_view rest = input.substr(2);
    if (kind == kHttp) return use_http(rest, model);
    use_body(kind, rest, model);
}

}  // namespace tessera::fuzz
