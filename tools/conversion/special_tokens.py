"""The ids of special tokens (BOS, EOS and so on), and whether texts begin and end with them, as keys of GGUF."""
import gguf

from conversion.checkpoint import read_json


def add_special_tokens(w, folder, tokens):
    """What config.json, generation_config.json, tokenizer.json and tokenizer_config.json say; `tokens` of all ids, for texts without one."""
    vocabulary = gguf.SpecialVocab(folder, load_merges=False, n_vocab=len(tokens))
    path = folder / "tokenizer_config.json"
    told = read_json(path) if path.exists() else {}
    for name in vocabulary.special_token_types:
        text = told.get(name + "_token")
        text = text.get("content") if isinstance(text, dict) else text
        if name not in vocabulary.special_token_ids and text in tokens:
            vocabulary.special_token_ids[name] = tokens.index(text)
    vocabulary.add_to_gguf(w)
