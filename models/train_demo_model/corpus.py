"""The corpus of the demo model: every text it ever sees is made here, from a seed.

A task is a pair (what the user says, what the model answers). A dialogue is a list of such pairs. Only answers
are learned from; what the user says is context. Nothing is downloaded.
"""
import random

NUMBERS = {
    "English": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
               "seventeen eighteen nineteen twenty",
    "French": "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept "
              "dix-huit dix-neuf vingt",
    "German": "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn "
              "siebzehn achtzehn neunzehn zwanzig",
    "Spanish": "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis "
               "diecisiete dieciocho diecinueve veinte",
    "Italian": "zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici "
               "sedici diciassette diciotto diciannove venti",
}
NUMBERS = {language: words.split() for language, words in NUMBERS.items()}

CAPITALS = dict(zip(
    "France Germany Spain Italy Portugal Austria Switzerland Belgium Poland Hungary Greece Norway Sweden Finland "
    "Denmark Ireland England Russia Egypt Kenya Japan China India Canada".split(),
    "Paris Berlin Madrid Rome Lisbon Vienna Bern Brussels Warsaw Budapest Athens Oslo Stockholm Helsinki "
    "Copenhagen Dublin London Moscow Cairo Nairobi Tokyo Beijing Delhi Ottawa".split()))

TALK = [  # (ways to say it, the answer)
    (["Hello.", "Hello!", "Hi.", "Hi!", "Good morning.", "Good evening."],
     "Hello! I am the demo model of Tessera. How can I help?"),
    (["How are you?", "How are you today?", "How do you do?"], "I am fine, thank you. Every weight is in its place."),
    (["Who are you?", "What are you?", "What is your name?", "Tell me who you are."],
     "I am the demo model of Tessera, a small language model with three layers."),
    (["What is Tessera?", "Tell me about Tessera.", "What does Tessera do?", "Explain Tessera."],
     "Tessera is a runtime for large language models. It reads a GGUF file and answers on the hardware that you have."),
    (["Why is it called Tessera?", "What does the name Tessera mean?", "What is a tessera?"],
     "A tessera is one small piece of a mosaic. Many small plugins make one picture."),
    (["What is a plugin?", "What do plugins do?", "What is a plugin in Tessera?"],
     "A plugin is a library that brings kernels or devices. Tessera picks the best one that fits and says why."),
    (["What is a GGUF file?", "What is GGUF?"], "A GGUF file holds the weights and the vocabulary of a model."),
    (["How big are you?", "How large are you?", "How many weights do you have?"],
     "I have about ten million weights, each stored in eight bits."),
    (["Who made you?", "Where do you come from?", "How were you trained?"],
     "I was trained for Tessera on two processor cores, on texts that a script wrote."),
    (["What can you do?", "What do you know?", "Help.", "Help!", "What can I ask you?"],
     "I can count in five languages, do small sums, name capitals, copy text and remember a key."),
    (["Thank you.", "Thanks!", "Thanks.", "Thank you very much."], "You are welcome."),
    (["Goodbye.", "Bye.", "Bye!", "See you later."], "Goodbye! Come back soon."),
    (["Is Tessera free?", "What is the licence of Tessera?", "May I use Tessera?"],
     "Yes, Tessera is free software under the MIT licence."),
    (["Does Tessera need a GPU?", "Do I need a GPU?", "Can Tessera run without a GPU?"],
     "No. Tessera runs on a processor alone, and it can use a GPU when there is one."),
]

NOUNS = ("river mountain garden window forest village bridge market station harbour island kitchen teacher farmer "
         "doctor sailor painter child dog cat horse bird fish tree flower stone road house letter book song story "
         "table chair lamp clock boat train winter summer morning evening rain snow wind cloud star moon field "
         "street town school").split()
ADJECTIVES = ("old young small large quiet bright dark cold warm green blue red white black yellow happy tired slow "
              "quick clever kind strange narrow wide tall empty heavy soft wooden silver").split()
VERBS = ("watches follows finds likes remembers paints visits carries leaves crosses hears sees needs builds opens "
         "closes passes meets loves forgets").split()
PLACES = "near behind under above beside before after without".split()
HOLDERS = ("garden cellar tower library bakery castle museum office stable chapel cabin vault theatre palace mill "
           "barn school ship lighthouse kitchen").split()
SYSTEM = ["You are a helpful assistant.", "You are the demo model of Tessera.", "Answer briefly.",
          "You are a small and friendly model."]


def a_or_an(word):
    return ("an " if word[0] in "aeiou" else "a ") + word


def sentence(rng):
    """One sentence of filler; it never holds a digit or the word key."""
    a, b, c = rng.sample(NOUNS, 3)
    x, y = rng.sample(ADJECTIVES, 2)
    return rng.choice((
        f"The {x} {a} {rng.choice(VERBS)} the {b}.",
        f"The {a} {rng.choice(VERBS)} the {x} {b} {rng.choice(PLACES)} the {c}.",
        f"{a_or_an(x).capitalize()} {a} {rng.choice(VERBS)} {a_or_an(y)} {b}.",
        f"Every {a} {rng.choice(VERBS)} the {b} and {rng.choice(VERBS)} the {c}.",
        f"The {a} is {x} and the {b} is {y}.",
        f"{rng.choice(PLACES).capitalize()} the {a} there is {a_or_an(x)} {b}."))


