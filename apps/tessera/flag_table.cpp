// The commands of the program and the flags that they support.
#include "apps/tessera/flag_values.hpp"
#include "apps/tessera/flags.hpp"
#include "core/session/sampling_parameters.hpp"

#include <algorithm>
#include <array>

namespace tessera::app {
namespace {

constexpr CommandInfo kCommands[] = {
    {Command::kRun, "run", "", "tessera run [-m MODEL] -p PROMPT [flags]",
     "Completes a prompt and prints the completion."},
    {Command::kChat, "chat", "", "tessera chat [-m MODEL] [flags]",
     "Holds a conversation: reads messages and prints answers."},
    {Command::kServe, "serve", "", "tessera serve [-m MODEL] [--host ADDRESS] [--port N] [flags]",
     "Serves a model over HTTP, as the OpenAI API and llama-server have it; tessera-server is the same."},
    {Command::kPlan, "plan", "model", "tessera plan [-m] MODEL [--rig FILE] [--json] [flags]",
     "Plans a model for this machine or another without loading it: memory, placement, kernels."},
    {Command::kBench, "bench", "",
     "tessera bench -m MODEL [-p N,...] [-n N,...] [-pg P,G] [-d DEPTH,...] [-r N] [-o md|csv|json|jsonl] [flags]",
     "Measures the speed of prompts, generation, and both together; flags may take several values."},
    {Command::kSweep, "sweep", "sweep-results",
     "tessera sweep -m MODEL [-c N] [--save FILE] [--plot FILE.svg] [flags], or tessera sweep RESULTS... --plot "
     "FILE.svg",
     "Measures speed against depth, and draws results."},
    {Command::kPerplexity, "perplexity", "",
     "tessera perplexity -m MODEL -f TEXT [-c N] [--chunks N] [--kl-divergence-base FILE [--kl-divergence]] [flags]",
     "Measures how well a model predicts a text, or how much it differs from a saved run."},
    {Command::kRepack, "repack", "", "tessera repack -m MODEL -o FILE [flags]",
     "Writes a copy of a model with packed weights, which are used directly in the mapped file."},
    {Command::kDevices, "devices", "", "tessera devices", "Lists the hardware that was found."},
    {Command::kPlugins, "plugins", "", "tessera plugins [--why] [--rig FILE]",
     "Lists the plugins that were found, chosen and rejected."},
    {Command::kInspect, "inspect", "model", "tessera inspect [-m] MODEL [--check]",
     "Shows the contents of a model file, and patterns for -ot."},
    {Command::kTokenize, "tokenize", "prompt", "tessera tokenize [-m MODEL] [-p] TEXT", "Shows the tokens of a text."},
    {Command::kPluginTest, "plugin-test", "test-subjects", "tessera plugin-test FOLDER|MANIFEST|LIBRARY... [flags]",
     "Tests a plugin against the reference: its table, its kernels and layouts, and its devices, in processes of their "
     "own."},
};

constexpr size_t kSamplingFlags = static_cast<size_t>(std::ranges::count_if(
    session::kSamplingFields, [](const session::SamplingField& field) { return !field.flags.empty(); }));

// The flags of the numbers of sampling: read_model_settings() reads them.
consteval std::array<Flag, kSamplingFlags> sampling_flags() {
    std::array<Flag, kSamplingFlags> flags{};
    size_t count = 0;
    for (const session::SamplingField& field : session::kSamplingFields) {
        if (field.flags.empty()) continue;
        flags[count++] = supported(field.flag(), field.flags, Takes::kValue, field.is_integer() ? "N" : "X", kGenerate,
                                   Group::kSampling, field.help);
    }
    return flags;
}
constexpr std::array kSampling = sampling_flags();

// One flag an entry, on one line or two.
// clang-format off
constexpr Flag kFlags[] = {
    // General
    supported("help", "--help -h --usage", Takes::kNothing, "", kAll | kPluginTest, Group::kGeneral, "show the flags of this command"),
    supported("version", "--version", Takes::kNothing, "", kAll | kPluginTest, Group::kGeneral, "print the version"),
    supported("verbose", "-v --verbose --log-verbose", Takes::kNothing, "", kAll | kPluginTest, Group::kGeneral, "print more messages", sets<&CommonSettings::verbose>()),
    supported("config", "--config", Takes::kValue, "FILE", kAll, Group::kGeneral, "read this configuration instead of the user's or the system's", verbatim<&CommonSettings::config>()),
    supported("plugin-dir", "--plugin-dir", Takes::kValue, "DIR", kAll, Group::kGeneral, "search this folder for plugins, too", changed_by<CommonSettings, add_plugin_folder>()).repeated(),
    supported("model", "-m --model", Takes::kValue, "FILE", kEngine | kInspect | kTokenize, Group::kGeneral,
             "the GGUF file, or any part of a split one; without it the bundled model", parsed<&CommonSettings::model, parse_file_name>()),
    supported("log-file", "--log-file", Takes::kValue, "FILE", kEngine, Group::kGeneral, "write messages to this file, too").from("LLAMA_LOG_FILE"),
    supported("log-disable", "--log-disable", Takes::kNothing, "", kEngine, Group::kGeneral, "no messages but errors"),
    supported("log-verbosity", "-lv --verbosity --log-verbosity", Takes::kValue, "N", kEngine, Group::kGeneral, "4 and above: as -v").from("LLAMA_LOG_VERBOSITY"),
    supported("no-perf", "--no-perf --no-show-timings", Takes::kNothing, "", kModel, Group::kGeneral, "no timings at the end", clears<&ModelSettings::timings>()),
    supported("list-devices", "--list-devices", Takes::kNothing, "", kEngine, Group::kGeneral, "as 'tessera devices'"),
    supported("override-kv", "--override-kv -okv", Takes::kValue, "KEY=TYPE:VALUE", kEngine | kInspect | kTokenize, Group::kGeneral,
             "replace a value of the file's metadata (TYPE: int, float, bool, str); separated by commas", changed_by<CommonSettings, add_overrides>()).repeated(),
    supported("allow-unused-tensors", "--allow-unused-tensors --allow-unused-keys", Takes::kNothing, "", kEngine | kInspect, Group::kGeneral,
             "compute a model without those tensors and keys of its file that this version does not know", sets<&EngineOptions::allow_unused>()),
    supported("check-tensors", "--check-tensors -vq --validate-quants", Takes::kNothing, "", kEngine, Group::kGeneral,
             "read all weights before loading, and refuse NaN and infinity", sets<&ModelSettings::check_values>()),
    // Prompt
    supported("prompt", "-p --prompt", Takes::kValue, "TEXT", kModel | kTokenize, Group::kPrompt, "the prompt; in chat the first message", verbatim<&ModelSettings::prompt>()).of_any_text(),
    supported("file", "-f --file", Takes::kValue, "FILE", kModel | kTokenize | kPerplexity, Group::kPrompt,
             "the prompt or text from a file ('-': standard input); with --parallel one prompt a line", verbatim<&ModelSettings::file>()),
    supported("predict", "-n --predict --n-predict", Takes::kValue, "N", kGenerate, Group::kPrompt,
             "at most N new tokens; -1: until the model ends or the context is full", whole<&ModelSettings::predict, -2, kMaximumTokens>()),
    supported("parallel", "--parallel -np", Takes::kValue, "N", kGenerate, Group::kPrompt, "work on N prompts of the file at once (1); serve: on N answers (16)", changed_by<ModelSettings, set_parallel>()).from("LLAMA_ARG_N_PARALLEL"),
    supported("chat", "--chat -cnv --conversation", Takes::kNothing, "", kModel, Group::kPrompt,
             "run: put the prompt into the model's chat template (the bundled model's default)", sets<&ModelSettings::chat>()),
    supported("raw", "--raw -no-cnv --no-conversation", Takes::kNothing, "", kModel, Group::kPrompt,
             "run: the prompt as it is, after BOS (a named model's default)", sets<&ModelSettings::chat, false>()),
    supported("system", "-sys --system-prompt", Takes::kValue, "TEXT", kModel, Group::kPrompt, "the system message of a conversation", verbatim<&ModelSettings::system>()).of_any_text(),
    supported("system-file", "-sysf --system-prompt-file -spf", Takes::kValue, "FILE", kModel, Group::kPrompt, "the system message from a file"),
    supported("single-turn", "-st --single-turn", Takes::kNothing, "", kModel, Group::kPrompt, "chat: end after the first answer", sets<&ModelSettings::single_turn>()),
    supported("reasoning", "-rea --reasoning", Takes::kValue, "on|off|auto", kGenerate, Group::kPrompt,
             "thinking before the answer, if the template supports it; auto: the template's default"),
    supported("reasoning-budget", "--reasoning-budget", Takes::kValue, "N", kGenerate, Group::kPrompt,
             "end thinking after N tokens; 0: as --reasoning off; -1: never (-1)", whole<&ModelSettings::reasoning_budget, -1, kMaximumTokens>()).from("LLAMA_ARG_THINK_BUDGET"),
    supported("reasoning-effort", "--reasoning-effort", Takes::kValue, "WORD", kGenerate, Group::kPrompt,
             "the variable reasoning_effort of templates that have it (low, medium, high); none: as --reasoning off; default: the template's"),
    supported("chat-template-kwargs", "--chat-template-kwargs", Takes::kValue, "JSON", kGenerate, Group::kPrompt,
             "variables of the chat template as an object, such as {\"enable_thinking\": false}"),
    supported("chat-template", "--chat-template", Takes::kValue, "NAME", kGenerate, Group::kPrompt,
             "use this built-in chat template instead of the file's", verbatim<&ModelSettings::chat_template>()),
    supported("chat-template-file", "--chat-template-file", Takes::kValue, "FILE", kGenerate, Group::kPrompt,
             "use the chat template in this file, a Jinja program, instead of the model's").from("LLAMA_ARG_CHAT_TEMPLATE_FILE"),
    supported("stop", "--stop -r --reverse-prompt", Takes::kValue, "TEXT", kGenerate, Group::kPrompt,
             "end where this text appears, without it", changed_by<ModelSettings, add_stop>()).repeated().of_any_text(),
    supported("structured-library", "--structured-library", Takes::kValue, "FILE", kGenerate, Group::kPrompt,
             "llguidance's library, which enforces grammars and schemas (the one that tools/setup --structured installs)", verbatim<&ModelSettings::structured_library>()),
    supported("grammar", "--grammar", Takes::kValue, "GBNF", kModel, Group::kPrompt,
             "hold answers to this grammar, as llama.cpp writes them", verbatim<&ModelSettings::grammar>()).of_any_text(),
    supported("grammar-file", "--grammar-file", Takes::kValue, "FILE", kModel, Group::kPrompt, "the same from a file"),
    supported("json-schema", "-j --json-schema", Takes::kValue, "SCHEMA", kModel, Group::kPrompt,
             "hold answers to JSON that this JSON schema accepts; {} is any", verbatim<&ModelSettings::json_schema>()).of_any_text(),
    supported("json-schema-file", "-jf --json-schema-file", Takes::kValue, "FILE", kModel, Group::kPrompt, "the same from a file"),
    supported("escape", "-e --escape", Takes::kNothing, "", kGenerate | kTokenize, Group::kPrompt, "read \\n, \\t, \\\\, \\\" and \\' in the prompt", sets<&ModelSettings::escape>()),
    supported("no-escape", "--no-escape", Takes::kNothing, "", kGenerate | kTokenize, Group::kPrompt, "take the prompt as it is (the default)", clears<&ModelSettings::escape>()),
    supported("special", "-sp --special", Takes::kNothing, "", kModel, Group::kPrompt, "print control tokens, too", sets<&ModelSettings::special>()),
    supported("verbose-prompt", "--verbose-prompt", Takes::kNothing, "", kModel, Group::kPrompt, "show the prompt's tokens before working on it", sets<&ModelSettings::verbose_prompt>()),
    supported("ids", "--ids", Takes::kNothing, "", kTokenize, Group::kPrompt, "print the numbers alone, on one line"),
    supported("no-bos", "--no-bos", Takes::kNothing, "", kTokenize | kRun | kPlan, Group::kPrompt, "no BOS before the text", clears<&ModelSettings::add_bos>()),
    supported("no-parse-special", "--no-parse-special", Takes::kNothing, "", kTokenize | kModel, Group::kPrompt,
             "take control tokens that are written out as plain text (in chat always)", clears<&ModelSettings::parse_special>()),
    // Sampling
    supported("seed", "-s --seed", Takes::kValue, "N", kGenerate, Group::kSampling, "seed of the random numbers; -1 or 4294967295: a new one each time"),
    supported("samplers", "--samplers", Takes::kValue, "A;B;...", kGenerate, Group::kSampling,
             "the samplers in order (penalties, dry, top_n_sigma, top_k, typ_p, top_p, min_p, xtc, temperature, adaptive_p)"),
    supported("sampler-seq", "--sampler-seq --sampling-seq", Takes::kValue, "LETTERS", kGenerate, Group::kSampling,
             "as --samplers, a letter each (edskypmxta)"),
    supported("dry-sequence-breaker", "--dry-sequence-breaker", Takes::kValue, "TEXT", kGenerate, Group::kSampling,
             "DRY: no repetition extends over this text, in place of the defaults, with the escapes of -e (\\n, :, \", *); none: no such text").repeated(),
    supported("logit-bias", "-l --logit-bias", Takes::kValue, "TOKEN(+|-)X", kGenerate, Group::kSampling, "make a token more or less likely", changed_by<session::SamplingParameters, add_bias>()).repeated(),
    supported("ignore-eos", "--ignore-eos", Takes::kNothing, "", kGenerate, Group::kSampling, "continue past the model's end of text", sets<&ModelSettings::ignore_end>()),
    // Context and speed
    supported("ctx-size", "-c --ctx-size", Takes::kValue, "N", kEngine & ~kBench, Group::kContext,
             "tokens that the cache holds in total; 0: the model's maximum (4096, or what prompt and -n need)", whole<&ModelSettings::context, 0, kMaximumTokens>()),
    supported("ubatch-size", "-ub --ubatch-size", Takes::kValue, "N", kEngine, Group::kContext, "rows of one step", whole<&EngineOptions::rows, 1, 1 << 20>()).taking_several().from("LLAMA_ARG_UBATCH"),
    supported("batch-size", "-b --batch-size", Takes::kValue, "N", kEngine, Group::kContext, "lowers -ub if it is smaller").taking_several().from("LLAMA_ARG_BATCH"),
    supported("threads", "-t --threads", Takes::kValue, "N", kEngine, Group::kContext, "threads of generation (the physical cores)", parsed<&EngineOptions::threads, parse_threads>()).taking_several(),
    supported("threads-batch", "-tb --threads-batch", Takes::kValue, "N", kEngine, Group::kContext, "threads of prompts (as -t)", parsed<&EngineOptions::prompt_threads, parse_threads>()).taking_several(),
    supported("flash-attn", "-fa --flash-attn", Takes::kSwitch, "on|off|auto", kEngine, Group::kContext, "flash attention (on)", sets<&EngineOptions::flash_attention>()).taking_several(),
    supported("no-flash-attn", "-no-fa --no-flash-attn", Takes::kNothing, "", kEngine, Group::kContext, "as -fa off", clears<&EngineOptions::flash_attention>()),
    supported("mla-use", "-mla --mla-use --mla-attn", Takes::kValue, "0|1|2|3", kEngine, Group::kContext,
             "multi-head latent attention: 0 standard, 1 absorbed, 2 prompts expanded, 3 as 2 with flash attention", choice<&ModelSettings::latent_attention>()).taking_several(),
    supported("attention-max-batch", "-amb --attention-max-batch --attn-max-batch", Takes::kValue, "MiB", kEngine, Group::kContext,
             "limit of attention's scratch memory; 0: none (512)", parsed<&EngineOptions::scratch_bytes, parse_scratch>()).taking_several(),
    supported("smart-expert-reduction", "-ser --smart-expert-reduction", Takes::kValue, "K,T", kEngine, Group::kContext,
             "use the first K of the chosen experts, and others whose weight is at least T times the largest; -1,0: all", parsed<&EngineOptions::experts, parse_expert_reduction>()),
    supported("draft-types", "--spec-type", Takes::kValue, "none|ngram|mtp", kGenerate, Group::kContext,
             "drafts, which change how fast answers come and not what they are; ngram: what prompt and answer have is repeated; mtp: as --mtp (none, which takes back --mtp)", changed_by<DraftSettings, set_draft_types>()),
    supported("draft-max", "--draft-max --draft-n --draft --spec-draft-n-max", Takes::kValue, "N", kGenerate, Group::kContext,
             "tokens of a draft at most; measured times and accepted tokens decide how many; more than 15 are 15", whole<&DraftSettings::most, 0, 1 << 16>()),
    supported("draft-min", "--draft-min --draft-n-min --spec-draft-n-min", Takes::kValue, "N", kGenerate, Group::kContext,
             "shorter drafts are not used", whole<&DraftSettings::least, 0, 1 << 16>()),
    supported("draft-p-min", "--draft-p-min --spec-draft-p-min", Takes::kValue, "X", kGenerate, Group::kContext,
             "a token that the draft model finds less likely ends a draft (0)", number<&DraftSettings::least_probability, 0, 1>()),
    supported("draft-model", "-md --model-draft --spec-draft-model", Takes::kValue, "FILE", kGenerate, Group::kContext,
             "drafts of a smaller model of the same vocabulary, in this GGUF file; where ngram finds nothing, if both are asked for", verbatim<&DraftSettings::model>()),
    supported("mtp", "--mtp -mtp --multi-token-prediction", Takes::kNothing, "", kGenerate, Group::kContext,
             "drafts of the layer of the model's file that predicts further tokens (DeepSeek-V3, GLM-4.5 and later); flags of the draft model are its", sets<&DraftSettings::prediction>()),
    supported("no-mtp", "-no-mtp --no-multi-token-prediction", Takes::kNothing, "", kGenerate, Group::kContext, "without --mtp", clears<&DraftSettings::prediction>()),
    supported("draft-ctx-size", "-cd --ctx-size-draft", Takes::kValue, "N", kGenerate, Group::kContext, "-c of the draft model; where its cache is full, or a request longer than it, there are no drafts of it; 0: as many as the model's (0)", whole<&DraftSettings::context, 0, kMaximumTokens>()),
    supported("draft-threads", "-td --threads-draft --spec-draft-threads", Takes::kValue, "N", kGenerate, Group::kContext, "-t of the draft model (as -t)", parsed<&DraftSettings::threads, parse_threads>()),
    supported("draft-threads-batch", "-tbd --threads-batch-draft --spec-draft-threads-batch", Takes::kValue, "N", kGenerate, Group::kContext, "-tb of the draft model (as -tb)", parsed<&DraftSettings::prompt_threads, parse_threads>()),
    supported("draft-cache-type-k", "-ctkd --cache-type-k-draft --spec-draft-type-k", Takes::kValue, "TYPE", kGenerate, Group::kContext, "-ctk of the draft model (f16)", parsed<&DraftSettings::cache_type_k, parse_cache_type>()).from("LLAMA_ARG_SPEC_DRAFT_CACHE_TYPE_K=--spec-draft-type-k"),
    supported("draft-cache-type-v", "-ctvd --cache-type-v-draft --spec-draft-type-v", Takes::kValue, "TYPE", kGenerate, Group::kContext, "-ctv of the draft model (f16)", parsed<&DraftSettings::cache_type_v, parse_cache_type>()).from("LLAMA_ARG_SPEC_DRAFT_CACHE_TYPE_V=--spec-draft-type-v"),
    supported("cache-type-k", "-ctk --cache-type-k", Takes::kValue, "TYPE", kEngine, Group::kContext, "of cached keys, or of the latent: f32, f16, bf16, q8_0, q8_KV, q6_0, q5_0, q5_1, q4_0, q4_1, iq4_nl (f16)", parsed<&EngineOptions::cache_type_k, parse_cache_type>()).taking_several(),
    supported("cache-type-v", "-ctv --cache-type-v", Takes::kValue, "TYPE", kEngine, Group::kContext, "of cached values (f16)", parsed<&EngineOptions::cache_type_v, parse_cache_type>()).taking_several(),
    supported("k-cache-hadamard", "-khad --k-cache-hadamard", Takes::kNothing, "", kEngine, Group::kContext,
             "spread outliers of cached keys, or of the latent, by a Hadamard matrix: for types of few bits", sets<&EngineOptions::hadamard_keys>()),
    supported("v-cache-hadamard", "-vhad --v-cache-hadamard", Takes::kNothing, "", kEngine, Group::kContext, "the same for cached values", sets<&EngineOptions::hadamard_values>()),
    supported("no-mmap", "--no-mmap", Takes::kNothing, "", kEngine, Group::kContext, "read weights instead of using the mapped file", clears<&EngineOptions::map_weights>()),
    supported("mmap", "--mmap", Takes::kNothing, "", kEngine & ~kBench, Group::kContext,
             "use weights in the mapped file where they need no packing (the default)"),
    supported("no-repack", "-nr --no-repack", Takes::kNothing, "", kEngine & ~kRepack, Group::kContext,
             "use weights as the file has them: starts faster, runs slower"),
    supported("run-time-repack", "-rtr --run-time-repack", Takes::kSwitch, "on|off", kEngine & ~kRepack, Group::kContext,
             "pack all weights for their kernels before the first step; off: between the first steps (off for run and chat)").taking_several(),
    supported("mlock", "--mlock", Takes::kNothing, "", kEngine, Group::kContext, "keep memory from being swapped", sets<&EngineOptions::lock_memory>()),
    supported("load-mode", "-lm --load-mode", Takes::kValue, "auto|none|mmap|mlock|mmap+mlock|dio", kEngine, Group::kContext,
             "none: as --no-mmap; mlock, mmap+mlock: as --mlock; auto, mmap: the default"),
    supported("cpu-mask", "-C --cpu-mask", Takes::kValue, "HEX", kEngine, Group::kContext, "run only on these CPUs, one bit each"),
    supported("cpu-range", "-Cr --cpu-range", Takes::kValue, "FIRST-LAST", kEngine, Group::kContext, "run only on these CPUs"),
    supported("prio", "--prio", Takes::kValue, "N", kEngine, Group::kContext, "priority of the process: -1 low, 0 normal, 1 to 3 higher"),
    supported("numa", "--numa", Takes::kValue, "distribute|isolate|numactl", kEngine, Group::kContext,
             "on machines of several NUMA nodes: use all alike, one alone, or what numactl set up", parsed<&EngineOptions::numa, parse_numa>()).taking_several(),
    supported("check-order", "--check-order", Takes::kNothing, "", kEngine & ~kRepack, Group::kContext,
             "check in every step that no two accesses to the same memory are unordered, and fail if so (slow; for debugging)", sets<&EngineOptions::check_order>()),
    supported("rope-scaling", "--rope-scaling", Takes::kValue, "none|linear|yarn", kEngine, Group::kContext,
             "how positions are scaled, in place of what the file says, as all of the next; linear where neither says", choice<&RopeSettings::scaling>()).from("LLAMA_ARG_ROPE_SCALING_TYPE"),
    supported("rope-scale", "--rope-scale", Takes::kValue, "X", kEngine, Group::kContext, "divide positions by X", parsed<&RopeSettings::factor, parse_rope_number>()),
    supported("rope-freq-scale", "--rope-freq-scale", Takes::kValue, "X", kEngine, Group::kContext, "multiply positions by X; 0: as the file says"),
    supported("rope-freq-base", "--rope-freq-base", Takes::kValue, "X", kEngine, Group::kContext, "base of the frequencies; 0: as the file says", parsed<&RopeSettings::base, parse_rope_number>()),
    supported("yarn-orig-ctx", "--yarn-orig-ctx", Takes::kValue, "N", kEngine, Group::kContext, "YaRN: the context that the model was trained with; 0: as the file says", parsed<&RopeSettings::original_context, parse_rope_context>()),
    supported("yarn-ext-factor", "--yarn-ext-factor", Takes::kValue, "X", kEngine, Group::kContext,
             "YaRN: how much high frequencies are kept from scaling, 0 to 1; -1: as the file says", parsed<&RopeSettings::ext_factor, parse_rope_share>()),
    supported("yarn-attn-factor", "--yarn-attn-factor", Takes::kValue, "X", kEngine, Group::kContext, "YaRN: multiplies the scale of attention; -1: as the file says", parsed<&RopeSettings::attn_factor, parse_rope_positive>()),
    supported("yarn-beta-fast", "--yarn-beta-fast", Takes::kValue, "X", kEngine, Group::kContext, "YaRN: rotations from which frequencies are kept; -1: as the file says", parsed<&RopeSettings::beta_fast, parse_rope_positive>()),
    supported("yarn-beta-slow", "--yarn-beta-slow", Takes::kValue, "X", kEngine, Group::kContext, "YaRN: rotations up to which frequencies are scaled; -1: as the file says", parsed<&RopeSettings::beta_slow, parse_rope_positive>()),
    // Placement
    supported("n-gpu-layers", "-ngl --n-gpu-layers --gpu-layers", Takes::kValue, "N", kEngine, Group::kPlacement, "this many of the last layers go to GPUs (as many as fit)", parsed<&PlacementOptions::gpu_layers, parse_gpu_layers>()).taking_several(),
    supported("tensor-split", "-ts --tensor-split", Takes::kValue, "A,B,...", kEngine, Group::kPlacement, "shares of the layers of each GPU (by free memory)", parsed<&PlacementOptions::tensor_split, parse_shares>()),
    supported("split-mode", "-sm --split-mode", Takes::kValue, "layer|none", kEngine, Group::kPlacement, "how several GPUs share: whole layers (layer), or one GPU is used alone (none; see -mg)").taking_several(),
    supported("main-gpu", "-mg --main-gpu", Takes::kValue, "N", kEngine, Group::kPlacement, "the GPU that -sm none uses (0)").taking_several(),
    supported("device", "-dev --device", Takes::kValue, "ID,...", kEngine, Group::kPlacement, "use these GPUs alone, named as 'tessera devices' does; none: no GPU", parsed<&DeviceChoice::gpus, parse_gpus>()),
    supported("no-kv-offload", "-nkvo --no-kv-offload", Takes::kNothing, "", kEngine & ~kBench, Group::kPlacement,
             "all caches are in host memory, and the CPU computes attention", sets<&PlacementOptions::caches_on_cpu>()),
    supported("bench-no-kv-offload", "-nkvo --no-kv-offload", Takes::kSwitch, "0|1", kBench, Group::kPlacement,
             "1: all caches are in host memory, and the CPU computes attention (0)", sets<&PlacementOptions::caches_on_cpu>()),
    supported("fit-target", "-fitt --fit-target --fit-margin", Takes::kValue, "MIB,...", kEngine, Group::kPlacement,
             "leave this much memory of each GPU free", parsed<&DeviceChoice::margins, parse_margins>()),
    supported("draft-gpu-layers", "-ngld --gpu-layers-draft --n-gpu-layers-draft --spec-draft-ngl", Takes::kValue, "N", kGenerate, Group::kPlacement, "-ngl of the draft model (as many as fit)", parsed<&DraftSettings::gpu_layers, parse_gpu_layers>()),
    supported("draft-device", "-devd --device-draft --spec-draft-device", Takes::kValue, "ID,...", kGenerate, Group::kPlacement, "-dev of the draft model (as -dev)", parsed<&DraftSettings::gpus, parse_gpus>()),
    supported("draft-override-tensor", "-otd --override-tensor-draft --spec-draft-override-tensor", Takes::kValue, "REGEX=DEVICE", kGenerate, Group::kPlacement, "-ot of the draft model", changed_by<DraftSettings, add_draft_rules>()).repeated(),
    supported("draft-n-cpu-moe", "-ncmoed --n-cpu-moe-draft --spec-draft-n-cpu-moe --spec-draft-ncmoe", Takes::kValue, "N", kGenerate, Group::kPlacement, "-ncmoe of the draft model", whole<&DraftSettings::cpu_expert_layers, 0, 1 << 16>()),
    supported("draft-cpu-moe", "-cmoed --cpu-moe-draft --spec-draft-cpu-moe", Takes::kNothing, "", kGenerate, Group::kPlacement, "-cmoe of the draft model", changed_by<DraftSettings, keep_draft_experts>()),
    supported("override-tensor", "-ot --override-tensor", Takes::kValue, "REGEX=DEVICE", kEngine, Group::kPlacement,
             "weights whose names match go to the device; separated by commas, the first match counts", changed_by<PlacementOptions, add_tensor_rules>()).repeated(),
    supported("n-cpu-moe", "-ncmoe --n-cpu-moe", Takes::kValue, "N", kEngine, Group::kPlacement, "routed experts of the first N layers stay on the CPU", whole<&PlacementOptions::cpu_expert_layers, 0, 1 << 16>()).taking_several(),
    supported("cpu-moe", "-cmoe --cpu-moe", Takes::kNothing, "", kEngine, Group::kPlacement, "all routed experts stay on the CPU", changed_by<PlacementOptions, keep_experts>()),
    supported("no-op-offload", "--no-op-offload -nopo", Takes::kNothing, "", kEngine, Group::kPlacement,
             "never copy experts of the CPU to a GPU for prompts"),
    supported("op-offload-from", "--op-offload-from", Takes::kValue, "N", kEngine, Group::kPlacement,
             "copy them for steps of N rows or more, whatever the estimates say", whole<&EngineOptions::stream_rows_from, 1, 1 << 20>()),
    supported("offload-policy", "-op --offload-policy", Takes::kValue, "OP,0|1,...", kEngine, Group::kPlacement,
             "27,0 or 29,0 (operations of experts): as --no-op-offload"),
    // Reports
    supported("rig", "--rig", Takes::kValue, "FILE", kPlan | kPlugins, Group::kReport, "for the machine that this file describes"),
    supported("json", "--json", Takes::kNothing, "", kPlan, Group::kReport, "print the plan as JSON, every node with its kernel"),
    supported("why", "--why", Takes::kNothing, "", kPlugins | kPlan, Group::kReport, "with the reason of each choice and rejection"),
    supported("check", "--check", Takes::kNothing, "", kInspect, Group::kReport, "read all weights, list NaN and infinity by tensor and row; fails if a run would refuse the file"),
    supported("all", "--all --tensors", Takes::kNothing, "", kInspect, Group::kReport, "list every tensor, and print long values in full"),
    supported("repack-output", "-o --output", Takes::kValue, "FILE", kRepack, Group::kReport, "the file to write"),
    supported("plan-embeddings", "--embedding --embeddings", Takes::kNothing, "", kPlan, Group::kReport, "with the memory that a server's --embeddings takes", sets<&EngineOptions::hidden_states>()),
    // Measuring
    supported("bench-prompt", "-p --n-prompt", Takes::kValue, "N,...", kBench, Group::kMeasuring, "tokens of a prompt (512); 0: no test of prompts"),
    supported("bench-generate", "-n --n-gen", Takes::kValue, "N,...", kBench, Group::kMeasuring, "tokens to generate (128); 0: no test of generation"),
    supported("bench-pg", "-pg", Takes::kValue, "P,G", kBench, Group::kMeasuring, "a prompt of P tokens and G generated after it, as one test").repeated(),
    supported("bench-gp", "-gp", Takes::kValue, "P,G", kBench, Group::kMeasuring, "G tokens generated after a prompt of P, which does not count").repeated(),
    supported("bench-depth", "-d --n-depth", Takes::kValue, "N,...", kBench, Group::kMeasuring, "cached tokens before each test (0)"),
    supported("bench-repetitions", "-r --repetitions", Takes::kValue, "N", kBench, Group::kMeasuring, "of each test (5)"),
    supported("bench-warmup", "-w --warmup", Takes::kSwitch, "0|1", kBench, Group::kMeasuring, "one token before each test that does not count (1)").taking_several(),
    supported("bench-output", "-o --output", Takes::kValue, "md|csv|json|jsonl", kBench, Group::kMeasuring, "form of the results on standard output (md)").taking_several(),
    supported("bench-output-err", "-oe --output-err", Takes::kValue, "md|csv|json|jsonl", kBench, Group::kMeasuring, "the results on standard error as well"),
    supported("bench-mmap", "-mmp --mmap", Takes::kSwitch, "0|1", kBench, Group::kMeasuring, "use weights in the mapped file where they need no packing (1)", changed_by<EngineOptions, map_weights_if>()).taking_several(),
    supported("sweep-generate", "-n --n-predict --n-gen", Takes::kValue, "N", kSweep, Group::kMeasuring, "tokens to generate at each depth (a quarter of -ub)"),
    supported("sweep-repetitions", "-nrep --n-repetitions", Takes::kValue, "N", kSweep, Group::kMeasuring, "at each depth, of which the mean is taken (1)"),
    supported("sweep-stride", "--sweep-stride", Takes::kValue, "N", kSweep, Group::kMeasuring, "measure at every Nth depth (1)"),
    supported("sweep-format", "--output-format", Takes::kValue, "table|jsonl", kSweep, Group::kMeasuring, "of the results on standard output (table)"),
    supported("sweep-save", "-o --output --save", Takes::kValue, "FILE", kSweep, Group::kMeasuring, "the results as JSON lines, from which --plot draws"),
    supported("sweep-plot", "--plot", Takes::kValue, "FILE.svg", kSweep, Group::kMeasuring, "draw what was measured and the RESULTS that are named"),
    supported("sweep-results", "--results", Takes::kValue, "FILE", kSweep, Group::kMeasuring, "results to draw: JSON lines or tables, of this program or others").repeated(),
    supported("chunks", "--chunks", Takes::kValue, "N", kPerplexity, Group::kMeasuring, "score only the first N chunks"),
    supported("kl-divergence-base", "--kl-divergence-base --save-all-logits", Takes::kValue, "FILE", kPerplexity, Group::kMeasuring,
             "save the log probabilities of this run, or with --kl-divergence those to compare with"),
    supported("kl-divergence", "--kl-divergence", Takes::kNothing, "", kPerplexity, Group::kMeasuring, "compare with the saved run, chunk by chunk"),
    // Tests of plugins
    supported("test-subjects", "--plugin", Takes::kValue, "FILE", kPluginTest, Group::kTests, "a folder with plugins, a manifest or a library, as arguments without a flag").repeated(),
    supported("test-kernel", "--kernel", Takes::kValue, "TEXT", kPluginTest, Group::kTests, "only kernels whose name contains TEXT").repeated(),
    supported("test-without", "--without", Takes::kValue, "TEXT", kPluginTest, Group::kTests, "no kernels whose name contains TEXT").repeated(),
    supported("test-case", "--case", Takes::kValue, "TEXT", kPluginTest, Group::kTests, "only cases whose name contains TEXT").repeated(),
    supported("test-shape", "--shape", Takes::kValue, "SHAPE", kPluginTest, Group::kTests,
              "cases of this shape, such as matmul:q4_0:2048x512, instead of those that are always the same; of products, networks, get_rows, norms and "
              "sums, not of attention, caches, rope and routing").repeated(),
    supported("test-model", "--model", Takes::kValue, "FILE", kPluginTest, Group::kTests, "cases of the shapes of this model (GGUF), and of the plugin's architecture, if it is of that").repeated(),
    supported("test-device", "--device", Takes::kValue, "ID", kPluginTest, Group::kTests, "only this device of the plugin's providers").repeated(),
    supported("test-group", "--group", Takes::kValue, "NAME", kPluginTest, Group::kTests, "only the group of exactly this name").repeated(),
    supported("test-time", "--time", Takes::kNothing, "", kPluginTest, Group::kTests, "also time each kernel for the CPU next to the built-in one, with one thread"),
    supported("test-list", "--list", Takes::kNothing, "", kPluginTest, Group::kTests, "print the names of groups, run nothing"),
    supported("test-provider", "--provider", Takes::kValue, "FILE", kPluginTest, Group::kTests,
              "test kernels on the devices of this plugin (a manifest): for plugins that own no device"),
    supported("test-rig", "--rig", Takes::kValue, "FILE", kPluginTest, Group::kTests, "test for the devices of this file"),
    supported("test-reference", "--reference", Takes::kValue, "FILE", kPluginTest, Group::kTests,
              "manifest of the plugin to compare with (the installed reference)"),
    supported("test-expected", "--expected", Takes::kValue, "FILE", kPluginTest, Group::kTests,
              "known failures, a line each: PLUGIN GROUP/CASE, with * for any text"),
    supported("test-junit", "--junit", Takes::kValue, "FILE", kPluginTest, Group::kTests, "write the results as JUnit XML"),
    supported("test-timeout", "--timeout", Takes::kValue, "SECONDS", kPluginTest, Group::kTests, "end a test that takes longer (60)"),
};
// clang-format on

}  // namespace

std::span<const CommandInfo> all_commands() noexcept {
    return kCommands;
}
std::span<const Flag> own_flags() noexcept {
    return kFlags;
}
std::span<const Flag> sampling_flags_of_fields() noexcept {
    return kSampling;
}

}  // namespace tessera::app
