// A service over the bundled model.
#pragma once

#include "core/session/service.hpp"
#include "core/text/vocabulary_from_gguf.hpp"
#include "tests/support.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>

namespace tessera::session {

struct Result {
    std::string text;
    Answer answer;
    uint32_t order = 0;  // among those that ended
};

class ServiceTest : public testing::Test {
  protected:
    void load(uint32_t rows, uint32_t sequences, uint32_t context, uint32_t threads = 0,
              uint64_t scratch_bytes = EngineOptions().scratch_bytes) {
        EngineOptions options;
        options.scratch_bytes = scratch_bytes;
        options.context = context;
        options.rows = rows;
        options.sequences = sequences;
        options.threads = threads;
        model_ = std::make_unique<test::LoadedModel>(TSR_TEST_MODEL, options, test::plugins_without({}));
        tokenizer_ = std::make_unique<text::Tokenizer>(text::vocabulary_from_gguf(engine().file().metadata()));
    }
    Engine& engine() { return *model_->engine; }

    Request request(const std::string& prompt, Result& result, uint32_t length = 24) {
        Request made;
        made.prompt = tokenizer_->encode(prompt, {.add_special = true, .parse_special = true});
        made.sampling.temperature = 0;
        made.max_new_tokens = length;
        made.on_text = [&result](std::string_view text) { result.text += text; };
        made.on_finish = [this, &result](const Answer& answer) {
            result.answer = answer;
            result.order = ++ended_;
        };
        return made;
    }

    static std::string question(int i) {
        static const char* const kinds[] = {"Count from 1 to {} in German.", "What is 3 plus {}?",
                                            "Count from 1 to {} in French.", "Say hello {} times.", "Repeat: box {}."};
        std::string kind = kinds[i % 5];
        kind.replace(kind.find("{}"), 2, std::to_string(2 + i / 5 % 9));
        std::string text = "<｜User｜>";
        for (int k = 0; k < i % 7; ++k)
            text += "The key of box " + std::to_string(k * i) + " is " + std::to_string(k) + ". ";
        return text + kind + "<｜Assistant｜>";
    }

    // Runs a service over `use`, and expects all pages to be free or in the tree afterwards.
    template <typename Use>
    ServiceStatus serve(ServiceOptions options, Use&& use) {
        Service service(engine(), *tokenizer_, std::move(options));
        std::thread thread([&] { service.run(); });
        use(service);
        service.close();
        thread.join();
        ServiceStatus status = service.status();
        EXPECT_EQ(status.free_pages + status.prefix_pages, status.pages);
        EXPECT_EQ(status.evictable_pages, status.prefix_pages);
        return status;
    }

    std::unique_ptr<test::LoadedModel> model_;
    std::unique_ptr<text::Tokenizer> tokenizer_;
    uint32_t ended_ = 0;
};

}  // namespace tessera::session