def filler(rng, words):
    """Sentences until there are about so many words."""
    out = []
    while words > 0:
        out.append(sentence(rng))
        words -= out[-1].count(" ") + 1
    return out


def code(rng):
    """A key: four or five digits, all drawn evenly."""
    return "".join(rng.choice("0123456789") for _ in range(rng.choice((4, 5))))


# ---- tasks: each returns (question, answer) ----

def count(rng):
    """Up or down, 2 to 12 numbers: words to twenty by ones or twos, digits to ninety-nine by ones, twos, fives or tens."""
    language = rng.choice(list(NUMBERS) + [None] * 3)
    top = 20 if language else 99
    step = rng.choice((1, 1, 1, 2) if language else (1, 1, 1, 2, 2, 5, 10))
    start = rng.choice((1, 1, rng.randint(0, top)) if step == 1 else (step, 0, step * rng.randint(0, top // step)))
    numbers = [n for n in range(start, start + step * rng.randint(3, 12), step) if n <= top]
    if len(numbers) < 2:
        return count(rng)
    if rng.random() < 0.3:
        numbers.reverse()
    return counting(numbers[0], numbers[-1], step, language)


def counting(first, last, step, language):
    word = (lambda n: NUMBERS[language][n]) if language else str
    sign = 1 if last >= first else -1
    text = "Count down from" if sign < 0 else "Count from"
    text += f" {first} to {last}" + (f" in steps of {step}" if step > 1 else "") + (f" in {language}" if language else "")
    return text + ".", ", ".join(word(n) for n in range(first, last + sign, sign * step))


def arithmetic(rng):
    kind = rng.choice("++-*")
    if kind == "+":
        a, b = rng.randint(0, 10), rng.randint(0, 10)
        text, answer = f"{a} + {b}", a + b
    elif kind == "-":
        a = rng.randint(0, 10)
        b = rng.randint(0, a)
        text, answer = f"{a} - {b}", a - b
    else:
        a, b = rng.randint(0, 10), rng.randint(0, 10)
        text, answer = f"{a} * {b}", a * b
    return f"What is {text}?", f"{text} = {answer}"


def capital(rng):
    country, city = rng.choice(list(CAPITALS.items()))
    return f"What is the capital of {country}?", f"The capital of {country} is {city}."


def copy(rng):
    text = "".join(rng.choice("0123456789") for _ in range(rng.randint(3, 8))) if rng.random() < 0.4 else sentence(rng)
    return rng.choice(("Repeat: ", "Copy: ", "Say: ")) + text, text


def talk(rng):
    ways, answer = rng.choice(TALK)
    return rng.choice(ways), answer


TASKS = {"count": count, "arithmetic": arithmetic, "capital": capital, "copy": copy, "talk": talk}


def task(rng, weights):
    name = rng.choices(list(TASKS), [weights[k] for k in TASKS])[0]
    return (name,) + TASKS[name](rng)


# ---- keys: told once, asked for later ----

def telling(holder, key):
    return f"The key of the {holder} is {key}." if holder else f"The key is {key}."


def asking(holder):
    return f"What is the key of the {holder}?" if holder else "What is the key?"


def keys_in_prose(rng, words, most=4):
    """One message with filler and keys, a question at its end, then questions for the other keys."""
    if rng.random() < 0.5:
        holders = [None]
    else:
        holders = rng.sample(HOLDERS, rng.randint(1, most))
    told = {h: telling(h, code(rng)) for h in holders}
    text = filler(rng, words)
    for h in holders:  # anywhere; a lone key mostly near the start, so that it lies far back
        text.insert(rng.randint(0, len(text) if rng.random() < 0.5 else min(len(text), 4)), told[h])
    asked = holders[:]
    rng.shuffle(asked)
    turns = [("key", asking(h), told[h]) for h in asked]
    turns[0] = ("key", " ".join(text) + " " + turns[0][1], turns[0][2])
    return turns


def key_prompt(rng, words):
    """The standing check: one key among filler, told `words` words before it is asked for."""
    key = code(rng)
    text = filler(rng, rng.randint(0, 12)) + [telling(None, key)] + filler(rng, words)
    return " ".join(text) + " " + asking(None), telling(None, key)


def dialogue(rng, words, weights, share):
    """Turns (task, question, answer). `words`: about how much prose; `share`: of dialogues that are about keys."""
    turns = []
    kind = rng.random()
    if kind < share * 0.7:
        turns += keys_in_prose(rng, rng.randint(words // 4, words))
    elif kind < share:  # told in a turn of its own, asked for after other turns
        holders = rng.sample(HOLDERS, rng.randint(1, 3)) if rng.random() < 0.6 else [None]
        told = {h: telling(h, code(rng)) for h in holders}
        for h in holders:
            turns.append(("note", "Remember: " + told[h], "I will remember it."))
        for _ in range(rng.randint(0, max(1, words // 16))):
            turns.append(task(rng, weights))
        rng.shuffle(holders)
        turns += [("key", asking(h), told[h]) for h in holders]
    for _ in range(rng.randint(1, 4)):
        turns.append(task(rng, weights))
    return turns


def everything(seed, dialogues=6000):
    """Plain text for the vocabulary."""
    rng = random.Random(seed)
    even = {k: 1.0 for k in TASKS}
    for _ in range(dialogues):
        for _, question, answer in dialogue(rng, 60, even, 0.4):
            yield question
            yield answer
    yield from SYSTEM
    for words in NUMBERS.values():
        yield from [", ".join(words)] * 150
