"""Writes a model that says what a script has: each token is followed by one other, whatever was before.

A Llama of one layer whose attention and feed-forward network add nothing: a token's embedding is an axis of its own, and the output matrix
leads from each axis to the next token. So a server can be seen to handle what only large models say, calls of tools above all.
"""

import gguf
import numpy

WIDTH, HEADS, FEED_FORWARD = 512, 4, 32
BEGIN, END = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"


def byte_tokens():
    """The 256 bytes as texts, as GPT-2's vocabularies have them."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    texts = {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(others)}
    return [texts[b] for b in range(256)]


def write_model(path, chains, name="scripted", template=None, keys=None, context=4096, lacks=""):
    """`chains`: lists of texts, each of which is followed by the next one of its list, wherever it is. What begins with '<' is a control
    token, and the last one of a list is followed by the end. `template`: the file's chat template. `keys`: called with the writer and the numbers of tokens,
    writes more keys. `lacks`: ASCII characters that the vocabulary cannot spell. Texts must be such that no prompt has them by chance."""
    of_byte = byte_tokens()
    spoken = list(dict.fromkeys(text for chain in chains for text in chain))
    controls = list(dict.fromkeys([BEGIN, END, "<｜User｜>", "<｜Assistant｜>"] + [text for text in spoken if text.startswith("<")]))
    words = [text for text in spoken if not text.startswith("<")]
    words.insert(0, "\x00\x01")  # A vocabulary of this kind has at least one merge; no prompt has these bytes.
    spelt = [of_byte[0] * (2 + lacks.index(chr(b))) if chr(b) in lacks else text for b, text in enumerate(of_byte)]
    tokens = spelt + ["".join(of_byte[b] for b in word.encode()) for word in words] + controls
    number = {text: 256 + i for i, text in enumerate(words)} | {text: 256 + len(words) + i for i, text in enumerate(controls)}
    assert len(set(tokens)) == len(tokens) <= WIDTH, "a text is there twice, or there are too many"

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(name)
    writer.add_block_count(1)
    writer.add_context_length(context)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("deepseek-v3")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.NORMAL] * (256 + len(words)) + [gguf.TokenType.CONTROL] * len(controls))
    writer.add_token_merges([f"{of_byte[0]} {of_byte[1]}"])
    writer.add_bos_token_id(number[BEGIN])
    writer.add_eos_token_id(number[END])
    if template:
        writer.add_chat_template(template)
    if keys:
        keys(writer, number)

    output = numpy.zeros((len(tokens), WIDTH), numpy.float32)
    following = numpy.full(len(tokens), number[END])
    for chain in chains:
        for text, after in zip(chain, [*chain[1:], END]):
            following[number[text]] = number[after]
    output[following, numpy.arange(len(tokens))] = 1
    ones = numpy.ones(WIDTH, numpy.float32)
    writer.add_tensor("token_embd.weight", numpy.eye(len(tokens), WIDTH, dtype=numpy.float32))
    writer.add_tensor("output.weight", output)
    writer.add_tensor("output_norm.weight", ones)
    writer.add_tensor("blk.0.attn_norm.weight", ones)
    writer.add_tensor("blk.0.ffn_norm.weight", ones)
    for part, shape in (("attn_q", (WIDTH, WIDTH)), ("attn_k", (WIDTH, WIDTH)), ("attn_v", (WIDTH, WIDTH)), ("attn_output", (WIDTH, WIDTH)),
                        ("ffn_gate", (FEED_FORWARD, WIDTH)), ("ffn_up", (FEED_FORWARD, WIDTH)), ("ffn_down", (WIDTH, FEED_FORWARD))):
        writer.add_tensor(f"blk.0.{part}.weight", numpy.zeros(shape, numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
