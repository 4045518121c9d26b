// The commands of the program and their flags.
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
constexpr uint32_t kServe = static_cast<uint32_t>(Command::kServe);
constexpr uint32_t kAll = kAllCommands;
// `plan` takes the flags of `run`, so that changing one word of a command line plans it instead.
constexpr uint32_t kModel = kRun | kChat | kPlan;
// Commands that load or plan a model.
constexpr uint32_t kEngine = kModel | kServe | kBench | kSweep | kPerplexity | kRepack;
// Commands that generate text.
constexpr uint32_t kGenerate = kModel | kServe;

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
    {Command::kInspect, "inspect", "model", "tessera inspect [-m] MODEL",
     "Shows the contents of a model file, and patterns for -ot."},
    {Command::kTokenize, "tokenize", "prompt", "tessera tokenize [-m MODEL] [-p] TEXT", "Shows the tokens of a text."},
};

constexpr Flag supported(std::string_view name, std::string_view spellings, Takes takes, std::string_view value,
                         uint32_t commands, Group group, std::string_view help) {
    return {name, spellings, takes, value, commands, group, help, Standing::kSupported};
}

// `line`: printed when the flag is given.
constexpr Flag ignored(std::string_view name, std::string_view spellings, Takes takes, std::string_view line,
                       uint32_t commands = kEngine) {
    return {name, spellings, takes, "", commands, Group::kOthers, line, Standing::kIgnored};
}

constexpr std::string_view kServerOnly = "a flag of 'tessera serve', without effect here";
constexpr uint32_t kNotServe = kEngine & ~kServe;
constexpr std::string_view kFromFile =
    "rope scaling comes from the model file; --override-kv changes what the file says";
constexpr std::string_view kNoSampler = "this version has no such sampler";
constexpr std::string_view kNoGrammar = "this version has no grammars: the output is free text";
constexpr std::string_view kNoAdapters = "this version does not load adapters";
constexpr std::string_view kNoDraft = "this version has no speculative decoding";
constexpr std::string_view kBenchmark = "a flag of 'tessera bench', without effect here";
constexpr std::string_view kNoBudget = "thinking is switched by --reasoning; it has no budget";
constexpr std::string_view kPlainLog = "messages are plain lines";
constexpr std::string_view kOneCache = "all sequences share the pages of one cache";
constexpr std::string_view kTuning = "an internal option of other programs; Tessera decides by its own plan";

