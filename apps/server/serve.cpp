#include "apps/server/serve.hpp"

#include "apps/server/core_digest.hpp"
#include "apps/server/end_in_time.hpp"
#include "apps/server/kept_folder.hpp"
#include "apps/server/model_host.hpp"
#include "apps/server/server.hpp"
#include "apps/server/service_manager.hpp"
#include "apps/structure/reasoning_limit.hpp"
#include "apps/wording/wording.hpp"
#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/session/kept/slot_file.hpp"
#include "core/setup/draft_model.hpp"
#include "core/setup/drafts.hpp"
#include "core/setup/earlier_runs.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <span>
#include <thread>

namespace tessera::server {
namespace {

std::string model_name(const ServerSettings& settings, const OpenedModel& model) {
    if (!settings.alias.empty()) return settings.alias;
    return model.path.stem().string();
}

// The numbers of llama.cpp's pooling_type: 1 is mean, 3 last, 0 nothing.
std::optional<session::Pooling> pooling_of(const ServerSettings& settings, const gguf::Metadata& metadata) {
    if (settings.pooling) return settings.pooling;
    const std::string key = std::string(metadata.find_string("general.architecture").value_or("")) + ".pooling_type";
    const auto type = metadata.find_as<int64_t>(key);
    if (!type || *type == 0 || *type == 3) return session::Pooling::kLast;
    return *type == 1 ? std::optional(session::Pooling::kMean) : std::nullopt;
}

// Returns why the model's reasoning budget cannot be enforced, or nothing.
std::string budget_fault(const ServedModel& model) {
    if (model.reasoning_budget.value_or(-1) <= 0 || !model.writer) return {};
    text::ChatOptions options = model.writer->options();
    if (model.writer->can_think()) options.thinking = true;
    const text::ChatMessage question{"user", "hi"};
    const text::ReplySyntax syntax = model.writer->write(std::span(&question, 1), options).reply;
    if (!syntax.reasoning || structure::can_end_reasoning(syntax, *model.tokenizer)) return {};
    return fmt::format("the vocabulary cannot spell {}, which ends reasoning", syntax.reasoning_end);
}

// For all but pages at the end; systemd is asked for both.
constexpr std::chrono::seconds kExtraTime(10);

// Throws Error(TSR_CANCELLED) soon after `stopping` has become true.
std::shared_ptr<ServedModel> load(const ServeOptions& options, OpenedModel model, Machine& machine, ModelHost& host,
                                  KeptFolder& folder, const std::atomic<bool>& stopping, const LineSink& say) {
    auto served = std::make_shared<ServedModel>();
    served->name = model_name(options.server, model);
    served->path = model.path.string();
    served->tokenizer = make_tokenizer(model.file);
    served->structure = std::make_unique<structure::Helper>(*served->tokenizer, options.model.structured_library);
    served->structure_fault = served->structure->check();
    if (served->structure_fault.empty())
        say("structured output is available");
    else if (options.model.structured_library)
        fail(TSR_NOT_FOUND, "--structured-library: {}", served->structure_fault);
    else
        say(
            fmt::format("structured output is not available: {}; run tools/setup --structured, or give the library by "
                        "--structured-library FILE",
                        served->structure_fault));
    served->chat_template = options.model.chat_template.value_or(options.model.chat_template_text.value_or(
        std::string(model.file.metadata().find_string("tokenizer.chat_template").value_or(""))));
    try {
        served->writer = std::make_unique<ChatWriter>(model.file, *served->tokenizer, options.model);
    } catch (const Error& error) {
        // A wrong value of a flag is an error; a file without a template that can be used is served without chat.
        const ModelSettings& given = options.model;
        if (given.chat_template || given.chat_template_text || !given.template_variables.empty()) throw;
        served->writer_fault = worded(error);
        say(fmt::format("/v1/chat/completions is not offered: {}", served->writer_fault));
    }
    if (served->writer && served->writer->has_unread_calls()) {
        say(
            fmt::format("{} describes tools, but calls in its model's answers are not read: they stay content (no "
                        "format in docs/chat-formats.md matches); choose another template with --chat-template",
                        served->writer->title()));
    }
    served->sampling =
        sampling_parameters(options.model, model.bundled, *served->tokenizer, model.file.metadata(), say);
    served->reasoning_budget = options.model.reasoning_budget;
    served->reasoning_budget_fault = budget_fault(*served);
    if (!served->reasoning_budget_fault.empty())
        say(fmt::format("--reasoning-budget has no effect: {}", served->reasoning_budget_fault));
    served->random_seed = !options.model.seed_given;
    served->infill = text::find_infill_tokens(model.file.metadata(), *served->tokenizer);
    served->pooling = pooling_of(options.server, model.file.metadata());
    EngineOptions engine = options.model.engine;
    engine.hidden_states = options.server.embeddings;
    engine.sequences = options.model.parallel;
    engine.rows = std::min(engine.rows, options.chunk_rows) + engine.sequences - 1;
    engine.context = options.model.context.value_or(0);
    make_room(options.model.drafts, engine);
    if (options.model.context == 0u) engine.context = read_model_info(model.file, machine.registry).context;
    const NoticeSink notify = [&](const Notice& notice) { say(worded(notice)); };
    auto draft_model = load_draft_model(options.model, machine, *served->tokenizer, {engine.sequences, engine.context},
                                        notify, [&](uint64_t, uint64_t) {
                                            if (stopping) fail(TSR_CANCELLED, "a signal ended loading");
                                        });
    served->engine = load_engine(std::move(model), machine, engine, !options.context_given, TSR_PAGE_TOKENS,
                                 options.model.common.verbose, notify, [&](uint64_t done, uint64_t total) {
                                     if (stopping) fail(TSR_CANCELLED, "a signal ended loading");
                                     host.progress(done, total);
                                 });
    served->context = served->engine->context();
    served->embedding = served->engine->info().embedding;
    const uint32_t most = served->engine->sequence_tokens(), made_for = served->engine->info().context;
    served->request_context = std::min(most, options.server.request_context.value_or(made_for ? made_for : most));
    session::ServiceOptions service;
    service.generator.chunk_rows = options.chunk_rows;
    service.generator.chunk_seconds = options.chunk_seconds;
    service.generator.target_step_seconds = options.server.target_step_seconds;
    service.generator.drafts = make_drafts(options.model.drafts, std::move(draft_model));
    if (options.model.drafts.any())
        served->draft_tokens = std::min(options.model.drafts.most, served->engine->rows_as_single() - 1);
    if (const auto notice = draft_notice(options.model.drafts, *served->engine)) say(worded(*notice));
    if (options.server.cache_dir || options.server.slot_folder)
        served->pages = session::identity_of(*served->engine, machine.registry, options.model.engine.experts,
                                             fmt::format("{} {}", TSR_VERSION, core_digest()));
    service.generator.pages = folder.open(options.server, served->pages, served->engine->page_bytes(), stopping);
    service.generator.pages_later = folder.comes_later();
    service.generator.slots = options.server.slot_folder.has_value();
    service.waiting_requests = options.server.waiting_requests;
    service.waiting_tokens = options.server.waiting_tokens;
    served->service = std::make_unique<session::Service>(*served->engine, *served->tokenizer, service);
    served->created =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    return served;
}

std::string url(const ServerSettings& settings, uint16_t port) {
    const std::string host = settings.host.find(':') == std::string::npos ? settings.host : "[" + settings.host + "]";
    return fmt::format("{}://{}:{}{}", settings.tls_certificate ? "https" : "http", host, port, settings.prefix);
}

// Pages that are not there yet, for as long as settings allow and nobody hurries.
void keep_rest(const ServerSettings& settings, session::Service& service, const Server& server, const LineSink& say) {
    if (!service.status().kept) return;
    const auto limit = std::chrono::microseconds(settings.cache_dir_time);
    notify_service_manager(
        fmt::format("EXTEND_TIMEOUT_USEC={}", (limit + std::chrono::microseconds(kExtraTime)).count()));
    const auto until = std::chrono::steady_clock::now() + limit;
    const uint64_t left =
        service.keep_rest([&] { return std::chrono::steady_clock::now() < until && !server.hurries(); });
    if (left > 0) say(fmt::format("{} pages of the cache were not kept: there was no time or no place for them", left));
}

}  // namespace

void serve(const ServeOptions& options, OpenedModel model, Machine& machine, const LineSink& say) {
    const auto start = std::chrono::steady_clock::now();
    if (options.server.slot_folder) session::open_slot_folder(*options.server.slot_folder);
    EndInTime end;  // outlives all who wait for disks
    ModelHost host;
    const std::string name = model_name(options.server, model);
    Server server(options.server, host, name, say);
    say(fmt::format("listening at {}", url(options.server, server.port())));
    std::exception_ptr failure;
    std::shared_ptr<ServedModel> served;
    std::atomic<bool> stopping{false};
    const auto fail_with = [&](std::exception_ptr error) {
        failure = std::move(error);
        host.failed("see the server's messages");
        server.stop();
    };
    // The engine's threads follow the thread that loads it, so the same thread takes the steps.
    std::thread engine([&] {
        KeptFolder folder(say);
        try {
            served = load(options, std::move(model), machine, host, folder, stopping, say);
            host.ready(served);
            say(fmt::format("ready after {:.1f} s: model {}, {} requests at once, context {} tokens, of one request {}",
                            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), name,
                            served->engine->max_sequences(), served->context, served->request_context));
            notify_service_manager("READY=1");
            // A signal that came at the end of loading has found no service to stop.
            if (stopping) served->service->stop();
            folder.give_later(*served->service);
            served->service->run();
            keep_rest(options.server, *served->service, server, say);
            if (options.model.common.verbose) {
                for (const std::string& line : comparison_lines(served->engine->compared())) say(line);
            }
            keep_run(machine, *served->engine, [&](const Notice& notice) { say(worded(notice)); });
        } catch (const Error& error) {
            if (error.code() != TSR_CANCELLED || !stopping) fail_with(std::current_exception());
        } catch (...) {
            fail_with(std::current_exception());
        }
    });
    server.wait();
    notify_service_manager("STOPPING=1");
    stopping = true;
    if (options.server.cache_dir || options.server.slot_folder) end.limit(options.server.cache_dir_time + kExtraTime);
    if (const auto model_now = host.peek()) model_now->service->stop();
    engine.join();
    server.flush(std::chrono::seconds(2));
    if (failure) std::rethrow_exception(failure);
    say("stopped");
    end.done();
}

}  // namespace tessera::server
