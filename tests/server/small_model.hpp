// What requests need of the bundled model, without an engine.
#pragma once

#include "apps/server/model_text.hpp"

namespace tessera::server {

// `format`: of chats, by name.
inline ModelText small_model(const char* format = "qwen3") {
    static const gguf::GgufFile file = gguf::GgufFile::open(TSR_TEST_MODEL);
    ModelText made;
    made.name = "test";
    made.context = 512;
    made.tokenizer = make_tokenizer(file);
    made.structure = std::make_unique<structure::Helper>(*made.tokenizer);
    made.writer = std::make_unique<ChatWriter>(file, *made.tokenizer, format);
    return made;
}

}  // namespace tessera::server
