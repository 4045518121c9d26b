// Architectures of plugins: one list with the core's, and what a bad one cannot break.
#include "core/base/error.hpp"
#include "core/model/architectures.hpp"
#include "core/model/model.hpp"
#include "tests/goldens/golden_models.hpp"

#include <tessera/cpp/architecture.hpp>
#include <tessera/cpp/builder.hpp>
#include <tessera/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

namespace tessera::test {
namespace {

using sdk::attribute;
using testing::AllOf;
using testing::HasSubstr;

// A plugin whose architecture does what the test says.
struct Planted {
    using Measure = std::function<void(tsr_model*, tsr_model_sizes&)>;
    using Build = std::function<void(tsr_model*, const tsr_graph_options&, tsr_builder*)>;

    explicit Planted(const char* plugin = "planted", const char* name = "llama") {
        architecture.struct_size = sizeof architecture;
        architecture.context = this;
        architecture.name = name;
        architecture.measure = [](const tsr_architecture* self, tsr_model* model, tsr_model_sizes* sizes) {
            const auto& planted = *static_cast<const Planted*>(self->context);
            if (planted.throws) throw std::runtime_error("thrown by measure");
            return sdk::guarded([&] { planted.measure(model, *sizes); });
        };
        architecture.build = [](const tsr_architecture* self, tsr_model* model, const tsr_graph_options* options,
                                tsr_builder* builder) {
            const auto& planted = *static_cast<const Planted*>(self->context);
            return sdk::guarded([&] { planted.build(model, *options, builder); });
        };
        list.struct_size = sizeof list;
        list.count = 1;
        list.architectures = &entry;
        table.struct_size = sizeof table;
        table.context = this;
        table.abi_major = TSR_ABI_MAJOR;
        table.abi_minor = TSR_ABI_MINOR;
        table.name = plugin;
        table.version = "1";
        table.get_extension = [](const tsr_plugin* self, const char* tag) -> const void* {
            const auto& planted = *static_cast<const Planted*>(self->context);
            if (planted.extension_throws) throw 7;
            return std::string_view(tag) == TSR_ARCHITECTURES ? planted.extension : nullptr;
        };
    }
    Planted(const Planted&) = delete;
    Planted& operator=(const Planted&) = delete;

    bool throws = false, extension_throws = false;
    Measure measure = [](tsr_model* model, tsr_model_sizes& sizes) {
        const sdk::Model m(model);
        sizes.layers = m.integer("block_count");
        sizes.embedding = m.integer("embedding_length");
        sizes.vocabulary = m.extent("token_embd.weight", 1);
        sizes.context = m.integer("context_length");
    };
    // The rows of the embeddings, multiplied with the output matrix.
    Build build = [](tsr_model* model, const tsr_graph_options&, tsr_builder* builder) {
        const sdk::Model m(model);
        const sdk::Builder b(builder);
        const int64_t e = m.integer("embedding_length"), v = m.extent("token_embd.weight", 1);
        const tsr_value rows =
            b.add(TSR_OP_GET_ROWS, "rows", {m.matrix("token_embd.weight", {e, v}), b.input(TSR_INPUT_TOKENS)});
        const tsr_value wanted = b.add(TSR_OP_GET_ROWS, "wanted", {rows, b.input(TSR_INPUT_OUTPUT_ROWS)});
        m.set_layer(m.integer("block_count"));
        b.output(0, b.add(TSR_OP_MATMUL, "logits", {wanted, m.matrix("output.weight", {e, v})}));
    };

