#!/usr/bin/env python3
"""Measure a demo model file, by the weights that it holds, and record its answers.

    python3 evaluate.py ../../models/demo-tessera-10m.gguf
    python3 evaluate.py ../../models/demo-tessera-10m.gguf --record ../../models/prompts.json

An answer counts as right when every token of it, and the end after it, is the likeliest one: what greedy decoding
gives. The margin is the smallest lead, in logits, of a right token over the best other one. `--noise` adds Gaussian
noise of that share to activations, queries and cache, as a stand-in for coarse caches and 8-bit activations.
"""
import argparse
import json
import random
from pathlib import Path

import torch

import corpus
import export
import tokenizer
from model import generate

FIXED = [  # asked in this order for the record
    "Count from 1 to 10 in French.", "Count from 1 to 10 in English.", "Count from 1 to 10 in German.",
    "Count from 1 to 10 in Spanish.", "Count from 1 to 10 in Italian.", "Count down from 10 to 1 in French.", "Count from 1 to 10.", "Count from 10 to 20.",
    "Count down from 20 to 10.", "Count from 5 to 50 in steps of 5.", "Count from 2 to 20 in steps of 2 in German.",
    "What is 7 + 5?", "What is 10 - 8?", "What is 6 * 7?", "What is the capital of France?", "What is the capital of Japan?",
    "Repeat: The quick dog watches the silver lamp.", "Copy: 3141592",
    "Hello!", "Who are you?", "What is Tessera?", "What can you do?", "What is a plugin?", "Thank you."]
PLACE = "{key}"


@torch.no_grad()
def judge(model, vocabulary, question, answer, noise=0.0):
    """(whether greedy decoding gives the answer, the margin, tokens of the prompt)"""
    prompt = tokenizer.encode_prompt(vocabulary, question)
    wanted = tokenizer.encode(vocabulary, answer) + [tokenizer.EOS]
    logits = model(torch.tensor([prompt + wanted[:-1]]), noise)[0][0, len(prompt) - 1:]
    right = logits.gather(1, torch.tensor(wanted)[:, None])[:, 0]
    other = logits.scatter(1, torch.tensor(wanted)[:, None], -1e9).max(1).values
    margin = float((right - other).min())
    return margin > 0, margin, len(prompt)


def report(name, results):
    margins = sorted(m for _, m, _ in results)
    right = sum(ok for ok, _, _ in results)
    print(f"{name:24s} {right:4d} of {len(results):4d}   margin: least {margins[0]:6.2f}, 5 % {margins[len(margins) // 20]:6.2f}, "
          f"median {margins[len(margins) // 2]:6.2f}   prompt tokens to {max(n for _, _, n in results)}", flush=True)


def key_texts(vocabulary, rng, number, tokens):
    """Prompts with a place for the key, which is told about `tokens` tokens before the end."""
    out = []
    while len(out) < number:
        words = int(tokens / 1.16)
        text = " ".join(corpus.filler(rng, rng.randint(0, 60)) + [corpus.telling(None, PLACE)] + corpus.filler(rng, words))
        text += " " + corpus.asking(None)
        if abs(len(tokenizer.encode(vocabulary, text[text.index(PLACE):])) - tokens) <= 20:
            out.append(text)
    return out


