// Metrics in Prometheus' text format, version 0.0.4.
#include "apps/server/endpoint.hpp"

#include <spdlog/fmt/fmt.h>

namespace tessera::server {
namespace {

class Metrics {
  public:
    // `alias`: the name by which llama-server has it; empty: none.
    template <typename Value>
    void add(std::string_view name, std::string_view type, std::string_view help, Value value,
             std::string_view alias = {}) {
        write(fmt::format("tessera_{}", name), type, help, value);
        if (!alias.empty()) write(fmt::format("llamacpp:{}", alias), type, help, value);
    }

    // Under names of vLLM, with the labels in braces that theirs have: "{model_name=\"demo\"}".
    template <typename Value>
    void add_vllm(std::initializer_list<std::string_view> names, std::string_view type, std::string_view help,
                  Value value, std::string_view labels) {
        for (const std::string_view name : names) write(fmt::format("vllm:{}", name), type, help, value, labels);
    }

    std::string text;

  private:
    template <typename Value>
    void write(const std::string& name, std::string_view type, std::string_view help, Value value,
               std::string_view labels = {}) {
        text += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0}{4} {3}\n", name, help, type, value, labels);
    }
};

// Of steps that are compared with the plan's prediction.
void add_compared(Metrics& metrics, std::string_view kind, const ComparedSteps& steps) {
    const auto name = [&](std::string_view what) { return fmt::format("compared_{}_{}", kind, what); };
    metrics.add(name("steps_total"), "counter", "Steps of one request alone, which the plan predicts.", steps.steps);
    metrics.add(name("seconds_total"), "counter", "Time of these steps.", steps.measured_seconds);
    metrics.add(name("predicted_seconds_total"), "counter", "What the plan predicts of these steps.",
                steps.predicted_seconds);
    metrics.add(name("speed_ratio"), "gauge", "Their speed over the predicted one, the median of the last; 0: no step.",
                steps.ratio);
}

// Of pages in files.
void add_kept(Metrics& metrics, const session::KeptStatus& kept) {
    const session::PageStoreStatus& s = kept.store;
    metrics.add("kept_pages", "gauge", "Pages in files.", s.pages);
    metrics.add("kept_bytes", "gauge", "Bytes of these files.", s.bytes);
    metrics.add("kept_waiting_pages", "gauge", "Pages that are to be written to files.", kept.waiting_pages);
    metrics.add("kept_written_pages_total", "counter", "Pages that were written to files.", s.written_pages);
    metrics.add("kept_written_bytes_total", "counter", "Bytes of these.", s.written_bytes);
    metrics.add("kept_read_pages_total", "counter", "Pages that were read in place of being computed.", s.read_pages);
    metrics.add("kept_read_bytes_total", "counter", "Bytes of these.", s.read_bytes);
    metrics.add("kept_damaged_pages_total", "counter", "Files that were dropped as they were damaged.",
                s.damaged_pages);
    metrics.add("kept_failures_total", "counter", "Files that could not be written or read.", s.failures);
    metrics.add("kept_slow_reads_total", "counter", "Requests that were computed since the disk took too long.",
                kept.given_up);
    metrics.add("kept_forgotten_pages_total", "counter", "Pages whose files were removed to stay below the limit.",
                s.forgotten_pages);
}

// The value of a label, in double quotes.
std::string label_text(std::string_view value) {
    std::string out = "\"";
    for (const char c : value) {
        if (c == '\n') {
            out += "\\n";
            continue;
        }
        if (c == '\\' || c == '"') out += '\\';
        out += c;
    }
    return out + '"';
}

struct Load {
    size_t running, waiting;
    double cache_usage;  // 0 to 1
};

// Metrics by which gateways choose a replica, under vLLM's names: those of its version 1 first, then older ones that
// routers still read.
void add_vllm(Metrics& metrics, const ServedModel& model, const session::ServiceStatus& status, const Load& load) {
    const session::GeneratorCounters& c = status.counters;
    const std::string name = fmt::format("model_name={}", label_text(model.name)), labels = fmt::format("{{{}}}", name);
    metrics.add_vllm({"num_requests_running"}, "gauge", "Generations in steps.", load.running, labels);
    metrics.add_vllm({"num_requests_waiting"}, "gauge", "Generations that wait.", load.waiting, labels);
    metrics.add_vllm({"kv_cache_usage_perc", "gpu_cache_usage_perc"}, "gauge",
                     "Share of pages that requests use, 0 to 1.", load.cache_usage, labels);
    metrics.add_vllm({"prefix_cache_queries_total", "gpu_prefix_cache_queries_total"}, "counter",
                     "Tokens of prompts that were looked up in the prefix cache.", c.prompt_tokens + c.reused_tokens,
                     labels);
    metrics.add_vllm({"prefix_cache_hits_total", "gpu_prefix_cache_hits_total"}, "counter",
                     "Tokens of prompts that were found in the prefix cache.", c.reused_tokens, labels);
    metrics.add_vllm({"prompt_tokens_total"}, "counter", "Tokens of prompts, cached ones included.",
                     c.prompt_tokens + c.reused_tokens, labels);
    metrics.add_vllm({"generation_tokens_total"}, "counter", "Tokens that were generated.", c.generated_tokens, labels);
    metrics.add_vllm({"num_preemptions_total"}, "counter", "Generations that gave up their pages to others.",
                     c.preempted, labels);
    metrics.add_vllm(
        {"cache_config_info"}, "gauge", "Size of the cache: tokens of a page, and pages.", 1,
        fmt::format("{{{},block_size=\"{}\",num_gpu_blocks=\"{}\"}}", name, TSR_PAGE_TOKENS, status.pages));
}

double rate(uint64_t tokens, double seconds) {
    return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

HttpResponse metrics_text(const EndpointContext& context, const HttpRequest&) {
    const ModelHost& host = context.host;
    const ServerStatus server = context.status();
    Metrics m;
    const ModelHost::Health health = host.health();
    m.add("ready", "gauge", "Whether the model answers.", health.state == ModelHost::State::kReady ? 1 : 0);
    m.add("loaded_ratio", "gauge", "How much of the model has been loaded.",
          health.state == ModelHost::State::kReady ? 1.0 : health.loaded());
    m.add("http_connections", "gauge", "Connections that are open.", server.connections);
    m.add("http_connections_closed_total", "counter", "Connections closed to make room for others.",
          server.closed_connections);
    m.add("http_requests_total", "counter", "Requests that were received.", server.requests);
    m.add("http_body_bytes", "gauge", "Bytes of requests that are held.", server.body_bytes);
    m.add("http_unread_bytes", "gauge", "Bytes of answers that clients have not read.", server.unread_bytes);
    m.add("requests_limited_total", "counter", "Requests refused as their client had used up its share.",
          server.limited);
    m.add("access_log_dropped_lines_total", "counter", "Lines of the access log that could not be written in time.",
          server.dropped_lines);
    if (const auto model = host.peek()) {
        m.add("structured_output_available", "gauge", "Whether answers can be held to schemas and grammars.",
              model->structure_fault.empty() ? 1 : 0);
        const session::ServiceStatus s = model->service->status();
        const session::GeneratorCounters& c = s.counters;
        size_t generating = 0, prompts = 0, paused = 0;
        for (const auto& state : s.running) ++(state.paused ? paused : state.generating ? generating : prompts);
        m.add("prompt_tokens_total", "counter", "Tokens of prompts that were computed.", c.prompt_tokens,
              "prompt_tokens_total");
        m.add("prompt_seconds_total", "counter", "Time of steps with prompts.", c.prompt_seconds,
              "prompt_seconds_total");
        m.add("reused_tokens_total", "counter", "Tokens of prompts that were found in the cache.", c.reused_tokens);
        m.add("recomputed_tokens_total", "counter", "Tokens computed again since their pages were given to others.",
              c.recomputed_tokens);
        m.add("generated_tokens_total", "counter", "Tokens that were generated.", c.generated_tokens,
              "tokens_predicted_total");
        m.add("drafted_tokens_total", "counter", "Tokens of drafts that steps verified.", c.drafted_tokens);
        m.add("accepted_tokens_total", "counter", "Of those, tokens that the model chose.", c.accepted_tokens);
        m.add("generation_seconds_total", "counter", "Time of steps without prompts.", c.generation_seconds,
              "tokens_predicted_seconds_total");
        m.add("prompt_tokens_per_second", "gauge", "Of steps with prompts, since the start.",
              rate(c.prompt_tokens, c.prompt_seconds), "prompt_tokens_seconds");
        m.add("generated_tokens_per_second", "gauge", "Of all steps, since the start.",
              rate(c.generated_tokens, c.busy_seconds), "predicted_tokens_seconds");
        m.add("steps_total", "counter", "Steps of the engine.", c.steps, "n_decode_total");
        m.add("step_sequences", "gauge", "Generations in a step in the mean, since the start.",
              rate(c.sequences, static_cast<double>(c.steps)), "n_busy_slots_per_decode");
        m.add("sequence_tokens_max", "gauge", "Tokens that a generation has held at most.", c.most_tokens,
              "n_tokens_max");
        m.add("busy_seconds_total", "counter", "Time in which the engine worked.", c.busy_seconds);
        m.add("failed_steps_total", "counter", "Steps that failed.", c.failed_steps);
        m.add("requests_finished_total", "counter", "Generations that ended.", c.finished);
        m.add("requests_cancelled_total", "counter", "Generations that clients gave up.", c.cancelled);
        m.add("requests_failed_total", "counter", "Generations that failed.", c.failed);
        m.add("requests_preempted_total", "counter", "Generations that gave up their pages to others.", c.preempted);
        m.add("requests_paused_total", "counter", "Generations that gave up their place to another client's.",
              c.paused);
        m.add("requests_running", "gauge", "Generations in steps.", generating + prompts, "requests_processing");
        m.add("requests_in_prompt", "gauge", "Generations whose prompts are being computed.", prompts);
        m.add("requests_waiting", "gauge", "Generations that wait.", s.waiting.requests + paused, "requests_deferred");
        m.add("waiting_tokens", "gauge", "Tokens of prompts that wait.", s.waiting.tokens);
        m.add("cache_pages", "gauge", "Pages of the cache.", s.pages);
        m.add("cache_free_pages", "gauge", "Pages that hold nothing.", s.free_pages);
        m.add("cache_prefix_pages", "gauge", "Pages that later requests may share.", s.prefix_pages);
        m.add("cache_evictable_pages", "gauge", "Of those, pages that no request uses now.", s.evictable_pages);
        m.add("cache_evictions_total", "counter", "Pages that were forgotten to make room.", s.evictions);
        const double usage = s.pages ? 1 - static_cast<double>(s.free_pages + s.evictable_pages) / s.pages : 0.0;
        m.add("cache_usage_ratio", "gauge", "Share of pages that requests use.", usage, "kv_cache_usage_ratio");
        add_vllm(m, *model, s, {generating + prompts, s.waiting.requests + paused, usage});
        if (s.kept) add_kept(m, *s.kept);
        m.add("prompt_chunk_rows", "gauge", "Rows of prompts in one step.", s.chunk_rows);
        add_compared(m, "prompt", s.compared.prompts);
        add_compared(m, "generation", s.compared.generation);
    }
    return {200, "text/plain; version=0.0.4; charset=utf-8", std::move(m.text), {}};
}

}  // namespace

namespace endpoint_files {

constexpr Endpoint kMetrics[] = {
    {.method = "GET", .paths = "/metrics", .look = metrics_text, .offered = &ServerSettings::metrics},
};
extern const std::span<const Endpoint> metrics = kMetrics;

}  // namespace endpoint_files

}  // namespace tessera::server
