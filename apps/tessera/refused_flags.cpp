// Flags of other programs that ask for what Tessera does not do: refused, with what to do instead.
#include "apps/tessera/flags.hpp"

namespace tessera::app {
namespace {

constexpr std::string_view kNoDownload =
    "nothing is downloaded: fetch the GGUF file with another program, and name it with -m FILE";
constexpr std::string_view kNoGrammar = "run and chat hold answers to a form; of a server requests ask for it";
constexpr std::string_view kNoAdapters = "adapters and control vectors are not applied; merge them into the model file";
constexpr std::string_view kNoImages = "images and sound are not read, only text";
constexpr std::string_view kNoEmbeddings = "embeddings are computed by the server alone: tessera serve --embeddings";
constexpr std::string_view kNoRankings = "rankings are not computed: no model of a ranker's architecture is known";
constexpr std::string_view kNormOfRequest = "a request to the server's /embedding says it: embd_normalize";
constexpr std::string_view kNoCacheFile = "the cache is not saved to files";
constexpr std::string_view kNoInfill =
    "text is continued at its end, not filled in; write the prompt that the model was trained on, and use --raw";
constexpr std::string_view kOneModel = "a server has one model, named with -m FILE; start one server for each";
constexpr std::string_view kNoTools = "the server runs no tools; clients run those that they offer to the model";
constexpr std::string_view kNoTests = "only the perplexity of a text is measured, and --kl-divergence";
constexpr std::string_view kOtherTool = "a flag of a tool that Tessera does not have";
constexpr std::string_view kKeysOfServers = "only 'tessera serve' has clients to check; leave the key away here";
constexpr std::string_view kInRequests = "prompts and system messages are parts of requests to a server";
constexpr std::string_view kBenchmark = "measuring is done by 'tessera bench'";
constexpr std::string_view kNoWordLists =
    "no such list of words or biases is applied; --logit-bias changes single tokens";

// One flag an entry, on one line or two.
// clang-format off
constexpr Flag kRefusedFlags[] = {
    // The model
    refused("hf-repo",
            "-hf -hfr --hf-repo -hff --hf-file -mu --model-url -dr --docker-repo -hfv -hfrv --hf-repo-v -hffv --hf-file-v", Takes::kValue, "", kNoDownload),
    refused("hf-repo-draft", "-hfd -hfrd --hf-repo-draft --spec-draft-hf", Takes::kValue, "", kNoDownload).from("LLAMA_ARG_HFD_REPO LLAMA_ARG_SPEC_DRAFT_HF_REPO"),
    refused("default-models",
            "-cl --cache-list --embd-gemma-default --fim-qwen-1.5b-default --fim-qwen-3b-default --fim-qwen-7b-default --fim-qwen-7b-spec "
            "--fim-qwen-14b-spec --fim-qwen-30b-default --gpt-oss-20b-default --gpt-oss-120b-default --vision-gemma-4b-default "
            "--vision-gemma-12b-default", Takes::kNothing, "", kNoDownload),
    refused("dry-run", "--dry-run", Takes::kNothing, "", "'tessera plan' plans a model without loading it"),
    refused("lora",
            "--lora --lora-scaled --lora-base --control-vector --control-vector-scaled --control-vector-layer-range", Takes::kValue, "", kNoAdapters),
    refused("lora-init-without-apply", "--lora-init-without-apply", Takes::kNothing, "", kNoAdapters),
    refused("mmproj", "-mm --mmproj -mmu --mmproj-url --image --audio --video --media-path", Takes::kValue, "", kNoImages),
    refused("rpc", "--rpc -rpc", Takes::kValue, "", "devices of other machines are not used"),
    refused("cache-type-of-layers", "-ctk-first --cache-type-k-first -ctk-last --cache-type-k-last -ctv-first --cache-type-v-first -ctv-last "
            "--cache-type-v-last", Takes::kValue, "", "all layers have caches of one type: -ctk and -ctv"),
    refused("dsa", "-dsa --dsa", Takes::kNothing, "", "attention is dense; leave the flag away to compute it so"),
    refused("dsa-top-k", "-dsatk --dsa-top-k", Takes::kValue, "", "attention is dense; leave the flag away to compute it so"),
    refused("gpu-fit-margin", "-gfm --gpu-fit-margin", Takes::kValue, "", "margins are given for all GPUs in order: -fitt MIB,..."),
    refused("n-cpu-ffn", "-ncffn --n-cpu-ffn", Takes::kValue, "0", "give a rule instead, for the first ten layers -ot 'blk\\.[0-9]\\.ffn.*=CPU'"),
    refused("moe-cache", "--moe-cache --moe-cache-mib", Takes::kValue, "0 off", "experts of the CPU are not cached on GPUs; --fit-target leaves memory free for other uses"),
    refused("attention", "--attention", Takes::kValue, "causal", "attention is causal, as generating needs it"),
    // What is generated
    refused("answer-form", "--grammar --grammar-file -j --json-schema -jf --json-schema-file", Takes::kValue, "", kNoGrammar,
            kEngine & ~kModel),
    refused("cfg-scale", "--cfg-scale", Takes::kValue, "1", "there is no guidance by a negative prompt"),
    refused("cfg-negative-prompt", "--cfg-negative-prompt --cfg-negative-prompt-file", Takes::kValue, "", "there is no guidance by a negative prompt"),
    refused("banned-words",
            "--banned-string-file --banned-n --allowlist-unicode-rule --allowlist-pieces --allowlist-keyword --allowlist-keyword-delay "
            "--expiring-logit-bias-file", Takes::kValue, "", kNoWordLists),
    refused("adaptive-updt-w-cur", "--adaptive-updt-w-cur", Takes::kNothing, "", "adaptive-p is updated with the original probability alone"),
    refused("context-shift", "--context-shift", Takes::kSwitch, "off 0 false",
            "a full context ends the answer, nothing of it is dropped; -c gives more, up to the model's maximum"),
    refused("infill", "--infill --spm-infill", Takes::kNothing, "", kNoInfill),
    refused("in-prefix", "--in-prefix --in-suffix", Takes::kValue, "", "the chat template defines the text around a message: --chat-template NAME, or --raw and a whole prompt"),
    refused("in-prefix-bos", "--in-prefix-bos", Takes::kNothing, "", "the chat template defines the text around a message"),
    refused("keep-reasoning", "--reasoning-preserve", Takes::kNothing, "", "thinking of earlier answers is left out as the template has it"),
    refused("interactive", "-i --interactive -if --interactive-first", Takes::kNothing, "", "for a conversation use 'tessera chat'", kRun | kPlan),
    refused("multiline-input", "-mli --multiline-input", Takes::kNothing, "", "a message ends with its line; one that ends in \\ continues on the next", kModel),
    refused("display-prompt", "--display-prompt", Takes::kNothing, "", "only the completion is printed", kModel),
    refused("binary-file", "-bf --binary-file", Takes::kValue, "", "a prompt is text: -f FILE", kModel | kPerplexity),
    refused("output-file", "-o --output --output-file", Takes::kValue, "", "answers go to standard output; redirect it to a file: > FILE", kModel | kServe | kPerplexity),
    refused("server-base", "--server-base", Takes::kValue, "", "the model is loaded here, not reached over HTTP; use a client of the OpenAI API"),
    refused("prompt-cache", "--prompt-cache", Takes::kValue, "", kNoCacheFile),
    refused("prompt-cache-all", "--prompt-cache-all --prompt-cache-ro", Takes::kNothing, "", kNoCacheFile),
    refused("logdir", "-ld --logdir --log-prompts-dir", Takes::kValue, "", "messages can be copied to one file: --log-file FILE"),
    refused("log-append", "--log-append", Takes::kNothing, "", "--log-file writes a new file; the shell appends: 2>> FILE"),
    refused("sequences", "-ns --sequences -ps --p-split", Takes::kValue, "", "several prompts are answered at once with --parallel N -f FILE"),
    refused("embedding", "--embedding --embeddings", Takes::kNothing, "", kNoEmbeddings, kEngine & ~kBench & ~kServe & ~kPlan),
    refused("rerank", "--rerank --reranking", Takes::kNothing, "", kNoRankings, kEngine & ~kBench),
    refused("pooling-elsewhere", "--pooling", Takes::kValue, "none", kNoEmbeddings, kNotServe),
    refused("embd-normalize", "--embd-normalize --embd-output-format --embd-separator --cls-separator", Takes::kValue, "", kNormOfRequest),
    // Of servers
    refused("api-key-elsewhere", "--api-key --api-key-file", Takes::kValue, "", kKeysOfServers, kNotServe),
    refused("slot-save-path-elsewhere", "--slot-save-path", Takes::kValue, "", "slots are a server's", kNotServe),
    refused("sql-save-file", "--sql-save-file --sqlite-zstd-ext-file", Takes::kValue, "", kNoCacheFile),
    refused("static-path", "--path", Takes::kValue, "", "the server has its own chat page and serves no other files").from("LLAMA_ARG_STATIC_PATH"),
    refused("ui-config", "--ui-config --webui-config --ui-config-file --webui-config-file", Takes::kValue, "", "settings of the chat page are made in the page"),
    refused("server-special", "-sp --special", Takes::kNothing, "", "answers hold no control tokens", kServe),
    refused("server-prompt", "-p --prompt -f --file -bf --binary-file -sys --system-prompt -sysf --system-prompt-file -spf", Takes::kValue, "", kInRequests, kServe),
    refused("server-reasoning-format", "--reasoning-format", Takes::kValue, "auto deepseek",
            "thinking is returned apart, as reasoning_content (deepseek)", kServe).from("LLAMA_ARG_THINK"),
    refused("server-skip-chat-parsing", "--skip-chat-parsing", Takes::kNothing, "",
            "thinking and tool calls are returned apart; /v1/completions returns text as it is generated", kServe),
    refused("prefill-assistant", "--prefill-assistant --no-prefill-assistant", Takes::kNothing, "", "a request says itself whether its last message is continued: continue_final_message"),
    refused("models", "--models-dir --models-preset --models-max", Takes::kValue, "", kOneModel),
    refused("models-autoload", "--models-autoload", Takes::kNothing, "", kOneModel),
    refused("tools", "--tools --tools-runtime --mcp-servers-config --mcp-servers-json", Takes::kValue, "", kNoTools),
    refused("agent", "-ag --agent --ui-mcp-proxy --webui-mcp-proxy", Takes::kNothing, "", kNoTools),
    refused("parallel-tool-calls", "-ptcall --parallel-tool-calls", Takes::kNothing, "", "a request says itself whether calls may be made in parallel: parallel_tool_calls"),
    refused("cors", "--cors-methods --cors-headers", Takes::kValue, "", "--cors-origin names the pages that may use the server; methods and headers are fixed"),
    refused("cors-credentials", "--cors-credentials --no-cors-credentials --reuse-port", Takes::kNothing, "", "the server has no such switch; --cors-origin names the pages that may use it"),
    refused("sleep-idle-seconds", "--sleep-idle-seconds", Takes::kValue, "-1", "the model stays loaded until the server ends"),
    refused("kv-unified-per-slot", "--kv-unified-per-slot", Takes::kValue, "", "all answers share the context of -c"),
    // Of measurements
    refused("bench-only", "-gp -pg -w --warmup-runs", Takes::kValue, "", kBenchmark, kModel),
    refused("threads-gen-batch", "-tgb --threads-gen-batch", Takes::kValue, "", "threads are set by -t and -tb", kBench),
    refused("bench-embeddings", "-embd --embeddings", Takes::kSwitch, "off 0 false", kNoEmbeddings, kBench),
    refused("delay", "--delay", Takes::kValue, "0", "tests follow each other at once", kBench),
    refused("synthetic-drafts", "--spec-synth-len --spec-synth-rates", Takes::kValue, "", "no drafts are made whose acceptance could be set"),
    refused("ppl-stride", "--ppl-stride --ppl-output-type", Takes::kValue, "0", "chunks follow each other without overlap, and results have one form", kPerplexity),
    refused("choices", "--hellaswag --winogrande --multiple-choice", Takes::kNothing, "", kNoTests, kPerplexity),
    refused("choices-tasks", "--hellaswag-tasks --winogrande-tasks --multiple-choice-tasks", Takes::kValue, "", kNoTests, kPerplexity),
    // Of other tools
    refused("imatrix", "--process-output --no-ppl --show-statistics --output-tensor-name", Takes::kNothing, "", kOtherTool),
    refused("other-tools",
            "--in-file --output-frequency -ofreq --save-frequency --chunk --from-chunk --positive-file --negative-file --pca-batch --pca-iter "
            "--method --context-file --chunk-size --chunk-separator --junk --pos -npp -ntg -npl -mv --model-vocoder --tts-speaker-file "
            "--output-draft --draft-output --draft-output-file "
            "--diffusion-steps --diffusion-eps --diffusion-algorithm --diffusion-alg-temp --diffusion-block-length --diffusion-cfg-scale "
            "-lr --learning-rate -lr-min --learning-rate-min -decay-epochs --learning-rate-decay-epochs -wd --weight-decay -val-split "
            "--val-split -epochs --epochs -opt --optimizer", Takes::kValue, "", kOtherTool),
    refused("other-switches", "-pps -tgs --log-test --tts-use-guide-tokens --diffusion-visual --diffusion-add-gumbel-noise", Takes::kNothing, "", kOtherTool),
    refused("completion-script", "--completion-bash --license", Takes::kNothing, "", "the program prints neither; see LICENSE in its sources"),
    // Positions
    refused("grp-attn-n", "-gan --grp-attn-n", Takes::kValue, "1", "attention does not group positions; --rope-scaling extends a context"),
    // Samplers
    refused("tfs", "--tfs", Takes::kValue, "1 1.0", "there is no tail-free sampling; --min-p cuts off the tail, too", kGenerate),
};
// clang-format on

}  // namespace

std::span<const Flag> refused_flags() noexcept {
    return kRefusedFlags;
}

}  // namespace tessera::app