    tsr_architecture architecture{};
    const tsr_architecture* entry = &architecture;
    tsr_architectures list{};
    const tsr_architectures* extension = &list;
    tsr_plugin table{};
};

struct Outcome {
    tsr_code code = TSR_OK;
    std::string error;
    std::vector<std::string> notes;
};

Registry registry_of(std::initializer_list<const Planted*> planted, const std::vector<std::string>& prefer) {
    std::vector<const tsr_plugin*> tables;
    for (const Planted* one : planted) tables.push_back(&one->table);
    return Registry::of_tables(tables, prefer);
}

// Of llama-plain with the architecture of the plugin "planted", whose tensors may stay unused.
Outcome outcome(const Planted& planted, bool allow_unused = true) {
    const Registry registry = registry_of({&planted}, {"planted"});
    const gguf::GgufFile file = gguf::GgufFile::open(golden_model("llama-plain"));
    GraphLimits limits;
    limits.allow_unused = allow_unused;
    Outcome outcome;
    try {
        (void)read_model_info(file, registry);
        outcome.notes = build_model(file, registry, limits).notes;
    } catch (const Error& error) {
        outcome.code = error.code();
        outcome.error = error.what();
    }
    return outcome;
}

TEST(PluginArchitecture, IsUsedWhereTheConfigurationPrefersIt) {
    const Planted planted;
    const Outcome used = outcome(planted);
    EXPECT_EQ(used.error, "");
    EXPECT_THAT(used.notes, testing::Contains("the architecture 'llama' is that of the plugin planted"));

    // Else the core's own of that name is.
    const gguf::GgufFile file = gguf::GgufFile::open(golden_model("llama-plain"));
    const Registry registry = registry_of({&planted}, {});
    EXPECT_THAT(build_model(file, registry, {}).notes, testing::Not(testing::Contains(HasSubstr("of the plugin"))));
    EXPECT_THAT(registry.plugins()[0].architectures, testing::ElementsAre("llama"));
}

TEST(PluginArchitecture, UnknownOnesListThoseOfPluginsToo) {
    const Planted planted("planted", "brand-new");
    const Registry registry = registry_of({&planted}, {});
    const gguf::Override other{"general.architecture", std::string("unheard-of")};
    const gguf::GgufFile file = gguf::GgufFile::open(golden_model("llama-plain"), {&other, 1});
    for (const bool info : {true, false}) {
        try {
            if (info) {
                (void)read_model_info(file, registry);
            } else {
                (void)build_model(file, registry, {});
            }
            FAIL() << "the file was taken";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), TSR_UNSUPPORTED);
            EXPECT_THAT(error.what(), AllOf(HasSubstr("'unheard-of' is not known"), HasSubstr("brand-new"),
                                            HasSubstr("a plugin can add it (docs/plugins.md")));
            for (const Architecture* own : own_architectures())
                EXPECT_THAT(error.what(), HasSubstr(std::string(own->names.front())));
        }
    }
}

TEST(PluginArchitecture, OfTwoPluginsTheFirstCounts) {
    const Planted one("one", "brand-new"), two("two", "brand-new");
    const Registry registry = registry_of({&one, &two}, {"two"});
    EXPECT_EQ(registry.find_architecture("brand-new"), &two.architecture);
    EXPECT_THAT(registry.conflicts(),
                testing::ElementsAre(HasSubstr("architecture brand-new: two and one provide it")));
}

// What is wrong with a list takes the list away, and nothing else.
TEST(PluginArchitecture, ABadListIsLeftOut) {
    struct Case {
        std::string_view says;
        std::function<void(Planted&)> spoil;
    };
    const Case cases[] = {
        {"threw", [](Planted& p) { p.extension_throws = true; }},
        {"struct_size is 4", [](Planted& p) { p.list.struct_size = 4; }},
        {"missing or too long", [](Planted& p) { p.list.count = std::numeric_limits<uint32_t>::max(); }},
        {"missing or too long", [](Planted& p) { p.list.architectures = nullptr; }},
        {"is NULL", [](Planted& p) { p.entry = nullptr; }},
        {"struct_size is 8", [](Planted& p) { p.architecture.struct_size = 8; }},
        {"expected a name", [](Planted& p) { p.architecture.name = nullptr; }},
        {"expected a name", [](Planted& p) { p.architecture.name = "two words"; }},
        {"measure or build is missing", [](Planted& p) { p.architecture.build = nullptr; }},
        {"measure or build is missing", [](Planted& p) { p.architecture.measure = nullptr; }},
    };
    for (const Case& one : cases) {
        SCOPED_TRACE(one.says);
        Planted planted;
        one.spoil(planted);
        const Planted good("good", "brand-new");
        const Registry registry = registry_of({&planted, &good}, {});
        EXPECT_EQ(registry.plugins()[0].state, PluginState::kChosen);
        EXPECT_THAT(registry.plugins()[0].left_out,
                    testing::ElementsAre(AllOf(HasSubstr("its architectures: "), HasSubstr(std::string(one.says)))));
        EXPECT_EQ(registry.architectures().size(), 1u);
    }
}

