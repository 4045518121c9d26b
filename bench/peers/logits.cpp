// What bench/model_logits.cpp writes, by ik_llama.cpp: logits FILE TOKENS OUT [-ger] [-mla], with the prompt's token
// numbers on standard input; see there. The cache is in float32, without flash attention, so that weights of float32
// are computed in it. -ger: experts are chosen by groups where it can. -mla: attention with the absorbed matrices.
//
//     g++ -std=c++20 -O2 bench/peers/logits.cpp -I IK/include -I IK/ggml/include -L IK/build/src -L IK/build/ggml/src
//     -lllama -lggml -o logits
#include <llama.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

int main(int argc, char** argv) {
    const auto asked = [&](const char* flag) {
        return std::any_of(argv + std::min(argc, 4), argv + argc,
                           [&](const char* a) { return std::strcmp(a, flag) == 0; });
    };
    if (argc < 4) {
        std::fprintf(stderr, "usage: logits FILE TOKENS OUT [-ger] [-mla] < numbers\n");
        return 2;
    }
    std::vector<llama_token> prompt{std::istream_iterator<llama_token>(std::cin), {}};
    const long tokens = std::atol(argv[2]);
    constexpr int kRows = 64;
    llama_backend_init();
    llama_model_params loading = llama_model_default_params();
    loading.use_mmap = false;
    llama_model* model = llama_model_load_from_file(argv[1], loading);
    if (!model) return 1;
    llama_context_params params = llama_context_default_params();
    params.n_ctx = static_cast<uint32_t>(prompt.size()) + static_cast<uint32_t>(std::max(tokens, 1L));
    params.n_batch = params.n_ubatch = kRows;
    params.n_threads = params.n_threads_batch = 2;
    params.type_k = GGML_TYPE_F32;
    params.type_v = GGML_TYPE_F16;
    params.flash_attn = false;
    params.mla_attn = asked("-mla") ? 2 : 0;
    params.grouped_expert_routing = asked("-ger");
    llama_context* context = llama_init_from_model(model, params);
    if (!context) return 1;
    const auto vocabulary = static_cast<size_t>(llama_n_vocab(model));
    std::ofstream out(argv[3], std::ios::binary);
    llama_batch batch = llama_batch_init(kRows, 0, 1);
    llama_token chosen = 0;
    llama_pos position = 0;
    const auto feed = [&](const llama_token* rows, int count) {
        batch.n_tokens = count;
        for (int i = 0; i < count; ++i) {
            batch.token[i] = rows[i];
            batch.pos[i] = position++;
            batch.n_seq_id[i] = 1;
            batch.seq_id[i][0] = 0;
            batch.logits[i] = 1;
        }
        if (llama_decode(context, batch) != 0) return false;
        for (int i = 0; i < count; ++i) {
            const float* logits = llama_get_logits_ith(context, i);
            out.write(reinterpret_cast<const char*>(logits), static_cast<std::streamsize>(vocabulary * sizeof(float)));
            chosen = static_cast<llama_token>(std::max_element(logits, logits + vocabulary) - logits);
        }
        return true;
    };
    for (size_t at = 0; at < prompt.size(); at += kRows)
        if (!feed(&prompt[at], static_cast<int>(std::min<size_t>(kRows, prompt.size() - at)))) return 1;
    for (long i = 1; i < tokens; ++i) {
        const llama_token next = chosen;
        if (!feed(&next, 1)) return 1;
    }
    return out.flush() ? 0 : 1;
}
