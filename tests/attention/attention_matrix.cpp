// Every variant of multi-head latent attention against attention from first principles: attention_matrix [--heads
// 1,128]
// [--tokens 1,7,64,513,3000] [--sequences 1,3] [--variants 0,1,2,3] [--caches f32,f16,bf16,q8_0] [--backends
// reference,cpu_avx2]
// [--kinds flash,tiles] [--amb 4] [--weights f32] [--outlier 1] [--hadamard] [--threads 0]. The cap of --amb (MiB) is
// for tiles; --outlier: how much stronger every 64th element of latent rows is. Prints a table with the relative L2
// error of each, and fails if one is past its limit or ran elsewhere than asked.
#include "attention_layer.hpp"
#include "core/base/error.hpp"
#include "core/graph/types.hpp"
#include "tests/support.hpp"

#include <boost/program_options.hpp>

#include <chrono>
#include <cstdio>
#include <set>
#include <sstream>

namespace {

using namespace tessera;
using namespace tessera::test;

std::vector<std::string> words(const std::string& list) {
    std::vector<std::string> values;
    std::stringstream stream(list);
    for (std::string item; std::getline(stream, item, ',');) values.push_back(item);
    return values;
}

tsr_type type_of(const std::string& name) {
    const TypeInfo* info = find_type(std::string_view(name));
    if (!info) fail(TSR_INVALID_ARGUMENT, "'{}' is no element type", name);
    return info->id;
}

// What was chosen against what was asked; empty if that is the same.
std::string unlike(const AttentionCase& asked, const AttentionResult& result, const std::string& backend) {
    std::string text;
    if (result.lowering != lowering_of(asked)) text += " lowering " + result.lowering;
    for (const AttentionNode& node : result.nodes) {
        if (node.op != op_of(asked, node)) text += " " + node.name + ": " + node.op;
        if (node.plugin != backend) text += " " + node.name + ": " + node.plugin;
        if (node.workspace_bytes > asked.scratch_bytes) text += " " + node.name + ": too much scratch memory";
    }
    return text;
}

}  // namespace

int main(int argc, char** argv) try {
    namespace po = boost::program_options;
    po::options_description described("options");
    const auto list_of = [](const char* value) { return po::value<std::string>()->default_value(value); };
    described.add_options()("heads", list_of("1,128"))("tokens", list_of("1,7,64,513,3000"))(
        "sequences", list_of("1,3"))("variants", list_of("0,1,2,3"))("caches", list_of("f32,f16,bf16,q8_0"))(
        "backends", list_of("reference,cpu_avx2"))("kinds", list_of("flash,tiles"))("weights", list_of("f32"))(
        "amb", po::value<uint64_t>()->default_value(4))("threads", po::value<uint32_t>()->default_value(0))(
        "outlier", po::value<float>()->default_value(1))("hadamard", "caches in the basis of a Hadamard matrix")(
        "help", "show these options");
    po::variables_map args;
    po::store(po::parse_command_line(argc, argv, described), args);
    po::notify(args);
    if (args.contains("help")) {
        std::ostringstream text;
        text << described;
        std::puts(text.str().c_str());
        return 0;
    }
    const auto list = [&](const char* name) { return words(args[name].as<std::string>()); };

    const Hardware hardware = Hardware::detect();
    const uint32_t asked_threads = args["threads"].as<uint32_t>();
    const uint32_t threads = asked_threads ? asked_threads : std::max(1u, hardware.cpu().threads);
    Team team(threads);
    const auto caches = list("caches");
    std::printf("| backend | heads | tokens | sequences | -mla | kernels |");
    for (const std::string& cache : caches)
        std::printf(" %s (limit %.0e) |", cache.c_str(), attention_limit(type_of(cache)));
    std::printf(" seconds |\n|---|---|---|---|---|---|");
    for (size_t i = 0; i <= caches.size(); ++i) std::printf("---|");
    std::printf("\n");

    size_t most_sequences = 0;
    for (const std::string& sequences : list("sequences"))
        most_sequences = std::max<size_t>(most_sequences, std::stoul(sequences));
    int runs = 0, wrong = 0;
    for (const std::string& heads : list("heads")) {
        for (const std::string& tokens : list("tokens")) {
            std::vector<int32_t> lengths = attention_lengths(std::stoi(tokens));
            if (most_sequences < lengths.size()) lengths.resize(most_sequences);
            AttentionData data(std::stol(heads), lengths, type_of(args["weights"].as<std::string>()), threads,
                               args["outlier"].as<float>());
            for (const std::string& name : list("backends")) {
                const Registry registry = Registry::load(plugins_up_to(name), hardware);
                const AttentionBackend backend{name, &registry, &hardware, &team};
                for (const std::string& sequences : list("sequences")) {
                    for (const std::string& variant : list("variants")) {
                        for (const std::string& kind : list("kinds")) {
                            std::string line, complaints;
                            std::set<std::string> ops;
                            double seconds = 0;
                            for (const std::string& cache : caches) {
                                AttentionCase asked{variant, kind == "flash", type_of(cache)};
                                asked.hadamard = args.contains("hadamard");
                                if (!asked.flash) asked.scratch_bytes = args["amb"].as<uint64_t>() << 20;
                                const auto result = run_attention(data, std::stoul(sequences), asked, backend);
                                const bool good = result.error <= attention_limit(asked.cache);
                                const std::string complaint = unlike(asked, result, name);
                                for (const AttentionNode& node : result.nodes)
                                    ops.insert(node.op.substr(0, node.op.find('_')));
                                line += fmt::format(" {:.1e}{} |", result.error, good ? "" : " **past the limit**");
                                complaints += complaint;
                                seconds += result.seconds;
                                ++runs;
                                wrong += !good || !complaint.empty();
                            }
                            std::string kernels;
                            for (const std::string& op : ops) kernels += (kernels.empty() ? "" : " + ") + op;
                            const std::string as = lowering_of({variant, kind == "flash"});
                            std::printf("| %s | %s | %s | %s | %s%s | %s | %s %.1f |%s\n", name.c_str(), heads.c_str(),
                                        tokens.c_str(), sequences.c_str(), variant.c_str(),
                                        as == variant ? "" : (" as " + as).c_str(), kernels.c_str(), line.c_str() + 1,
                                        seconds, complaints.c_str());
                            std::fflush(stdout);
                        }
                    }
                }
            }
        }
    }
    std::printf("\n%d runs, %d of them wrong\n", runs, wrong);
    return wrong == 0 ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "attention_matrix: %s\n", error.what());
    return 1;
}