TEST(PluginArchitecture, FailuresNamePluginAndFunction) {
    Planted planted;
    planted.measure = [](tsr_model*, tsr_model_sizes&) { throw sdk::Failure(TSR_UNSUPPORTED, "not this file"); };
    EXPECT_EQ(outcome(planted).code, TSR_UNSUPPORTED);
    EXPECT_THAT(outcome(planted).error,
                AllOf(HasSubstr("plugin planted: measure of architecture llama"), HasSubstr("not this file")));
    planted.throws = true;
    EXPECT_THAT(outcome(planted).error, AllOf(HasSubstr("plugin planted: measure"), HasSubstr("thrown by measure")));
}

TEST(PluginArchitecture, WhatItDoesNotTakeRefusesTheFile) {
    const Planted planted;
    const Outcome refused = outcome(planted, false);
    EXPECT_EQ(refused.code, TSR_UNSUPPORTED);
    EXPECT_THAT(refused.error, AllOf(HasSubstr("tensors of the file would not be used"), HasSubstr("blk.0.")));

    Planted knows;
    knows.build = [&](tsr_model* model, const tsr_graph_options& options, tsr_builder* builder) {
        planted.build(model, options, builder);
        sdk::check(model->leave_out(model, "^(blk\\.|output_norm)", "this test has no use for them"));
        const sdk::Model m(model);
        for (const char* key : {"feed_forward_length", "attention.head_count", "attention.head_count_kv",
                                "rope.dimension_count", "vocab_size"})
            (void)m.integer_or(key, 1);
        for (const char* key : {"attention.layer_norm_rms_epsilon", "rope.freq_base"}) (void)m.number_or(key, 1);
    };
    const Outcome all = outcome(knows, false);
    EXPECT_EQ(all.error, "");
    EXPECT_THAT(all.notes, testing::Contains(HasSubstr("this test has no use for them")));
}