def record(model, vocabulary, path):
    rng = random.Random(2024)
    fixed = []
    for question in FIXED:
        ids = generate(model, tokenizer.encode_prompt(vocabulary, question), tokenizer.EOS)
        answer = vocabulary.decode([i for i in ids if i != tokenizer.EOS])
        fixed.append(dict(prompt=question, answer=answer, ended=ids[-1] == tokenizer.EOS,
                          margin=round(judge(model, vocabulary, question, answer)[1], 2)))
        print(f"{question}\n    {answer}")
    languages = sorted(corpus.NUMBERS)
    forms = [
        dict(form="Count from {a} to {b} in {language}.", where=dict(a="0..20", b="0..20", language=languages),
             note="up to 12 numbers; 'Count down from {a} to {b} in {language}.' too; ' in steps of 2' (even numbers) before ' in {language}'",
             example=corpus.counting(3, 7, 1, "Spanish")),
        dict(form="Count from {a} to {b}.", where=dict(a="0..99", b="0..99"),
             note="up to 12 numbers; 'Count down from {a} to {b}.' too; ' in steps of {2|5|10}' (multiples of it) before the full stop",
             example=corpus.counting(40, 50, 2, None)),
        dict(form="What is {a} + {b}?", where=dict(a="0..10", b="0..10"), example=("What is 9 + 4?", "9 + 4 = 13")),
        dict(form="What is {a} - {b}?", where=dict(a="0..10", b="0..a"), example=("What is 9 - 4?", "9 - 4 = 5")),
        dict(form="What is {a} * {b}?", where=dict(a="0..10", b="0..10"), example=("What is 9 * 4?", "9 * 4 = 36")),
        dict(form="What is the capital of {country}?", where=dict(country=sorted(corpus.CAPITALS)),
             example=("What is the capital of Norway?", "The capital of Norway is Oslo.")),
        dict(form="Repeat: {text}", where=dict(text="3 to 8 digits, or a sentence of the corpus"),
             note="'Copy: {text}' and 'Say: {text}' too", example=("Copy: The story is old and the song is young.", "The story is old and the song is young.")),
        dict(form="... The key is {key}. ... What is the key?", where=dict(key="four or five digits"),
             note="filler sentences before and after; 'The key of the {holder} is {key}.' with several holders too",
             example=("The key is 4711. What is the key?", "The key is 4711.")),
        dict(form="Remember: The key is {key}.", where=dict(key="four or five digits"), note="asked for in a later turn",
             example=("Remember: The key is 4711.", "I will remember it."))]
    forms += [dict(form=ways[0], note="or: " + " ".join(ways[1:]), example=(ways[0], answer)) for ways, answer in corpus.TALK]
    path.write_text(json.dumps(dict(
        about="Forms that the bundled model knows, and its greedy answers to fixed prompts, each in a chat of one turn, "
              "computed in f32 from the weights in the file. margin: least lead of an answer's token, in logits. "
              "keys: put each code in the place {key} of texts[i % number of texts]; answer gives what must come back.",
        model="demo-tessera-10m.gguf", forms=forms, answers=fixed,
        keys=dict(answer=corpus.telling(None, PLACE), codes=[corpus.code(rng) for _ in range(100)],
                  texts=key_texts(vocabulary, rng, 8, 400))),
        indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("file", type=Path)
    ap.add_argument("-n", type=int, default=100, help="samples of each form")
    ap.add_argument("--seed", type=int, default=7)
    ap.add_argument("--noise", type=float, nargs="*", default=[0.0, 0.01, 0.02])
    ap.add_argument("--tokens", type=int, nargs="*", default=[400], help="distances at which keys are asked for")
    ap.add_argument("--record", type=Path, help="write prompts.json")
    ap.add_argument("--show", action="store_true", help="print what was answered wrong")
    o = ap.parse_args()
    torch.set_num_threads(2)
    torch.manual_seed(o.seed)
    model, vocabulary = export.read(o.file)
    if o.record:
        record(model, vocabulary, o.record)
    for noise in o.noise:
        print(f"noise {noise}")
        for name, make in corpus.TASKS.items():
            rng, results = random.Random(o.seed), []
            for _ in range(o.n):
                question, answer = make(rng)
                results.append(judge(model, vocabulary, question, answer, noise))
                if o.show and not results[-1][0]:
                    ids = generate(model, tokenizer.encode_prompt(vocabulary, question), tokenizer.EOS, 60)
                    print(f"  {question} -> {vocabulary.decode(ids)} (wanted {answer})")
            report(name, results)
        for tokens in o.tokens:
            rng, results = random.Random(o.seed), []
            for text in key_texts(vocabulary, rng, o.n, tokens):
                key = corpus.code(rng)
                results.append(judge(model, vocabulary, text.replace(PLACE, key), corpus.telling(None, key), noise))
            report(f"key, {tokens} tokens back", results)


if __name__ == "__main__":
    main()
