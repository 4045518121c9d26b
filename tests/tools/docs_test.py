"""docs_test.py SOURCE: what documents and comments name exists: links and their anchors, paths, documents."""

import os
import pathlib
import re
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()
AREAS = ["apps", "bench", "cmake", "core", "docs", "kernels", "models", "plugins", "sdk", "testing", "tests", "tools"]
SOURCES = {".c", ".h", ".cpp", ".hpp", ".cu", ".py", ".cmake", ".txt", ".toml", ".sh", ".js", ".yaml"}

LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]*))?\)")
PATH = re.compile(rf"`((?:{'|'.join(AREAS)})/[\w./-]+)`")
DOCUMENT = re.compile(r"(?<![\w./-])((?:docs|bench/results)/[\w-]+\.md)\b")
# In place of a name: tests/abi/MAJOR.MINOR.
ANY = re.compile(r"\b[A-Z]{3,}\b")


def files(root):
    yield from (path for path in root.iterdir() if path.is_file())
    for area in AREAS:
        for folder, _, names in os.walk(root / area):
            yield from (pathlib.Path(folder) / name for name in names)


def anchors(path):
    """As code forges make them of headings."""
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.S)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in re.findall(r"^#+ (.*)$", text, re.M)}


def is_there(root, name):
    path = root / name.rstrip("/")
    # A name without an ending is that of a header and its source.
    return path.exists() or any(path.parent.glob(path.name + ".*"))


def broken(root):
    found = []
    for path in files(root):
        where = path.relative_to(root)
        if path.suffix == ".md":
            text = path.read_text()
            for target, anchor in LINK.findall(text):
                other = (path.parent / target).resolve() if target else path
                if not other.exists():
                    found.append(f"{where}: {target} does not exist")
                elif anchor and anchor not in anchors(other):
                    found.append(f"{where}: {target}#{anchor}: no such heading")
            found += [f"{where}: {name} does not exist" for name in PATH.findall(text)
                      if not ANY.search(pathlib.PurePath(name).name.removesuffix("README.md")) and not is_there(root, name)]
        elif path.suffix in SOURCES and path.name != "docs_test.py":
            text = path.read_text(errors="ignore")
            found += [f"{where}: {name} does not exist" for name in DOCUMENT.findall(text) if not (root / name).exists()]
    return found


class Architecture(unittest.TestCase):
    TEXT = (SOURCE / "docs" / "architecture.md").read_text()

    def test_parts_are_short(self):
        parts = self.TEXT.split("\n## Parts\n")[1].split("\n## ")[0].strip().split("\n\n")
        self.assertGreater(len(parts), 10)
        self.assertEqual([part for part in parts if len(part.split()) > 80], [])

    def test_the_glossary_says_once_what_a_word_means(self):
        rows = re.findall(r"^\| (?!---|word )(.*?) \|", self.TEXT.split("\n## Glossary\n")[1], re.M)
        words = [word for row in rows for word in row.split(", ")]
        self.assertEqual(sorted(words), sorted(set(words)))
        self.assertTrue(30 <= len(rows) <= 40, len(rows))


class Documents(unittest.TestCase):
    def test_all_that_they_name_exists(self):
        self.assertEqual(broken(SOURCE), [])

    def test_what_does_not_exist_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            for name, text in {
                "README.md": "# A b\n[x](docs/a.md) [y](docs/gone.md) [z](#a-b) [w](docs/a.md#gone) `core/a` `core/gone.hpp` `core/NAME.hpp` [v](https://x.y/z)\n",
                "docs/a.md": "# Title\n[back](../README.md#a-b)\n",
                "core/a.hpp": "// docs/a.md, docs/lost.md\n",
            }.items():
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_text(text)
            self.assertEqual(sorted(broken(root)), [
                "README.md: core/gone.hpp does not exist", "README.md: docs/a.md#gone: no such heading",
                "README.md: docs/gone.md does not exist", "core/a.hpp: docs/lost.md does not exist"])


if __name__ == "__main__":
    unittest.main()