// One flag an entry, on one line or two.
// clang-format off
constexpr Flag kFlags[] = {
    // General
    supported("help", "--help -h --usage", Takes::kNothing, "", kAll, Group::kGeneral, "show the flags of this command"),
    supported("version", "--version", Takes::kNothing, "", kAll, Group::kGeneral, "print the version"),
    supported("verbose", "-v --verbose --log-verbose", Takes::kNothing, "", kAll, Group::kGeneral, "print more messages"),
    supported("config", "--config", Takes::kValue, "FILE", kAll, Group::kGeneral, "read this configuration instead of the user's or the system's"),
    supported("plugin-dir", "--plugin-dir", Takes::kValue, "DIR", kAll, Group::kGeneral, "search this folder for plugins, too; may be repeated"),
    supported("model", "-m --model", Takes::kValue, "FILE", kEngine | kInspect | kTokenize, Group::kGeneral,
             "the GGUF file, or any part of a split one; without it the bundled model"),
    supported("log-file", "--log-file", Takes::kValue, "FILE", kEngine, Group::kGeneral, "write messages to this file, too"),
    supported("log-disable", "--log-disable", Takes::kNothing, "", kEngine, Group::kGeneral, "no messages but errors"),
    supported("log-verbosity", "-lv --verbosity --log-verbosity", Takes::kValue, "N", kEngine, Group::kGeneral, "4 and above: as -v"),
    supported("no-perf", "--no-perf --no-show-timings", Takes::kNothing, "", kModel, Group::kGeneral, "no timings at the end"),
    supported("list-devices", "--list-devices", Takes::kNothing, "", kEngine, Group::kGeneral, "as 'tessera devices'"),
    supported("override-kv", "--override-kv -okv", Takes::kValue, "KEY=TYPE:VALUE", kEngine | kInspect | kTokenize, Group::kGeneral,
             "replace a value of the file's metadata (TYPE: int, float, bool, str); may be repeated"),
    // Prompt
    supported("prompt", "-p --prompt", Takes::kValue, "TEXT", kModel | kTokenize, Group::kPrompt, "the prompt; in chat the first message"),
    supported("file", "-f --file", Takes::kValue, "FILE", kModel | kTokenize | kPerplexity, Group::kPrompt,
             "the prompt or text from a file ('-': standard input); with --parallel one prompt a line"),
    supported("predict", "-n --predict --n-predict", Takes::kValue, "N", kGenerate, Group::kPrompt,
             "at most N new tokens; -1: until the model ends or the context is full"),
    supported("parallel", "--parallel -np", Takes::kValue, "N", kGenerate, Group::kPrompt, "work on N prompts of the file at once (1); serve: on N answers (16)"),
    supported("chat", "--chat -cnv --conversation", Takes::kNothing, "", kModel, Group::kPrompt,
             "run: put the prompt into the model's chat template (the bundled model's default)"),
    supported("raw", "--raw -no-cnv --no-conversation", Takes::kNothing, "", kModel, Group::kPrompt,
             "run: the prompt as it is, after BOS (a named model's default)"),
    supported("system", "-sys --system-prompt", Takes::kValue, "TEXT", kModel, Group::kPrompt, "the system message of a conversation"),
    supported("system-file", "-sysf --system-prompt-file", Takes::kValue, "FILE", kModel, Group::kPrompt, "the system message from a file"),
    supported("single-turn", "-st --single-turn", Takes::kNothing, "", kModel, Group::kPrompt, "chat: end after the first answer"),
    supported("reasoning", "-rea --reasoning", Takes::kValue, "on|off|auto", kGenerate, Group::kPrompt,
             "thinking before the answer, if the template supports it; auto: the template's default"),
    supported("chat-template", "--chat-template", Takes::kValue, "NAME", kGenerate, Group::kPrompt,
             "use this chat template instead of the file's"),
    supported("stop", "--stop -r --reverse-prompt", Takes::kValue, "TEXT", kGenerate, Group::kPrompt,
             "end where this text appears, without it; may be repeated"),
    supported("escape", "-e --escape", Takes::kNothing, "", kModel | kTokenize, Group::kPrompt, "read \\n, \\t, \\\\, \\\" and \\' in the prompt"),
    supported("no-escape", "--no-escape", Takes::kNothing, "", kModel | kTokenize, Group::kPrompt, "take the prompt as it is (the default)"),
    supported("special", "-sp --special", Takes::kNothing, "", kModel, Group::kPrompt, "print control tokens, too"),
    supported("verbose-prompt", "--verbose-prompt", Takes::kNothing, "", kModel, Group::kPrompt, "show the prompt's tokens before working on it"),
    supported("ids", "--ids", Takes::kNothing, "", kTokenize, Group::kPrompt, "print the numbers alone, on one line"),
    supported("no-bos", "--no-bos", Takes::kNothing, "", kTokenize | kRun | kPlan, Group::kPrompt, "no BOS before the text"),
    supported("no-parse-special", "--no-parse-special", Takes::kNothing, "", kTokenize | kModel, Group::kPrompt,
             "take control tokens that are written out as plain text (in chat always)"),
    // Sampling
    supported("seed", "-s --seed", Takes::kValue, "N", kGenerate, Group::kSampling, "seed of the random numbers; -1: a new one each time"),
    supported("temp", "--temp --temperature", Takes::kValue, "X", kGenerate, Group::kSampling,
             "temperature; 0: always the most likely token (0.8; the bundled model: 0)"),
    supported("top-k", "--top-k", Takes::kValue, "N", kGenerate, Group::kSampling, "sample from the N most likely tokens; 0: from all (40)"),
    supported("top-p", "--top-p", Takes::kValue, "X", kGenerate, Group::kSampling, "sample from the smallest set of probability X; 1: off (0.95)"),
    supported("min-p", "--min-p", Takes::kValue, "X", kGenerate, Group::kSampling, "sample from tokens with at least X times the largest probability; 0: off (0.05)"),
    supported("typical", "--typical --typical-p", Takes::kValue, "X", kGenerate, Group::kSampling, "locally typical sampling; 1: off (1)"),
    supported("repeat-last-n", "--repeat-last-n", Takes::kValue, "N", kGenerate, Group::kSampling, "number of last tokens that penalties consider; -1: all (64)"),
    supported("repeat-penalty", "--repeat-penalty", Takes::kValue, "X", kGenerate, Group::kSampling, "penalty of repeated tokens; 1: off (1)"),
    supported("presence-penalty", "--presence-penalty", Takes::kValue, "X", kGenerate, Group::kSampling, "penalty of tokens that have occurred; 0: off (0)"),
    supported("frequency-penalty", "--frequency-penalty", Takes::kValue, "X", kGenerate, Group::kSampling, "penalty for each occurrence of a token; 0: off (0)"),
    supported("samplers", "--samplers", Takes::kValue, "A;B;...", kGenerate, Group::kSampling,
             "order of the samplers: penalties, top_k, typ_p, top_p, min_p, temperature"),
    supported("logit-bias", "-l --logit-bias", Takes::kValue, "TOKEN(+|-)X", kGenerate, Group::kSampling, "make a token more or less likely; may be repeated"),
    supported("ignore-eos", "--ignore-eos", Takes::kNothing, "", kGenerate, Group::kSampling, "continue past the model's end of text"),
    // Context and speed
    supported("ctx-size", "-c --ctx-size", Takes::kValue, "N", kEngine & ~kBench, Group::kContext,
             "tokens that the cache holds in total; 0: the model's maximum (4096, or what prompt and -n need)"),
    supported("batch-size", "-b --batch-size", Takes::kValue, "N", kEngine, Group::kContext, "lowers -ub if it is smaller"),
    supported("ubatch-size", "-ub --ubatch-size", Takes::kValue, "N", kEngine, Group::kContext, "rows of one step (512)"),
    supported("threads", "-t --threads", Takes::kValue, "N", kEngine, Group::kContext, "threads of generation (the physical cores)"),
    supported("threads-batch", "-tb --threads-batch", Takes::kValue, "N", kEngine, Group::kContext, "threads of prompts (as -t)"),
    supported("flash-attn", "-fa --flash-attn", Takes::kSwitch, "on|off|auto", kEngine, Group::kContext, "flash attention (on)"),
    supported("no-flash-attn", "-no-fa --no-flash-attn", Takes::kNothing, "", kEngine, Group::kContext, "as -fa off"),
    supported("mla-use", "-mla --mla-use", Takes::kValue, "0|1|2|3", kEngine, Group::kContext,
             "multi-head latent attention: 0 standard, 1 absorbed, 2 prompts expanded, 3 as 2 with flash attention"),
    supported("attention-max-batch", "-amb --attention-max-batch", Takes::kValue, "MiB", kEngine, Group::kContext,
             "limit of attention's scratch memory; 0: none (512)"),
    supported("smart-expert-reduction", "-ser --smart-expert-reduction", Takes::kValue, "K,T", kEngine, Group::kContext,
             "use the first K of the chosen experts, and others whose weight is at least T times the largest; -1,0: all"),
    supported("cache-type-k", "-ctk --cache-type-k", Takes::kValue, "TYPE", kEngine, Group::kContext, "of cached keys, or of the latent: f32, f16, bf16, q8_0, q6_0, q5_0, q5_1, q4_0, q4_1, iq4_nl (f16)"),
    supported("cache-type-v", "-ctv --cache-type-v", Takes::kValue, "TYPE", kEngine, Group::kContext, "of cached values (f16)"),
    supported("k-cache-hadamard", "-khad --k-cache-hadamard", Takes::kNothing, "", kEngine, Group::kContext,
             "spread outliers of cached keys, or of the latent, by a Hadamard matrix: for types of few bits"),
    supported("v-cache-hadamard", "-vhad --v-cache-hadamard", Takes::kNothing, "", kEngine, Group::kContext, "the same for cached values"),
    supported("no-mmap", "--no-mmap", Takes::kNothing, "", kEngine, Group::kContext, "read weights instead of using the mapped file"),
    supported("mmap", "--mmap", Takes::kNothing, "", kEngine & ~kBench, Group::kContext,
             "use weights in the mapped file where they need no packing (the default)"),
    supported("no-repack", "-nr --no-repack", Takes::kNothing, "", kEngine & ~kRepack, Group::kContext,
             "use weights as the file has them: starts faster, runs slower"),
    supported("run-time-repack", "-rtr --run-time-repack", Takes::kSwitch, "on|off", kEngine & ~kRepack, Group::kContext,
             "pack all weights for their kernels before the first step; off: between the first steps (off for run and chat)"),
    supported("mlock", "--mlock", Takes::kNothing, "", kEngine, Group::kContext, "keep memory from being swapped"),
    supported("load-mode", "-lm --load-mode", Takes::kValue, "MODE", kEngine, Group::kContext,
             "none: as --no-mmap; mlock, mmap+mlock: as --mlock; auto, mmap: the default"),
    supported("cpu-mask", "-C --cpu-mask", Takes::kValue, "HEX", kEngine, Group::kContext, "run only on these CPUs, one bit each"),
    supported("cpu-range", "-Cr --cpu-range", Takes::kValue, "FIRST-LAST", kEngine, Group::kContext, "run only on these CPUs"),
    supported("prio", "--prio", Takes::kValue, "N", kEngine, Group::kContext, "priority of the process: -1 low, 0 normal, 1 to 3 higher"),
    supported("numa", "--numa", Takes::kValue, "distribute|isolate|numactl", kEngine, Group::kContext,
             "on machines of several NUMA nodes: use all alike, one alone, or what numactl set up"),
    supported("check-order", "--check-order", Takes::kNothing, "", kEngine & ~kRepack, Group::kContext,
             "check in every step that no two accesses to the same memory are unordered, and fail if so (slow; for debugging)"),
    // Placement
    supported("n-gpu-layers", "-ngl --n-gpu-layers --gpu-layers", Takes::kValue, "N", kEngine, Group::kPlacement, "this many of the last layers go to GPUs (as many as fit)"),
    supported("tensor-split", "-ts --tensor-split", Takes::kValue, "A,B,...", kEngine, Group::kPlacement, "shares of the layers of each GPU (by free memory)"),
    supported("split-mode", "-sm --split-mode", Takes::kValue, "layer|none", kEngine, Group::kPlacement, "how several GPUs share: whole layers (layer), or one GPU is used alone (none; see -mg)"),
    supported("main-gpu", "-mg --main-gpu --max-gpu", Takes::kValue, "N", kEngine, Group::kPlacement, "the GPU that -sm none uses (0)"),
    supported("device", "-dev --device", Takes::kValue, "ID,...", kEngine, Group::kPlacement, "use these GPUs alone, named as 'tessera devices' does; none: no GPU"),
    supported("no-kv-offload", "-nkvo --no-kv-offload", Takes::kNothing, "", kEngine & ~kBench, Group::kPlacement,
             "all caches are in host memory, and the CPU computes attention"),
    supported("bench-no-kv-offload", "-nkvo --no-kv-offload", Takes::kSwitch, "0|1", kBench, Group::kPlacement,
             "1: all caches are in host memory, and the CPU computes attention (0)"),
    supported("fit-target", "-fitt --fit-target --fit-margin", Takes::kValue, "MIB,...", kEngine, Group::kPlacement,
             "leave this much memory of each GPU free"),
    supported("override-tensor", "-ot --override-tensor", Takes::kValue, "REGEX=DEVICE", kEngine, Group::kPlacement,
             "weights whose names match go to the device; separated by commas, may be repeated, the first match counts"),
    supported("cpu-moe", "-cmoe --cpu-moe", Takes::kNothing, "", kEngine, Group::kPlacement, "all routed experts stay on the CPU"),
    supported("n-cpu-moe", "-ncmoe --n-cpu-moe", Takes::kValue, "N", kEngine, Group::kPlacement, "routed experts of the first N layers stay on the CPU"),
    supported("no-op-offload", "--no-op-offload -nopo", Takes::kNothing, "", kEngine, Group::kPlacement,
             "never copy experts of the CPU to a GPU for prompts"),
    supported("op-offload-from", "--op-offload-from", Takes::kValue, "N", kEngine, Group::kPlacement,
             "copy them for steps of N rows or more, whatever the estimates say"),
    supported("offload-policy", "-op --offload-policy", Takes::kValue, "OP,0|1,...", kEngine, Group::kPlacement,
             "27,0 or 29,0 (operations of experts): as --no-op-offload"),
    // Reports
    supported("rig", "--rig", Takes::kValue, "FILE", kPlan | kPlugins, Group::kReport, "for the machine that this file describes"),
    supported("json", "--json", Takes::kNothing, "", kPlan, Group::kReport, "print the plan as JSON, every node with its kernel"),
    supported("why", "--why", Takes::kNothing, "", kPlugins | kPlan, Group::kReport, "with the reason of each choice and rejection"),
    supported("all", "--all --tensors", Takes::kNothing, "", kInspect, Group::kReport, "list every tensor, and print long values in full"),
    supported("repack-output", "-o --output", Takes::kValue, "FILE", kRepack, Group::kReport, "the file to write"),
    // Measuring
    supported("bench-prompt", "-p --n-prompt", Takes::kValue, "N,...", kBench, Group::kMeasuring, "tokens of a prompt (512); 0: no test of prompts"),
    supported("bench-generate", "-n --n-gen", Takes::kValue, "N,...", kBench, Group::kMeasuring, "tokens to generate (128); 0: no test of generation"),
    supported("bench-pg", "-pg", Takes::kValue, "P,G", kBench, Group::kMeasuring, "a prompt of P tokens and G generated after it, as one test; may be repeated"),
    supported("bench-gp", "-gp", Takes::kValue, "P,G", kBench, Group::kMeasuring, "G tokens generated after a prompt of P, which does not count; may be repeated"),
    supported("bench-depth", "-d --n-depth", Takes::kValue, "N,...", kBench, Group::kMeasuring, "cached tokens before each test (0)"),
    supported("bench-repetitions", "-r --repetitions", Takes::kValue, "N", kBench, Group::kMeasuring, "of each test (5)"),
    supported("bench-warmup", "-w --warmup", Takes::kSwitch, "0|1", kBench, Group::kMeasuring, "one token before each test that does not count (1)"),
    supported("bench-output", "-o --output", Takes::kValue, "md|csv|json|jsonl", kBench, Group::kMeasuring, "form of the results on standard output (md)"),
    supported("bench-output-err", "-oe --output-err", Takes::kValue, "md|csv|json|jsonl", kBench, Group::kMeasuring, "the results on standard error as well"),
    supported("bench-mmap", "-mmp --mmap", Takes::kSwitch, "0|1", kBench, Group::kMeasuring, "use weights in the mapped file where they need no packing (1)"),
    supported("sweep-generate", "-n --n-predict --n-gen", Takes::kValue, "N", kSweep, Group::kMeasuring, "tokens to generate at each depth (a quarter of -ub)"),
    supported("sweep-repetitions", "-nrep --n-repetitions", Takes::kValue, "N", kSweep, Group::kMeasuring, "at each depth, of which the mean is taken (1)"),
    supported("sweep-stride", "--sweep-stride", Takes::kValue, "N", kSweep, Group::kMeasuring, "measure at every Nth depth (1)"),
    supported("sweep-format", "--output-format", Takes::kValue, "table|jsonl", kSweep, Group::kMeasuring, "of the results on standard output (table)"),
    supported("sweep-save", "-o --output --save", Takes::kValue, "FILE", kSweep, Group::kMeasuring, "the results as JSON lines, from which --plot draws"),
    supported("sweep-plot", "--plot", Takes::kValue, "FILE.svg", kSweep, Group::kMeasuring, "draw what was measured and the RESULTS that are named"),
    supported("sweep-results", "--results", Takes::kValue, "FILE", kSweep, Group::kMeasuring, "results to draw: JSON lines or tables, of this program or others; may be repeated"),
    supported("chunks", "--chunks", Takes::kValue, "N", kPerplexity, Group::kMeasuring, "score only the first N chunks"),
    supported("kl-divergence-base", "--kl-divergence-base", Takes::kValue, "FILE", kPerplexity, Group::kMeasuring,
             "save the log probabilities of this run, or with --kl-divergence those to compare with"),
    supported("kl-divergence", "--kl-divergence", Takes::kNothing, "", kPerplexity, Group::kMeasuring, "compare with the saved run, chunk by chunk"),
    // Server
    supported("host", "--host", Takes::kValue, "ADDRESS", kServe, Group::kServer, "the address at which clients find the server; 0.0.0.0: all of this machine (127.0.0.1)"),
    supported("port", "--port", Takes::kValue, "N", kServe, Group::kServer, "the port; 0: any that is free (8080)"),
    supported("alias", "-a --alias", Takes::kValue, "NAME", kServe, Group::kServer, "the model's name to clients (the file's name)"),
    supported("api-key", "--api-key", Takes::kValue, "KEY,...", kServe, Group::kServer, "clients need one of these keys; may be repeated"),
    supported("api-key-file", "--api-key-file", Takes::kValue, "FILE", kServe, Group::kServer, "more keys, one a line; SIGHUP reads them again"),
    supported("api-prefix", "--api-prefix", Takes::kValue, "PATH", kServe, Group::kServer, "stands before every path"),
    supported("timeout", "-to --timeout", Takes::kValue, "SECONDS", kServe, Group::kServer, "a client that does not read its answer for so long is disconnected (600)"),
    supported("queue", "--queue", Takes::kValue, "N", kServe, Group::kServer, "requests that may wait; others get 429 (256)"),
    supported("client-limits", "--client-limits", Takes::kValue, "NAME=N,...", kServe, Group::kServer,
             "what each key, or address without keys, may use: running, waiting, requests-per-minute, tokens-per-minute"),
    supported("body-limit", "--body-limit", Takes::kValue, "MIB", kServe, Group::kServer, "largest body of a request (64)"),
    supported("held-limit", "--held-limit", Takes::kValue, "MIB", kServe, Group::kServer,
             "bodies of all requests that are being read, and as much of answers that clients have not read (256)"),
    supported("itl-target", "--itl-target", Takes::kValue, "MS", kServe, Group::kServer, "size pieces of prompts so that running answers get a token in this time; 0: pieces are of -ub rows (0)"),
    supported("slots", "--slots", Takes::kNothing, "", kServe, Group::kServer, "answer /slots (the default)"),
    supported("no-slots", "--no-slots", Takes::kNothing, "", kServe, Group::kServer, "do not answer /slots"),
    supported("metrics", "--metrics", Takes::kNothing, "", kServe, Group::kServer, "answer /metrics (the default)"),
    supported("no-metrics", "--no-metrics", Takes::kNothing, "", kServe, Group::kServer, "do not answer /metrics"),
    supported("no-webui", "--no-webui", Takes::kNothing, "", kServe, Group::kServer, "no chat page"),
    supported("access-log", "--access-log", Takes::kValue, "FILE", kServe, Group::kServer, "a line of JSON for each request; '-': on standard output (none)"),
    supported("cors-origin", "--cors-origin", Takes::kValue, "ORIGIN,...", kServe, Group::kServer, "pages of other sites that may use the server, as https://example.org"),
    supported("allowed-host", "--allowed-host", Takes::kValue, "NAME,...", kServe, Group::kServer, "names besides --host by which clients may call the server"),
    // Accepted and ignored, with a line that says so
    ignored("fused-moe", "-fmoe --fused-moe", Takes::kSwitch, "experts are always fused where a kernel offers that"),
    ignored("no-fused-moe", "-no-fmoe --no-fused-moe", Takes::kNothing, "experts are fused wherever a kernel offers that and it is faster"),
    ignored("no-warmup", "--no-warmup -wb --warmup-batch", Takes::kNothing, "loading always runs every kernel once"),
    ignored("warmup", "--warmup", Takes::kNothing, "loading always runs every kernel once", kEngine & ~kBench),
    ignored("kv-offload", "-kvo --kv-offload", Takes::kNothing, "the cache of a layer is on the device that computes its attention, unless -nkvo is given"),
    ignored("transparent-huge-pages", "-thp --transparent-huge-pages", Takes::kNothing, "large pages are always requested"),
    ignored("keep", "--keep", Takes::kValue, "a full context ends the answer; it is never shifted"),
    ignored("context-shift", "--context-shift", Takes::kSwitch, "a full context ends the answer; it is never shifted"),
    ignored("no-context-shift", "--no-context-shift", Takes::kNothing, "a full context always ends the answer"),
    ignored("no-display-prompt", "--no-display-prompt --display-prompt", Takes::kNothing, "only the completion is ever printed"),
    ignored("color", "-co --color", Takes::kSwitch, "output is never coloured"),
    ignored("simple-io", "--simple-io", Takes::kNothing, "input that is not a terminal is always read as plain lines"),
    ignored("multiline-input", "-mli --multiline-input", Takes::kNothing, "a line that ends in \\ continues on the next"),
    ignored("interactive", "-i --interactive -if --interactive-first", Takes::kNothing, "for a conversation use 'tessera chat'"),
    ignored("in-prefix", "--in-prefix --in-suffix", Takes::kValue, "the chat template defines the text around a message"),
    ignored("chat-template-file", "--chat-template-file", Takes::kValue, "templates are known by name: see --chat-template"),
    ignored("jinja", "--jinja --no-jinja", Takes::kNothing, "templates are recognised, not interpreted"),
    ignored("chat-template-kwargs", "--chat-template-kwargs", Takes::kValue, "templates take no parameters; see --reasoning"),
    ignored("reasoning-effort", "--reasoning-effort --reasoning-budget --reasoning-budget-message", Takes::kValue, kNoBudget),
    ignored("skip-chat-parsing", "--skip-chat-parsing --no-skip-chat-parsing", Takes::kNothing, "answers are printed as they are generated"),
    ignored("perf", "--perf --show-timings", Takes::kNothing, "timings are always printed, unless --no-perf is given"),
    ignored("log-colors", "--log-colors", Takes::kSwitch, kPlainLog),
    ignored("log-prefix", "--log-prefix --no-log-prefix --log-timestamps --no-log-timestamps", Takes::kNothing, kPlainLog),
    ignored("offline", "--offline", Takes::kNothing, "nothing is ever fetched from a network"),
    ignored("kv-unified", "-kvu --kv-unified -no-kvu --no-kv-unified", Takes::kNothing, kOneCache),
    ignored("op-offload",
            "--op-offload --no-host -smgs --split-mode-graph-scheduling -sas --scheduler-async "
            "-no-ooae --no-offload-only-active-experts -ooae --offload-only-active-experts -no-mmad "
            "--no-fused-mul-multiadd -mqkv --merge-qkv -muge --merge-up-gate-experts -no-fug --no-fused-up-gate "
            "-rcache --rope-cache", Takes::kNothing, kTuning),
    ignored("repack", "--repack", Takes::kNothing, "weights are packed unless -nr is given", kEngine & ~kRepack),
    ignored("direct-io", "-dio --direct-io -ndio --no-direct-io", Takes::kNothing, "files are mapped, or read with --no-mmap"),
    ignored("swa-full", "--swa-full", Takes::kNothing, "the cache holds every token"),
    ignored("fit", "-fit --fit", Takes::kSwitch, "-c, -ngl and -ts are always fitted to memory where they are not given"),
    ignored("fit-ctx", "-fitc --fit-ctx", Takes::kValue, "-c sets the context"),
    ignored("poll", "--poll --poll-batch", Takes::kValue, "threads wait actively within a step, and sleep between steps"),
    ignored("cpu-strict", "--cpu-strict --cpu-strict-batch", Takes::kValue, "threads are bound by --numa; -C and -Cr set the CPUs of all"),
    ignored("cpu-mask-batch", "-Cb --cpu-mask-batch", Takes::kValue, "-C sets the CPUs of all steps"),
    ignored("cpu-range-batch", "-Crb --cpu-range-batch", Takes::kValue, "-Cr sets the CPUs of all steps"),
    ignored("prio-batch", "--prio-batch", Takes::kValue, "--prio sets the priority of all steps"),
    ignored("prompt-cache", "--prompt-cache", Takes::kValue, "the cache is not saved in this version"),
    ignored("prompt-cache-all", "--prompt-cache-all --prompt-cache-ro", Takes::kNothing, "the cache is not saved in this version"),
    ignored("check-tensors", "--check-tensors -vq --validate-quants", Takes::kNothing, "the header is always checked; weights are not"),
    ignored("rope-scaling",
            "--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx --yarn-ext-factor "
            "--yarn-attn-factor --yarn-beta-fast --yarn-beta-slow -gan --grp-attn-n -gaw --grp-attn-w", Takes::kValue, kFromFile),
    ignored("sampling-seq", "--sampling-seq --sampler-seq", Takes::kValue, "the order of samplers is set by name with --samplers"),
    ignored("mirostat",
            "--mirostat --mirostat-lr --mirostat-ent --tfs --dynatemp-range --dynatemp-exp --xtc-probability "
            "--xtc-threshold --top-n-sigma --top-nsigma --dry-multiplier --dry-base --dry-allowed-length "
            "--dry-penalty-last-n --dry-sequence-breaker --adaptive-target --adaptive-decay", Takes::kValue, kNoSampler),
    ignored("penalize-nl", "--penalize-nl", Takes::kNothing, "penalties treat a new line as any token"),
    ignored("grammar", "--grammar --grammar-file -j --json-schema", Takes::kValue, kNoGrammar),
    ignored("lora", "--lora --lora-scaled --control-vector", Takes::kValue, kNoAdapters),
    ignored("model-draft",
            "-md --model-draft --draft --draft-n --draft-max --draft-min --draft-n-min --draft-p-min "
            "--spec-draft-p-min --draft-p-split --spec-draft-p-split --spec-draft-n-max --spec-draft-n-min --spec-type "
            "-td --threads-draft --spec-draft-threads -tbd --threads-batch-draft --spec-draft-threads-batch -devd "
            "--device-draft --spec-draft-device -ngld --gpu-layers-draft --n-gpu-layers-draft --spec-draft-ngl -ctkd "
            "--cache-type-k-draft --spec-draft-type-k -ctvd --cache-type-v-draft --spec-draft-type-v -cd "
            "--ctx-size-draft", Takes::kValue, kNoDraft),
    ignored("spec-default", "--spec-default -mtp --multi-token-prediction -no-mtp --no-multi-token-prediction", Takes::kNothing, kNoDraft),
    ignored("backend-sampling", "-bs --backend-sampling", Takes::kNothing, "tokens are sampled on the CPU"),
    ignored("graph-reduce-type",
            "-grt --graph-reduce-type -wgt --worst-graph-tokens -mea --max-extra-alloc -cuda "
            "--cuda-params", Takes::kValue, kTuning),
    ignored("rpc", "--rpc", Takes::kValue, "devices of other machines are not used in this version"),
    ignored("grouped-expert-routing", "-ger --grouped-expert-routing", Takes::kNothing, "groups of experts are as the model file says"),
    ignored("graph-reuse", "-gr --graph-reuse -no-gr --no-graph-reuse", Takes::kNothing, "graphs are always prepared once"),
    ignored("defrag-thold", "-dt --defrag-thold", Takes::kValue, "a paged cache is never fragmented"),
    // Of servers
    ignored("server-only",
            "--host --port -a --alias --api-key --api-key-file -to --timeout --api-prefix --access-log --cors-origin --allowed-host "
            "--itl-target --queue --client-limits --body-limit --held-limit", Takes::kValue, kServerOnly, kNotServe),
    ignored("server-switches", "--metrics --slots --no-slots --no-metrics --no-webui --webui --props", Takes::kNothing, kServerOnly, kNotServe),
    ignored("server-props", "--props --webui", Takes::kNothing, "/props is answered, and cannot be changed by clients", kServe),
    ignored("threads-http",
            "--threads-http --slot-save-path --reasoning-format --path --ssl-key-file --ssl-cert-file -cram --cache-ram -ctxcp "
            "--ctx-checkpoints --swa-checkpoints -sps --slot-prompt-similarity", Takes::kValue, "not in this version of the server"),
    ignored("cont-batching", "-cb --cont-batching -nocb --no-cont-batching", Takes::kNothing, "prompts and generations always share steps"),
    ignored("cache-reuse", "--cache-reuse", Takes::kValue, "common prefixes of prompts are always computed once"),
    ignored("cache-prompt", "--cache-prompt --no-cache-prompt", Takes::kNothing, "common prefixes of prompts are always computed once"),
    // Of benchmarks
    ignored("n-gp", "-gp -pg -w --warmup-runs -o --output", Takes::kValue, kBenchmark, kModel),
    ignored("threads-gen-batch", "-tgb --threads-gen-batch", Takes::kValue, "threads are set by -t and -tb", kBench),
    ignored("embeddings", "-embd --embeddings", Takes::kSwitch, "generation is what is measured", kBench),
    ignored("progress", "--progress", Takes::kNothing, "loading shows its progress on a terminal", kBench),
    ignored("delay", "--delay", Takes::kValue, "tests follow each other at once", kBench),
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
