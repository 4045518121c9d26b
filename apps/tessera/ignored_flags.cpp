// Flags of other programs that can change no result here: accepted, with the reason in one line.
#include "apps/tessera/flags.hpp"

namespace tessera::app {
namespace {

constexpr std::string_view kDraftsElsewhere = "drafts are made for answers alone";
constexpr std::string_view kDraftDetail =
    "drafts change how fast answers come, not what they are; their lengths follow from measured times";
constexpr std::string_view kPlainLog = "messages are plain lines";
constexpr std::string_view kOneCache = "all sequences share the pages of one cache";
constexpr std::string_view kTuning = "a way of computing in other programs; Tessera decides by its own plan";
constexpr std::string_view kGraphMode = "a detail of -sm graph, which is not supported";
constexpr std::string_view kDetailOfImages = "a detail of images and sound, of which none are read";
constexpr std::string_view kCheckpoints = "the pages of a prefix are kept as long as there is room";

// One flag an entry, on one line or two.
// clang-format off
constexpr Flag kIgnoredFlags[] = {
    // How it is computed
    ignored("fused-moe", "-fmoe --fused-moe", Takes::kSwitch, "experts are always fused where a kernel offers that").taking_several(),
    ignored("no-fused-moe", "-no-fmoe --no-fused-moe", Takes::kNothing, "experts are fused wherever a kernel offers that and it is faster"),
    ignored("no-warmup", "--no-warmup -wb --warmup-batch", Takes::kNothing, "loading always runs every kernel once"),
    ignored("warmup", "--warmup", Takes::kNothing, "loading always runs every kernel once", kEngine & ~kBench),
    ignored("kv-offload", "-kvo --kv-offload", Takes::kNothing, "the cache of a layer is on the device that computes its attention, unless -nkvo is given"),
    ignored("transparent-huge-pages", "-thp --transparent-huge-pages", Takes::kNothing, "large pages are always requested"),
    ignored("kv-unified", "-kvu --kv-unified -no-kvu --no-kv-unified", Takes::kNothing, kOneCache),
    ignored("op-offload",
            "--op-offload --no-host -ooae --offload-only-active-experts -no-ooae --no-offload-only-active-experts -no-mmad "
            "--no-fused-mul-multiadd -mqkv --merge-qkv -muge --merge-up-gate-experts --merge-up-gate-exps -no-fug "
            "--no-fused-up-gate -rcache --rope-cache -fidx --fused-indexer-topk --defer-experts --prefetch-experts", Takes::kNothing, kTuning),
    ignored("graph-tuning", "-wgt --worst-graph-tokens -mea --max-extra-alloc -cuda --cuda-params --prefetch-experts-threads -fdn --fused-delta-net",
            Takes::kValue, kTuning),
    ignored("split-mode-graph", "-smgs --split-mode-graph-scheduling -sas --scheduler-async -smf16 --split-mode-f16 -smf32 --split-mode-f32",
            Takes::kNothing, kGraphMode),
    ignored("graph-reduce-type", "-grt --graph-reduce-type -gap --graph-attn-precision --max-gpu", Takes::kValue, kGraphMode),
    ignored("repack", "--repack", Takes::kNothing, "weights are packed unless -nr is given", kEngine & ~kRepack),
    ignored("direct-io", "-dio --direct-io -ndio --no-direct-io", Takes::kNothing, "files are mapped, or read with --no-mmap").from("LLAMA_ARG_DIO=--direct-io"),
    ignored("lazy-mode", "-lzm --lazy-mode", Takes::kValue, "pages of a mapped file are read when they are first used"),
    ignored("swa-full", "--swa-full --swa-compress", Takes::kNothing, "the cache holds every token"),
    ignored("fit", "-fit --fit", Takes::kSwitch, "-c, -ngl and -ts are always fitted to memory where they are not given"),
    ignored("fit-ctx", "-fitc --fit-ctx", Takes::kValue, "-c sets the context"),
    ignored("poll", "--poll --poll-batch", Takes::kValue, "threads wait actively within a step, and sleep between steps"),
    ignored("cpu-strict", "--cpu-strict --cpu-strict-batch", Takes::kValue, "threads are bound by --numa; -C and -Cr set the CPUs of all"),
    ignored("cpu-mask-batch", "-Cb --cpu-mask-batch", Takes::kValue, "-C sets the CPUs of all steps"),
    ignored("cpu-range-batch", "-Crb --cpu-range-batch", Takes::kValue, "-Cr sets the CPUs of all steps"),
    ignored("prio-batch", "--prio-batch", Takes::kValue, "--prio sets the priority of all steps"),
    ignored("grouped-expert-routing", "-ger --grouped-expert-routing", Takes::kNothing, "groups of experts are as the model file says"),
    ignored("graph-reuse", "-gr --graph-reuse -no-gr --no-graph-reuse", Takes::kNothing, "graphs are always prepared once"),
    ignored("defrag-thold", "-dt --defrag-thold", Takes::kValue, "a paged cache is never fragmented"),
    ignored("backend-sampling", "-bs --backend-sampling", Takes::kNothing, "tokens are sampled on the CPU"),
    ignored("indexer-cache-type-k", "-ictk --indexer-cache-type-k", Takes::kValue, "attention is dense, so that no indexer has a cache"),
    // The context
    ignored("keep", "--keep", Takes::kValue, "nothing of a context is ever dropped; a full one ends the answer"),
    ignored("no-context-shift", "--no-context-shift", Takes::kNothing, "a full context always ends the answer"),
    ignored("cache-reuse", "--cache-reuse", Takes::kValue, "common prefixes of prompts are always computed once"),
    ignored("cache-prompt", "--cache-prompt --no-cache-prompt", Takes::kNothing, "common prefixes of prompts are always computed once"),
    ignored("cache-ram", "-cram --cache-ram -crs --cache-ram-similarity -cram-n-min --cache-ram-n-min", Takes::kValue, kCheckpoints),
    ignored("ctx-checkpoints",
            "-ctxcp --ctx-checkpoints --swa-checkpoints -cms --checkpoint-min-step -ctx-ckpt -ctx-ckpt-i --ctx-checkpoints-interval "
            "-ctx-ckpt-t --ctx-checkpoints-tolerance -ctx-ckpt-e --ctx-checkpoints-eviction", Takes::kValue, kCheckpoints).from("LLAMA_ARG_CHECKPOINT_MIN_SPACING_NT=--checkpoint-min-step"),
    // Drafts
    ignored("drafts-elsewhere",
            "--spec-type --draft-max --draft-n --draft --spec-draft-n-max --draft-min --draft-n-min --spec-draft-n-min --draft-p-min "
            "--spec-draft-p-min -md --model-draft --spec-draft-model -cd --ctx-size-draft -td --threads-draft --spec-draft-threads -tbd "
            "--threads-batch-draft --spec-draft-threads-batch -ctkd --cache-type-k-draft --spec-draft-type-k -ctvd "
            "--cache-type-v-draft --spec-draft-type-v -ngld --gpu-layers-draft --n-gpu-layers-draft --spec-draft-ngl -devd "
            "--device-draft --spec-draft-device -otd --override-tensor-draft --spec-draft-override-tensor -ncmoed "
            "--n-cpu-moe-draft --spec-draft-n-cpu-moe --spec-draft-ncmoe", Takes::kValue, kDraftsElsewhere, kEngine & ~kGenerate),
    ignored("draft-cpu-moe-elsewhere", "-cmoed --cpu-moe-draft --spec-draft-cpu-moe --mtp -mtp --multi-token-prediction -no-mtp --no-multi-token-prediction",
            Takes::kNothing, kDraftsElsewhere, kEngine & ~kGenerate),
    ignored("draft-details",
            "--draft-params --draft-p-split --spec-draft-p-split --spec-stage "
            "-Cd --cpu-mask-draft --spec-draft-cpu-mask -Crd --cpu-range-draft --spec-draft-cpu-range --cpu-strict-draft "
            "--spec-draft-cpu-strict --prio-draft --spec-draft-prio --poll-draft --spec-draft-poll -Cbd --cpu-mask-batch-draft "
            "--spec-draft-cpu-mask-batch -Crbd --cpu-range-batch-draft --cpu-strict-batch-draft --spec-draft-cpu-strict-batch --prio-batch-draft "
            "--spec-draft-prio-batch --poll-batch-draft --spec-draft-poll-batch --spec-draft-sampling "
            "--spec-replace --spec-ckpt-mode --spec-ngram-mod-n-min --spec-ngram-mod-n-max --spec-ngram-mod-n-match "
            "--spec-ngram-simple-size-n --spec-ngram-simple-size-m --spec-ngram-simple-min-hits --spec-ngram-map-k-size-n "
            "--spec-ngram-map-k-size-m --spec-ngram-map-k-min-hits --spec-ngram-map-k4v-size-n --spec-ngram-map-k4v-size-m "
            "--spec-ngram-map-k4v-min-hits --spec-ngram-size-n --spec-ngram-size-m --spec-ngram-min-hits --suffix-pattern-len "
            "--suffix-max-depth --suffix-corpus -lcs --lookup-cache-static -lcd --lookup-cache-dynamic -mtprot "
            "--mtp-requantize-output-tensor", Takes::kValue, kDraftDetail),
    ignored("draft-switches",
            "--spec-default --spec-autotune --recurrent-ckpt-mode --spec-draft-backend-sampling --no-spec-draft-backend-sampling", Takes::kNothing, kDraftDetail),
    // Text that is read and printed
    ignored("no-display-prompt", "--no-display-prompt", Takes::kNothing, "only the completion is ever printed"),
    ignored("color", "-co --color", Takes::kSwitch, "output is never coloured"),
    ignored("simple-io", "--simple-io", Takes::kNothing, "input that is not a terminal is always read as plain lines"),
    ignored("interactive-chat", "-i --interactive -if --interactive-first", Takes::kNothing, "'tessera chat' is always interactive", kChat),
    ignored("server-interactive", "-i --interactive -if --interactive-first -cnv --conversation -no-cnv --no-conversation -mli --multiline-input --verbose-prompt",
            Takes::kNothing, "of a program at a terminal; requests say whether they are chats", kServe),
    ignored("jinja", "--jinja --no-jinja --peg", Takes::kNothing, "chat templates are always run"),
    ignored("skip-chat-parsing", "--skip-chat-parsing", Takes::kNothing, "answers are printed as they are generated", kNotServe),
    ignored("no-skip-chat-parsing", "--no-skip-chat-parsing", Takes::kNothing, "the default"),
    ignored("reasoning-format", "--reasoning-format", Takes::kValue, "answers are printed as they are generated", kNotServe).from("LLAMA_ARG_THINK"),
    ignored("reasoning-budget-message", "--reasoning-budget-message", Takes::kValue, "only the closing marker is written where a budget ends thinking").from("LLAMA_ARG_THINK_BUDGET_MESSAGE"),
    ignored("reasoning-preserve", "--no-reasoning-preserve", Takes::kNothing, "thinking of earlier answers is left out as the template has it"),
    ignored("parse-special", "--parse-special", Takes::kNothing, "control tokens in a raw prompt are parsed unless --no-parse-special is given", kModel),
    // Messages
    ignored("perf", "--perf --show-timings", Takes::kNothing, "timings are always printed, unless --no-perf is given"),
    ignored("no-perf-elsewhere", "--no-perf --no-show-timings", Takes::kNothing, "no timings of a prompt and its answer are printed", kEngine & ~kModel),
    ignored("log-colors", "--log-colors", Takes::kSwitch, kPlainLog).from("LLAMA_LOG_COLORS"),
    ignored("log-prefix", "--log-prefix --no-log-prefix --log-timestamps --no-log-timestamps --minilog --log-jsonl --no-log-jsonl", Takes::kNothing, kPlainLog).from("LLAMA_LOG_PREFIX=--log-prefix LLAMA_LOG_TIMESTAMPS=--log-timestamps"),
    ignored("log-enable", "--log-enable --log-new", Takes::kNothing, "messages are printed unless --log-disable is given, and --log-file writes a new file"),
    ignored("log-format", "--log-format", Takes::kValue, kPlainLog),
    ignored("print-token-count", "-ptc --print-token-count", Takes::kValue, "tokens are counted in the timings at the end"),
    ignored("dump-kv-cache", "-dkvc --dump-kv-cache", Takes::kNothing, "the state of the cache is not printed"),
    ignored("print-overrides", "--print-overrides", Takes::kSwitch, "'tessera plan' prints where tensors lie", kBench),
    ignored("offline", "--offline", Takes::kNothing, "nothing is ever fetched from a network").from("LLAMA_OFFLINE"),
    ignored("hf-token", "-hft --hf-token", Takes::kValue, "nothing is ever fetched from a network"),
    ignored("no-mmproj", "--no-mmproj --no-mmproj-auto --mmproj-auto --mmproj-offload --no-mmproj-offload", Takes::kNothing, kDetailOfImages),
    ignored("image-tokens",
            "--image-min-tokens --image-max-tokens --mtmd-batch-max-tokens --mtmd-kq-type -tm --threads-mtmd -mmdev --mmproj-device "
            "--video-fps --video-timestamp-interval --video-ffmpeg-dir", Takes::kValue, kDetailOfImages),
    // Of servers
    ignored("server-switches", "--props", Takes::kNothing, "a flag of 'tessera serve', without effect here", kNotServe),
    ignored("server-props", "--props", Takes::kNothing, "/props is answered; a client that would change them gets an error", kServe).from("LLAMA_ARG_ENDPOINT_PROPS"),
    ignored("threads-http", "--threads-http -sps --slot-prompt-similarity --reasoning-tokens --tags --sse-ping-interval", Takes::kValue,
            "without effect on answers: the server has a fixed number of threads, no slots to choose, and sends no pings"),
    ignored("cache-idle-slots", "--cache-idle-slots --no-cache-idle-slots --send-done -no-ag --no-agent --no-ui-mcp-proxy "
            "--no-webui-mcp-proxy --no-models-autoload", Takes::kNothing, "what the server does anyway"),
    ignored("cont-batching", "-cb --cont-batching -nocb --no-cont-batching", Takes::kNothing, "prompts and generations always share steps"),
    // Of measurements
    ignored("sweep-memory", "--sweep-memory", Takes::kNothing, "memory is what 'tessera plan' says", kSweep),
    ignored("progress", "--progress", Takes::kNothing, "loading shows its progress on a terminal", kBench),
    ignored("all-logits", "--perplexity --all-logits", Takes::kNothing, "that is what is measured", kPerplexity),
    // Positions and samplers
    ignored("grp-attn-w", "-gaw --grp-attn-w", Takes::kValue, "a part of --grp-attn-n"),
    ignored("penalize-nl", "--penalize-nl", Takes::kNothing, "penalties treat a new line as any token"),
};
// clang-format on

}  // namespace

std::span<const Flag> ignored_flags() noexcept {
    return kIgnoredFlags;
}

}  // namespace tessera::app