TEST(PluginArchitecture, ImpossibleSizesAreRefused) {
    constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
    struct Case {
        int64_t tsr_model_sizes::*size;
        std::string_view says;
    };
    for (const Case& one : {Case{&tsr_model_sizes::layers, "layers"}, Case{&tsr_model_sizes::embedding, "elements"},
                            Case{&tsr_model_sizes::vocabulary, "tokens"}, Case{&tsr_model_sizes::context, "context"},
                            Case{&tsr_model_sizes::experts_used, "experts"}}) {
        for (const int64_t value : {kHuge, int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
            Planted planted;
            planted.measure = [&, usual = planted.measure](tsr_model* model, tsr_model_sizes& sizes) {
                usual(model, sizes);
                sizes.*one.size = value;
            };
            EXPECT_EQ(outcome(planted).code, TSR_CORRUPT_DATA);
            EXPECT_THAT(outcome(planted).error,
                        AllOf(HasSubstr("measure of architecture llama"), HasSubstr(std::string(one.says)),
                              HasSubstr(std::to_string(value))));
        }
    }
    Planted more;  // than there are rows of embeddings
    more.measure = [usual = more.measure](tsr_model* model, tsr_model_sizes& sizes) {
        usual(model, sizes);
        sizes.vocabulary += 1;
    };
    EXPECT_THAT(outcome(more).error, HasSubstr("its logits are not f32 rows"));
}

// Each calls the tables with what no architecture should, and gets an error that says so.
TEST(PluginArchitecture, BadGraphsAreRefused) {
    struct Case {
        std::string_view says;
        Planted::Build build;
    };
    const auto graph = [](auto&& body) {
        return [=](tsr_model* model, const tsr_graph_options&, tsr_builder* builder) {
            body(sdk::Model(model), sdk::Builder(builder), *model, *builder);
        };
    };
    using M = const sdk::Model&;
    using B = const sdk::Builder&;
    const Case cases[] = {
        {"it gave no logits", graph([](M, B, tsr_model&, tsr_builder&) {})},
        {"its logits are not f32 rows",
         graph([](M, B b, tsr_model&, tsr_builder&) { b.output(0, b.input(TSR_INPUT_TOKENS)); })},
        {"its logits are not f32 rows", graph([](M m, B b, tsr_model&, tsr_builder&) {
             b.output(0, m.matrix("output.weight", {64, 288}));
         })},
        {"no output 1", graph([](M, B b, tsr_model&, tsr_builder&) { b.output(1, b.input(0)); })},
        {"999 is no tensor", graph([](M, B b, tsr_model&, tsr_builder&) { b.output(0, 999); })},
        {"no op 'no_such_op'", graph([](M, B b, tsr_model&, tsr_builder&) { b.add("no_such_op", "x", {b.input(0)}); })},
        {"a node of stage 1", graph([](M m, B b, tsr_model&, tsr_builder&) {
             b.add(TSR_OP_CONVERT, "x", {m.matrix("output.weight", {64, 288})}, {attribute("type", int64_t{0})}, 0,
                   TSR_STAGE_INIT);
         })},
        {"a list that is NULL", graph([](M, B, tsr_model&, tsr_builder& b) {
             sdk::check(b.add(&b, TSR_STAGE_RUN, TSR_OP_ADD, "x", nullptr, 0, nullptr, 2, nullptr, 1));
         })},
        {"without an op", graph([](M, B, tsr_model&, tsr_builder& b) {
             sdk::check(b.add(&b, TSR_STAGE_RUN, nullptr, nullptr, nullptr, 0, nullptr, 0, nullptr, 0));
         })},
        {"a buffer without",
         graph([](M, B, tsr_model&, tsr_builder& b) { sdk::check(b.buffer(&b, nullptr, nullptr)); })},
        {"", graph([](M, B b, tsr_model&, tsr_builder&) {
             (void)b.buffer({std::numeric_limits<int64_t>::max(), 9}, TSR_RANGE_FIXED);
         })},
        {"a view without",
         graph([](M, B, tsr_model&, tsr_builder& b) { sdk::check(b.view(&b, 1, nullptr, nullptr)); })},
        {"blk.9.attn_q.weight is missing", graph([](M m, B, tsr_model&, tsr_builder&) {
             (void)m.matrix("blk.9.attn_q.weight", {64, 64});
         })},
        {"the metadata ask for [64, 65]", graph([](M m, B, tsr_model&, tsr_builder&) {
             (void)m.matrix("blk.0.attn_q.weight", {64, 65});
         })},
        {"f32, f16 or bf16 is needed|has the shape",
         graph([](M m, B, tsr_model&, tsr_builder&) { (void)m.vector("blk.0.attn_q.weight", 64); })},
        {"1 to 4 dimensions", graph([](M, B, tsr_model& m, tsr_builder&) {
             tsr_value value = 0;
             const int64_t dims[9] = {};
             sdk::check(m.weight(&m, "output.weight", dims, 9, 0, &value));
         })},
        {"1 to 4 dimensions", graph([](M, B, tsr_model& m, tsr_builder&) {
             sdk::check(m.weight(&m, "output.weight", nullptr, 2, 0, nullptr));
         })},
        {"flags 0x80", graph([](M, B, tsr_model& m, tsr_builder&) {
             tsr_value value = 0;
             const int64_t dims[] = {64, 288};
             sdk::check(m.weight(&m, "output.weight", dims, 2, 0x80, &value));
         })},
        {"the name of a weight is missing", graph([](M, B, tsr_model& m, tsr_builder&) {
             tsr_value value = 0;
             const int64_t dims[] = {64, 288};
             sdk::check(m.weight(&m, nullptr, dims, 2, 0, &value));
         })},
        {"layer -1 of 3", graph([](M m, B, tsr_model&, tsr_builder&) { m.set_layer(-1); })},
        {"layer 4 of 3", graph([](M m, B, tsr_model&, tsr_builder&) { m.set_layer(4); })},
        {"llama.no_such_key' is missing",
         graph([](M m, B, tsr_model&, tsr_builder&) { (void)m.integer("no_such_key"); })},
        {"the name of a key is missing", graph([](M, B, tsr_model& m, tsr_builder&) {
             int64_t value = 0;
             sdk::check(m.integer(&m, nullptr, TSR_REQUIRED, 1, &value));
         })},
        {"there is no place", graph([](M, B, tsr_model& m, tsr_builder&) {
             sdk::check(m.integer(&m, "block_count", TSR_REQUIRED, 1, nullptr));
         })},
        {"there is no place for 4294967295 values", graph([](M, B, tsr_model& m, tsr_builder&) {
             int64_t value = 0;
             sdk::check(m.integers(&m, "block_count", TSR_REQUIRED, 1, UINT32_MAX, &value));
         })},
        {"is not a regular expression", graph([](M, B, tsr_model& m, tsr_builder&) {
             sdk::check(m.leave_out(&m, "(", "a pattern that is none"));
             throw sdk::Failure(TSR_INTERNAL, "taken");
         })},
        {"a graph that never ends|more than a model needs", graph([](M, B b, tsr_model&, tsr_builder&) {
             while (true) (void)b.rows(b.input(0), TSR_RANGE_ROWS);
         })},
    };
    for (const Case& one : cases) {
        SCOPED_TRACE(one.says);
        Planted planted;
        planted.build = one.build;
        const Outcome result = outcome(planted);
        EXPECT_NE(result.code, TSR_OK);
        EXPECT_THAT(result.error, HasSubstr("planted"));
        const size_t bar = one.says.find('|');
        const std::string first(one.says.substr(0, bar)),
            second(bar == std::string_view::npos ? first : one.says.substr(bar + 1));
        EXPECT_THAT(result.error, testing::AnyOf(HasSubstr(first), HasSubstr(second)));
    }
}

TEST(PluginArchitecture, ReadsOneValueALayer) {
    Planted planted;
    std::vector<int64_t> read;
    planted.build = [&, usual = planted.build](tsr_model* model, const tsr_graph_options& options,
                                               tsr_builder* builder) {
        usual(model, options, builder);
        read.assign(3, 0);
        sdk::check(model->integers(model, "feed_forward_length", TSR_REQUIRED, 1, 3, read.data()));
        int64_t absent[2] = {7, 7};
        sdk::check(model->integers(model, "absent", TSR_OPTIONAL, 1, 2, absent));
        EXPECT_EQ(absent[1], 7);
        EXPECT_EQ(sdk::Model(model).text_or("absent", "otherwise"), "otherwise");
    };
    EXPECT_EQ(outcome(planted).error, "");
    EXPECT_EQ(read, (std::vector<int64_t>{96, 96, 96}));
}

// Its graphs are asked for what the user asked for.
TEST(PluginArchitecture, GetsTheReductionOfExperts) {
    Planted planted;
    tsr_graph_options got{};
    planted.build = [&, usual = planted.build](tsr_model* model, const tsr_graph_options& options,
                                               tsr_builder* builder) {
        got = options;
        usual(model, options, builder);
    };
    const Registry registry = registry_of({&planted}, {"planted"});
    GraphLimits limits;
    limits.allow_unused = true;
    limits.experts = {3, 0.5};
    (void)build_model(gguf::GgufFile::open(golden_model("llama-plain")), registry, limits);
    EXPECT_EQ(got.keep_at_least, 3u);
    EXPECT_EQ(got.keep_ratio, 0.5);
}

}  // namespace
}  // namespace tessera::test
