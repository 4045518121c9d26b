"""What is tried: programs, plugins, cards, configurations, the bundled model."""

import os
import pathlib
import re

from .context import why_gone
from .process import Done, die

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
NAMES = ("cuda_ampere", "cuda_legacy")


class Machine:
    def __init__(self, folder, work):
        self.folder = folder
        self.work = work
        self.emulated = "TESSERA_EMULATED_GPUS" in os.environ
        self.toolkits = pathlib.Path("/usr/local")  # where toolkits are installed
        self.own_environment = dict(os.environ, XDG_CONFIG_HOME=str(work / "no-configuration"), XDG_CACHE_HOME=str(work / "cache"))
        self.environment = dict(self.own_environment)  # of what was built
        if (folder / "lib" / "carried").is_dir():
            self.environment["LD_LIBRARY_PATH"] = f"{os.environ.get('LD_LIBRARY_PATH', '')}:{folder / 'lib' / 'carried'}".lstrip(":")
        models = sorted((SOURCE / "models").glob("demo-*.gguf"))
        if not models:
            die(f"there is no demo-*.gguf in {SOURCE / 'models'}: run the tree's tools/gpu_acceptance, not a copy of it")
        self.model = models[0]
        here = folder / "lib/tessera/plugins"
        self.plugins = {name: here / f"tessera_{name}" for name in NAMES if (here / f"tessera_{name}.so").exists()}
        if not self.plugins:
            die(f"there is neither cuda_legacy nor cuda_ampere in {here}")
        self.cards = {}    # of each plugin: what measure_card says of the cards that it owns
        self.lost = {}     # plugins that own no card here, and why
        for name, plugin in self.plugins.items():
            done = self.done([self.program("measure_card"), f"{plugin}.so", "--list"], 120)
            found = [line for line in done.lines() if line["topic"] == "card"]
            if done.status == 0 and found:
                self.cards[name] = found
            else:
                self.lost[name] = done.err.strip()

    def why_gone(self):
        """Empty if the cards can be opened."""
        return why_gone(self.own_environment)

    def done(self, words, limit):
        return Done(words, self.environment, limit)

    def program(self, name):
        return self.folder / "bin" / name

    def tessera(self, *words):
        return [self.program("tessera"), *words]

    def owners(self):
        return list(self.cards)

    def card(self, name):
        """The first card of a plugin."""
        return self.cards[name][0]

    def card_name(self):
        for cards in self.cards.values():
            return cards[0]["name"] + (f" {cards[0]['capability'] // 100}.{cards[0]['capability'] // 10 % 10}" if self.emulated else "")
        return "none"

    def file_name(self):
        name = re.sub(r"[^a-z0-9]+", "-", self.card_name().lower().replace("nvidia", "").replace("geforce", "")).strip("-")
        return f"gpu-{'emulated-' if self.emulated else ''}{name}.md"

    def configuration(self, *plugins):
        """A configuration with which only these plugins own cards; none: the CPU alone."""
        off = [name for name in NAMES if name not in plugins]
        path = self.work / f"{'-'.join(plugins) or 'cpu'}.toml"
        path.write_text("[plugins]\noff = [%s]\n" % ", ".join(f'"{name}"' for name in off))
        return path

    def at_once(self):
        """Processes that run at the same time where nothing is timed."""
        return 2 if self.emulated else max(2, min(8, (os.cpu_count() or 2) // 2))

    def is_trial(self, name):
        """Whether the plugin runs on cards that it does not serve, with code that was made from an older virtual architecture to try it."""
        return name == "cuda_legacy" and self.cards[name][0]["capability"] >= 800

    def shared_card(self):
        """The id of a card that both plugins own; None if there is none."""
        ids = [{card["card"] for card in cards} for cards in self.cards.values()]
        common = set.intersection(*ids) if len(ids) == len(NAMES) else set()
        return min(common) if common else None

    def rig(self):
        """A mixed rig: both plugins, on logical devices of one card where both own it. Returns the file and the ids; None without two owners."""
        if len(self.cards) < 2:
            return None
        path = self.work / "rig.toml"
        card = self.shared_card()
        if card:
            path.write_text("".join(f'[[devices.{card}.logical]]\nplugin = "{name}"\n' for name in NAMES))
            return path, [f"{card}.0", f"{card}.1"]
        path.write_text("")
        return path, [self.cards[name][0]["card"] for name in NAMES]


def cards_used(done):
    """The devices on which a run of the program has placed weights, by what it says before it starts."""
    return set(re.findall(r"(?m)^(CUDA[\d.]+|CPU): uses .*weights", done.err))
