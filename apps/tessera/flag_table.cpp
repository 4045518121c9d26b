// The words of the program: its commands and their flags.
#include "apps/tessera/flags.hpp"

namespace tessera::app {
namespace {

constexpr uint32_t kRun = static_cast<uint32_t>(Command::kRun);
constexpr uint32_t kChat = static_cast<uint32_t>(Command::kChat);
constexpr uint32_t kPlan = static_cast<uint32_t>(Command::kPlan);
constexpr uint32_t kInspect = static_cast<uint32_t>(Command::kInspect);
constexpr uint32_t kTokenize = static_cast<uint32_t>(Command::kTokenize);
constexpr uint32_t kPlugins = static_cast<uint32_t>(Command::kPlugins);
constexpr uint32_t kDevices = static_cast<uint32_t>(Command::kDevices);
constexpr uint32_t kBench = static_cast<uint32_t>(Command::kBench);
constexpr uint32_t kSweep = static_cast<uint32_t>(Command::kSweep);
constexpr uint32_t kPerplexity = static_cast<uint32_t>(Command::kPerplexity);
constexpr uint32_t kRepack = static_cast<uint32_t>(Command::kRepack);
constexpr uint32_t kAll = 2047;
// A plan takes what a run takes, so that one word turns a line that runs into a line that plans.
constexpr uint32_t kModel = kRun | kChat | kPlan;
// What loads a model, or plans to.
constexpr uint32_t kEngine = kModel | kBench | kSweep | kPerplexity | kRepack;

constexpr CommandInfo kCommands[] = {
    {Command::kRun, "run", "", "tessera run [-m MODEL] -p PROMPT [flags]",
     "Completes a prompt and prints the completion."},
    {Command::kChat, "chat", "", "tessera chat [-m MODEL] [flags]", "Talks: reads lines, answers each, remembers."},
    {Command::kPlan, "plan", "model", "tessera plan [-m] MODEL [--rig FILE] [--json] [flags]",
     "Says what a model would take on this machine or another, without loading it."},
    {Command::kBench, "bench", "",
     "tessera bench -m MODEL [-p N,...] [-n N,...] [-pg P,G] [-d DEPTH,...] [-r N] [-o md|csv|json|jsonl] [flags]",
     "Measures speed: prompts, generation, and both after each other; flags may take several values."},
    {Command::kSweep, "sweep", "sweep-results",
     "tessera sweep -m MODEL [-c N] [--save FILE] [--plot FILE.svg] [flags], or tessera sweep RESULTS... --plot "
     "FILE.svg",
     "Measures speed against depth, and draws results."},
    {Command::kPerplexity, "perplexity", "",
     "tessera perplexity -m MODEL -f TEXT [-c N] [--chunks N] [--kl-divergence-base FILE [--kl-divergence]] [flags]",
     "Measures how well a model foretells a text, or how far it is from a saved run."},
    {Command::kRepack, "repack", "", "tessera repack -m MODEL -o FILE [flags]",
     "Writes a copy of a model that loads without being packed: it is used where it lies in the mapped file."},
    {Command::kDevices, "devices", "", "tessera devices", "Lists the hardware that was found."},
    {Command::kPlugins, "plugins", "", "tessera plugins [--why]",
     "Lists the plugins that were found, chosen and rejected."},
    {Command::kInspect, "inspect", "model", "tessera inspect [-m] MODEL",
     "Shows what is in a model file, and what to write after -ot."},
    {Command::kTokenize, "tokenize", "prompt", "tessera tokenize [-m MODEL] [-p] TEXT", "Shows the tokens of a text."},
};

constexpr Flag honoured(std::string_view name, std::string_view spellings, Takes takes, std::string_view value,
                        uint32_t commands, Group group, std::string_view help) {
    return {name, spellings, takes, value, commands, group, help, Standing::kHonoured};
}

// `line`: what is done instead.
constexpr Flag said(std::string_view name, std::string_view spellings, Takes takes, std::string_view line,
                    uint32_t commands = kEngine) {
    return {name, spellings, takes, "", commands, Group::kOthers, line, Standing::kSaid};
}

constexpr std::string_view kNoServer = "this version has no server";
constexpr std::string_view kFromFile =
    "rope scaling comes from the model file; --override-kv changes what the file says";
constexpr std::string_view kNoSampler = "this version has no such sampler";
constexpr std::string_view kNoGrammar = "this version has no grammars: the output is free text";
constexpr std::string_view kNoAdapters = "this version does not load adapters";
constexpr std::string_view kNoDraft = "this version has no speculative decoding";
constexpr std::string_view kBenchmark = "a flag of 'tessera bench', without meaning here";
constexpr std::string_view kTuning = "a switch of another runtime's insides; Tessera chooses by its own plan";

// One flag an entry, on one line or two.
// clang-format off
constexpr Flag kFlags[] = {
    // General
    honoured("help", "--help -h --usage", Takes::kNothing, "", kAll, Group::kGeneral, "show the flags of this command"),
    honoured("version", "--version", Takes::kNothing, "", kAll, Group::kGeneral, "print the version"),
    honoured("verbose", "-v --verbose --log-verbose", Takes::kNothing, "", kAll, Group::kGeneral, "say more while working"),
    honoured("config", "--config", Takes::kValue, "FILE", kAll, Group::kGeneral, "read this configuration instead of the user's or the system's"),
    honoured("plugin-dir", "--plugin-dir", Takes::kValue, "DIR", kAll, Group::kGeneral, "look for plugins here, too; may be repeated"),
    honoured("model", "-m --model", Takes::kValue, "FILE", kEngine | kInspect | kTokenize, Group::kGeneral,
             "the GGUF file, or any part of a split one; without it the bundled model"),
    honoured("override-kv", "--override-kv -okv", Takes::kValue, "KEY=TYPE:VALUE", kEngine | kInspect | kTokenize, Group::kGeneral,
             "replace a value of the file's metadata (TYPE: int, float, bool, str); may be repeated"),
    // Prompt
    honoured("prompt", "-p --prompt", Takes::kValue, "TEXT", kModel | kTokenize, Group::kPrompt, "the prompt; in chat the first message"),
    honoured("file", "-f --file", Takes::kValue, "FILE", kModel | kTokenize | kPerplexity, Group::kPrompt,
             "the prompt or text from a file ('-': standard input); with --parallel one prompt a line"),
    honoured("predict", "-n --predict --n-predict", Takes::kValue, "N", kModel, Group::kPrompt,
             "at most N new tokens; -1: until the model ends or the context is full"),
    honoured("parallel", "--parallel -np", Takes::kValue, "N", kModel, Group::kPrompt, "work on N prompts of the file at once"),
    honoured("chat", "--chat -cnv --conversation", Takes::kNothing, "", kModel, Group::kPrompt,
             "run: put the prompt into the model's chat template (the bundled model's default)"),
    honoured("raw", "--raw -no-cnv --no-conversation", Takes::kNothing, "", kModel, Group::kPrompt,
             "run: the prompt as it is, after BOS (a named model's default)"),
    honoured("system", "-sys --system-prompt", Takes::kValue, "TEXT", kModel, Group::kPrompt, "the system message of a conversation"),
    honoured("chat-template", "--chat-template", Takes::kValue, "NAME", kModel, Group::kPrompt,
             "use this chat template instead of the one that the file brings"),
    honoured("stop", "--stop -r --reverse-prompt", Takes::kValue, "TEXT", kModel, Group::kPrompt,
             "end where this text appears, without it; may be repeated"),
    honoured("escape", "-e --escape", Takes::kNothing, "", kModel | kTokenize, Group::kPrompt, "read \\n, \\t, \\\\, \\\" and \\' in the prompt"),
    honoured("no-escape", "--no-escape", Takes::kNothing, "", kModel | kTokenize, Group::kPrompt, "take the prompt as it is (the default)"),
    honoured("special", "-sp --special", Takes::kNothing, "", kModel, Group::kPrompt, "print control tokens, too"),
    honoured("verbose-prompt", "--verbose-prompt", Takes::kNothing, "", kModel, Group::kPrompt, "show the prompt's tokens before working on it"),
    honoured("ids", "--ids", Takes::kNothing, "", kTokenize, Group::kPrompt, "print the numbers alone, on one line"),
    honoured("no-bos", "--no-bos", Takes::kNothing, "", kTokenize, Group::kPrompt, "no BOS before the text"),
    honoured("no-parse-special", "--no-parse-special", Takes::kNothing, "", kTokenize, Group::kPrompt,
             "take control tokens that are written out as plain text"),
    // Sampling
    honoured("seed", "-s --seed", Takes::kValue, "N", kModel, Group::kSampling, "seed of the random numbers; -1: a new one each time"),
    honoured("temp", "--temp --temperature", Takes::kValue, "X", kModel, Group::kSampling,
             "temperature; 0 takes the best token (0.8; the bundled model: 0)"),
    honoured("top-k", "--top-k", Takes::kValue, "N", kModel, Group::kSampling, "of the N best tokens; 0: of all (40)"),
    honoured("top-p", "--top-p", Takes::kValue, "X", kModel, Group::kSampling, "of the fewest whose probabilities sum to X; 1: off (0.95)"),
    honoured("min-p", "--min-p", Takes::kValue, "X", kModel, Group::kSampling, "of those with at least X of the best one's probability (0.05)"),
    honoured("typical", "--typical --typical-p", Takes::kValue, "X", kModel, Group::kSampling, "locally typical; 1: off (1)"),
    honoured("repeat-last-n", "--repeat-last-n", Takes::kValue, "N", kModel, Group::kSampling, "tokens that penalties look back on; -1: all (64)"),
    honoured("repeat-penalty", "--repeat-penalty", Takes::kValue, "X", kModel, Group::kSampling, "1: off (1)"),
    honoured("presence-penalty", "--presence-penalty", Takes::kValue, "X", kModel, Group::kSampling, "0: off (0)"),
    honoured("frequency-penalty", "--frequency-penalty", Takes::kValue, "X", kModel, Group::kSampling, "0: off (0)"),
    honoured("samplers", "--samplers", Takes::kValue, "A;B;...", kModel, Group::kSampling,
             "their order, out of penalties, top_k, typ_p, top_p, min_p, temperature"),
    honoured("logit-bias", "-l --logit-bias", Takes::kValue, "TOKEN(+|-)X", kModel, Group::kSampling, "make a token more or less likely; may be repeated"),
    honoured("ignore-eos", "--ignore-eos", Takes::kNothing, "", kModel, Group::kSampling, "go on past the model's end of text"),
    // Context and speed
    honoured("ctx-size", "-c --ctx-size", Takes::kValue, "N", kEngine & ~kBench, Group::kContext,
             "tokens that the cache holds in all; 0: what the model was made for (4096, or what prompt and -n need)"),
    honoured("batch-size", "-b --batch-size", Takes::kValue, "N", kEngine, Group::kContext, "lowers -ub if it is smaller"),
    honoured("ubatch-size", "-ub --ubatch-size", Takes::kValue, "N", kEngine, Group::kContext, "rows of one step (512)"),
    honoured("threads", "-t --threads", Takes::kValue, "N", kEngine, Group::kContext, "threads of generation (the physical cores)"),
    honoured("threads-batch", "-tb --threads-batch", Takes::kValue, "N", kEngine, Group::kContext, "threads of prompts (as -t)"),
    honoured("flash-attn", "-fa --flash-attn", Takes::kSwitch, "on|off|auto", kEngine, Group::kContext, "flash attention (on)"),
    honoured("no-flash-attn", "-no-fa --no-flash-attn", Takes::kNothing, "", kEngine, Group::kContext, "as -fa off"),
    honoured("mla-use", "-mla --mla-use", Takes::kValue, "0|1|2|3", kEngine, Group::kContext,
             "multi-head latent attention: 0 standard, 1 absorbed, 2 prompts expanded, 3 as 2 with flash attention"),
    honoured("attention-max-batch", "-amb --attention-max-batch", Takes::kValue, "MiB", kEngine, Group::kContext,
             "what attention may use as scratch; 0: any amount (512)"),
    honoured("smart-expert-reduction", "-ser --smart-expert-reduction", Takes::kValue, "K,T", kEngine, Group::kContext,
             "of the experts that the model chooses only the first K, and those whose weight is at least T of the largest; -1,0: all"),
    honoured("cache-type-k", "-ctk --cache-type-k", Takes::kValue, "TYPE", kEngine, Group::kContext, "of cached keys, or of the latent: f32, f16, bf16, q8_0, q6_0, q5_0, q5_1, q4_0, q4_1, iq4_nl (f16)"),
    honoured("cache-type-v", "-ctv --cache-type-v", Takes::kValue, "TYPE", kEngine, Group::kContext, "of cached values (f16)"),
    honoured("k-cache-hadamard", "-khad --k-cache-hadamard", Takes::kNothing, "", kEngine, Group::kContext,
             "spread outliers of cached keys, or of the latent, by a Hadamard matrix: for types of few bits"),
    honoured("v-cache-hadamard", "-vhad --v-cache-hadamard", Takes::kNothing, "", kEngine, Group::kContext, "the same for cached values"),
    honoured("no-mmap", "--no-mmap", Takes::kNothing, "", kEngine, Group::kContext, "read weights instead of using the mapped file"),
    honoured("mmap", "--mmap", Takes::kNothing, "", kEngine & ~kBench, Group::kContext,
             "use weights in the mapped file where no kernel wants them packed (the default)"),
    honoured("no-repack", "-nr --no-repack", Takes::kNothing, "", kEngine & ~kRepack, Group::kContext,
             "use weights as the file has them: a start without packing, and slower work"),
    honoured("run-time-repack", "-rtr --run-time-repack", Takes::kSwitch, "on|off", kEngine & ~kRepack, Group::kContext,
             "pack all weights for their kernels before the first step; off: between the first steps (off for run and chat)"),
    honoured("mlock", "--mlock", Takes::kNothing, "", kEngine, Group::kContext, "keep memory from being swapped"),
    honoured("numa", "--numa", Takes::kValue, "distribute|isolate|numactl", kEngine, Group::kContext,
             "on machines of several NUMA nodes: use all alike, one alone, or what numactl set up"),
    // Placement
    honoured("n-gpu-layers", "-ngl --n-gpu-layers --gpu-layers", Takes::kValue, "N", kEngine, Group::kPlacement, "this many of the last layers go to GPUs (as many as fit)"),
    honoured("tensor-split", "-ts --tensor-split", Takes::kValue, "A,B,...", kEngine, Group::kPlacement, "shares of the layers of each GPU (by free memory)"),
    honoured("split-mode", "-sm --split-mode", Takes::kValue, "layer", kEngine, Group::kPlacement, "how several GPUs share: whole layers"),
    honoured("override-tensor", "-ot --override-tensor", Takes::kValue, "REGEX=DEVICE", kEngine, Group::kPlacement,
             "weights whose names match go to the device; separated by commas, may be repeated, the first match counts"),
    honoured("cpu-moe", "-cmoe --cpu-moe", Takes::kNothing, "", kEngine, Group::kPlacement, "all routed experts stay on the CPU"),
    honoured("n-cpu-moe", "-ncmoe --n-cpu-moe", Takes::kValue, "N", kEngine, Group::kPlacement, "routed experts of the first N layers stay on the CPU"),
    // Reports
    honoured("rig", "--rig", Takes::kValue, "FILE", kPlan, Group::kReport, "plan for the machine that this file describes"),
    honoured("json", "--json", Takes::kNothing, "", kPlan, Group::kReport, "print the plan as JSON, every node with its kernel"),
    honoured("why", "--why", Takes::kNothing, "", kPlugins | kPlan | kDevices, Group::kReport, "with the reason of each choice and rejection"),
    honoured("all", "--all --tensors", Takes::kNothing, "", kInspect, Group::kReport, "every tensor by itself, and long values whole"),
    honoured("repack-output", "-o --output", Takes::kValue, "FILE", kRepack, Group::kReport, "the file to write"),
    // Measuring
    honoured("bench-prompt", "-p --n-prompt", Takes::kValue, "N,...", kBench, Group::kMeasuring, "tokens of a prompt (512); 0: no test of prompts"),
    honoured("bench-generate", "-n --n-gen", Takes::kValue, "N,...", kBench, Group::kMeasuring, "tokens to generate (128); 0: no test of generation"),
    honoured("bench-pg", "-pg", Takes::kValue, "P,G", kBench, Group::kMeasuring, "a prompt of P tokens and G generated after it, as one test; may be repeated"),
    honoured("bench-gp", "-gp", Takes::kValue, "P,G", kBench, Group::kMeasuring, "G tokens generated after a prompt of P, which does not count; may be repeated"),
    honoured("bench-depth", "-d --n-depth", Takes::kValue, "N,...", kBench, Group::kMeasuring, "cached tokens before each test (0)"),
    honoured("bench-repetitions", "-r --repetitions", Takes::kValue, "N", kBench, Group::kMeasuring, "of each test (5)"),
    honoured("bench-warmup", "-w --warmup", Takes::kSwitch, "0|1", kBench, Group::kMeasuring, "one token before each test that does not count (1)"),
    honoured("bench-output", "-o --output", Takes::kValue, "md|csv|json|jsonl", kBench, Group::kMeasuring, "form of the results on standard output (md)"),
    honoured("bench-output-err", "-oe --output-err", Takes::kValue, "md|csv|json|jsonl", kBench, Group::kMeasuring, "the results on standard error as well"),
    honoured("bench-mmap", "-mmp --mmap", Takes::kSwitch, "0|1", kBench, Group::kMeasuring, "use weights in the mapped file where no kernel wants them packed (1)"),
    honoured("sweep-generate", "-n --n-predict --n-gen", Takes::kValue, "N", kSweep, Group::kMeasuring, "tokens to generate at each depth (a quarter of -ub)"),
    honoured("sweep-repetitions", "-nrep --n-repetitions", Takes::kValue, "N", kSweep, Group::kMeasuring, "at each depth, of which the mean is taken (1)"),
    honoured("sweep-stride", "--sweep-stride", Takes::kValue, "N", kSweep, Group::kMeasuring, "measure at every Nth depth (1)"),
    honoured("sweep-format", "--output-format", Takes::kValue, "table|jsonl", kSweep, Group::kMeasuring, "of the results on standard output (table)"),
    honoured("sweep-save", "-o --output --save", Takes::kValue, "FILE", kSweep, Group::kMeasuring, "the results as JSON lines, from which --plot draws"),
    honoured("sweep-plot", "--plot", Takes::kValue, "FILE.svg", kSweep, Group::kMeasuring, "draw what was measured and the RESULTS that are named"),
    honoured("sweep-results", "--results", Takes::kValue, "FILE", kSweep, Group::kMeasuring, "results to draw: JSON lines or tables, of this program or others; may be repeated"),
    honoured("chunks", "--chunks", Takes::kValue, "N", kPerplexity, Group::kMeasuring, "score the first N chunks alone"),
    honoured("kl-divergence-base", "--kl-divergence-base", Takes::kValue, "FILE", kPerplexity, Group::kMeasuring,
             "save the log probabilities of this run, or with --kl-divergence those to compare with"),
    honoured("kl-divergence", "--kl-divergence", Takes::kNothing, "", kPerplexity, Group::kMeasuring, "compare with the saved run, chunk by chunk"),
    // Taken, and said in one line
    said("fused-moe", "-fmoe --fused-moe", Takes::kSwitch, "experts are always fused where a kernel offers that"),
    said("no-fused-moe", "-no-fmoe --no-fused-moe", Takes::kNothing, "experts are fused wherever a kernel offers that and it is faster"),
    said("no-warmup", "--no-warmup", Takes::kNothing, "loading always runs every segment once, so that nothing is allocated later"),
    said("warmup", "--warmup", Takes::kNothing, "loading always runs every segment once", kEngine & ~kBench),
    said("warmup-batch", "-wb --warmup-batch", Takes::kNothing, "loading always runs every segment once, at full size"),
    said("main-gpu", "-mg --main-gpu", Takes::kValue, "GPUs are chosen by -ngl, -ts and -ot"),
    said("device", "-dev --device", Takes::kValue, "devices are chosen by -ngl, -ts, -ot and the configuration"),
    said("no-kv-offload", "-nkvo --no-kv-offload", Takes::kNothing, "the cache of a layer lies where its attention is computed"),
    said("transparent-huge-pages", "-thp --transparent-huge-pages", Takes::kNothing, "large pages are asked for wherever the system grants them"),
    said("keep", "--keep", Takes::kValue, "a full context ends the answer; it is never shifted"),
    said("context-shift", "--context-shift", Takes::kSwitch, "a full context ends the answer; it is never shifted"),
    said("no-context-shift", "--no-context-shift", Takes::kNothing, "a full context always ends the answer"),
    said("no-display-prompt", "--no-display-prompt", Takes::kNothing, "only the completion is ever printed"),
    said("color", "-co --color", Takes::kNothing, "output is never coloured"),
    said("simple-io", "--simple-io", Takes::kNothing, "input is always read as plain lines"),
    said("multiline-input", "-mli --multiline-input", Takes::kNothing, "a line that ends in \\ goes on in the next"),
    said("interactive", "-i --interactive", Takes::kNothing, "for a conversation use 'tessera chat'"),
    said("interactive-first", "-if --interactive-first", Takes::kNothing, "for a conversation use 'tessera chat'"),
    said("in-prefix", "--in-prefix", Takes::kValue, "the chat template says what stands around a message"),
    said("in-suffix", "--in-suffix", Takes::kValue, "the chat template says what stands around a message"),
    said("chat-template-file", "--chat-template-file", Takes::kValue, "templates are known by name: see --chat-template"),
    said("jinja", "--jinja", Takes::kNothing, "templates are recognised, not interpreted"),
    said("prompt-cache", "--prompt-cache", Takes::kValue, "the cache is not saved in this version"),
    said("prompt-cache-all", "--prompt-cache-all", Takes::kNothing, "the cache is not saved in this version"),
    said("prompt-cache-ro", "--prompt-cache-ro", Takes::kNothing, "the cache is not saved in this version"),
    said("check-tensors", "--check-tensors", Takes::kNothing, "the header is always checked; weights are not"),
    said("validate-quants", "-vq --validate-quants", Takes::kNothing, "the header is always checked; weights are not"),
    said("rope-scaling", "--rope-scaling", Takes::kValue, kFromFile),
    said("rope-scale", "--rope-scale", Takes::kValue, kFromFile),
    said("rope-freq-base", "--rope-freq-base", Takes::kValue, kFromFile),
    said("rope-freq-scale", "--rope-freq-scale", Takes::kValue, kFromFile),
    said("yarn-orig-ctx", "--yarn-orig-ctx", Takes::kValue, kFromFile),
    said("yarn-ext-factor", "--yarn-ext-factor", Takes::kValue, kFromFile),
    said("yarn-attn-factor", "--yarn-attn-factor", Takes::kValue, kFromFile),
    said("yarn-beta-fast", "--yarn-beta-fast", Takes::kValue, kFromFile),
    said("yarn-beta-slow", "--yarn-beta-slow", Takes::kValue, kFromFile),
    said("grp-attn-n", "-gan --grp-attn-n", Takes::kValue, kFromFile),
    said("grp-attn-w", "-gaw --grp-attn-w", Takes::kValue, kFromFile),
    said("sampling-seq", "--sampling-seq", Takes::kValue, "the order of samplers is set by name with --samplers"),
    said("mirostat", "--mirostat", Takes::kValue, kNoSampler),
    said("mirostat-lr", "--mirostat-lr", Takes::kValue, kNoSampler),
    said("mirostat-ent", "--mirostat-ent", Takes::kValue, kNoSampler),
    said("tfs", "--tfs", Takes::kValue, kNoSampler),
    said("dynatemp-range", "--dynatemp-range", Takes::kValue, kNoSampler),
    said("dynatemp-exp", "--dynatemp-exp", Takes::kValue, kNoSampler),
    said("xtc-probability", "--xtc-probability", Takes::kValue, kNoSampler),
    said("xtc-threshold", "--xtc-threshold", Takes::kValue, kNoSampler),
    said("top-n-sigma", "--top-n-sigma", Takes::kValue, kNoSampler),
    said("dry-multiplier", "--dry-multiplier", Takes::kValue, kNoSampler),
    said("dry-base", "--dry-base", Takes::kValue, kNoSampler),
    said("dry-allowed-length", "--dry-allowed-length", Takes::kValue, kNoSampler),
    said("dry-penalty-last-n", "--dry-penalty-last-n", Takes::kValue, kNoSampler),
    said("dry-sequence-breaker", "--dry-sequence-breaker", Takes::kValue, kNoSampler),
    said("penalize-nl", "--penalize-nl", Takes::kNothing, "penalties treat a new line as any token"),
    said("grammar", "--grammar", Takes::kValue, kNoGrammar),
    said("grammar-file", "--grammar-file", Takes::kValue, kNoGrammar),
    said("json-schema", "-j --json-schema", Takes::kValue, kNoGrammar),
    said("lora", "--lora", Takes::kValue, kNoAdapters),
    said("lora-scaled", "--lora-scaled", Takes::kValue, kNoAdapters),
    said("control-vector", "--control-vector", Takes::kValue, kNoAdapters),
    said("model-draft", "-md --model-draft", Takes::kValue, kNoDraft),
    said("draft", "--draft --draft-max", Takes::kValue, kNoDraft),
    said("draft-min", "--draft-min", Takes::kValue, kNoDraft),
    said("rpc", "--rpc", Takes::kValue, "devices of other machines are not used in this version"),
    said("grouped-expert-routing", "-ger --grouped-expert-routing", Takes::kNothing, "groups of experts are as the model file says"),
    said("merge-qkv", "-mqkv --merge-qkv", Takes::kNothing, kTuning),
    said("merge-up-gate-experts", "-muge --merge-up-gate-experts", Takes::kNothing, kTuning),
    said("graph-reuse", "-gr --graph-reuse", Takes::kNothing, "graphs are always prepared once"),
    said("no-graph-reuse", "-no-gr --no-graph-reuse", Takes::kNothing, "graphs are always prepared once"),
    said("no-fused-up-gate", "-no-fug --no-fused-up-gate", Takes::kNothing, kTuning),
    said("rope-cache", "-rcache --rope-cache", Takes::kNothing, kTuning),
    said("max-extra-alloc", "-mea --max-extra-alloc", Takes::kValue, kTuning),
    said("offload-policy", "-op --offload-policy", Takes::kValue, kTuning),
    said("cuda-params", "-cuda --cuda-params", Takes::kValue, kTuning),
    said("defrag-thold", "-dt --defrag-thold", Takes::kValue, "a paged cache is never fragmented"),
    // Of servers
    said("host", "--host", Takes::kValue, kNoServer),
    said("port", "--port", Takes::kValue, kNoServer),
    said("alias", "-a --alias", Takes::kValue, kNoServer),
    said("api-key", "--api-key", Takes::kValue, kNoServer),
    said("api-key-file", "--api-key-file", Takes::kValue, kNoServer),
    said("timeout", "-to --timeout", Takes::kValue, kNoServer),
    said("threads-http", "--threads-http", Takes::kValue, kNoServer),
    said("cont-batching", "-cb --cont-batching", Takes::kNothing, "prompts and generations always share steps"),
    said("no-cont-batching", "-nocb --no-cont-batching", Takes::kNothing, "prompts and generations always share steps"),
    said("metrics", "--metrics", Takes::kNothing, kNoServer),
    said("slots", "--slots", Takes::kNothing, kNoServer),
    said("no-slots", "--no-slots", Takes::kNothing, kNoServer),
    said("slot-save-path", "--slot-save-path", Takes::kValue, kNoServer),
    said("reasoning-format", "--reasoning-format", Takes::kValue, kNoServer),
    said("webui", "--webui", Takes::kValue, kNoServer),
    // Of benchmarks
    said("n-gp", "-gp", Takes::kValue, kBenchmark, kModel),
    said("n-pg", "-pg", Takes::kValue, kBenchmark, kModel),
    said("warmup-runs", "-w --warmup-runs", Takes::kValue, kBenchmark, kModel),
    said("output", "-o --output", Takes::kValue, kBenchmark, kModel),
    said("threads-gen-batch", "-tgb --threads-gen-batch", Takes::kValue, "threads are set by -t and -tb", kBench),
    said("embeddings", "-embd --embeddings", Takes::kSwitch, "generation is what is measured", kBench),
    said("cpu-mask", "-C --cpu-mask", Takes::kValue, "threads are not bound to cores in this version", kBench),
    said("prio", "--prio", Takes::kValue, "the system's priority is left as it is", kBench),
    said("delay", "--delay", Takes::kValue, "tests follow each other at once", kBench),
};
// clang-format on

}  // namespace

std::span<const CommandInfo> all_commands() noexcept {
    return kCommands;
}
std::span<const Flag> all_flags() noexcept {
    return kFlags;
}

}  // namespace tessera::app
