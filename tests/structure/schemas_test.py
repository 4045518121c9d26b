"""schemas_test.py WALK MODEL [N]: nothing fails open. JSON Schema's own test-suite: each case is refused, or its invalid texts are;
N random schemas (300): texts of random tokens that their masks allow are valid, as jsonschema has it."""

import json
import pathlib
import random
import subprocess
import sys
import unittest

import jsonschema

WALK, MODEL = sys.argv[1:3]
COUNT = int(sys.argv[3]) if len(sys.argv) > 3 else 300
SUITE = pathlib.Path(__file__).resolve().parents[2] / ".venv" / "json-schema-test-suite"
FORMATS = ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri")


class Walk:
    def __init__(self):
        self.process = subprocess.Popen([WALK, MODEL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **fields):
        try:
            self.process.stdin.write(json.dumps(fields) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        answer = json.loads(self.process.stdout.readline())
        if "missing" in answer:
            raise unittest.SkipTest(answer["missing"])
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def schema_of(rng, depth=0):
    """A random schema of keywords that are enforced, and now and then of some that are not."""
    kinds = ["string", "integer", "number", "boolean", "null", "enum", "const", "list", "any"]
    if depth < 3:
        kinds += ["object", "object", "array", "anyOf", "oneOf", "allOf", "tuple", "map", "ref"] * (2 if depth == 0 else 1)
    inner = lambda: schema_of(rng, depth + 1)
    kind = rng.choice(kinds)
    if kind == "string":
        made = {"type": "string"}
        what = rng.randrange(5)
        if what == 0:
            made["minLength"] = rng.randrange(4)
            made["maxLength"] = made["minLength"] + rng.randrange(6)
        elif what == 1:
            made["pattern"] = rng.choice([r"^[a-z]{1,4}$", r"^\d+\.\d{2}$", r"b+c", r"^(foo|bar)[^x]?$", r"^\w+\s\S+$", r"^[a[]+$", r"^.{2}$", r"^\u0041\x42$", r"^[^\s\d]+$", "^a|b$"])
        elif what == 2:
            made["format"] = rng.choice(FORMATS)
        return made
    if kind in ("integer", "number"):
        made = {"type": kind}
        low = rng.randrange(-200, 200)
        if rng.random() < 0.4:
            made[rng.choice(["minimum", "exclusiveMinimum"])] = low
        if rng.random() < 0.4:
            made[rng.choice(["maximum", "exclusiveMaximum"])] = low + rng.randrange(3, 1000)
        if kind == "integer" and rng.random() < 0.2:
            made["multipleOf"] = rng.choice([2, 3, 5, 10])
        return made
    values = ["a", "b\"c", "é", "", 1, -2.5, None, True, [1, "x"], {"k": [2]}]
    if kind == "enum":
        return {"enum": rng.sample(values, rng.randrange(1, 5))}
    if kind == "const":
        return {"const": rng.choice(values)}
    if kind == "list":
        return {"type": rng.sample(["string", "integer", "null", "boolean", "array"], 2)}
    if kind == "any":
        return rng.choice([{}, True, {"description": "any", "x-order": 1}])
    if kind == "object":
        names = rng.sample(["a", "ab", "name", "a\"b", "ü", "x_1", "n/m", "b\\"], rng.randrange(0, 5))
        made = {"type": "object", "properties": {name: inner() for name in names}}
        if names and rng.random() < 0.7:
            made["required"] = rng.sample(names, rng.randrange(1, len(names) + 1))
        if rng.random() < 0.5:
            made["additionalProperties"] = rng.choice([False, {"type": "integer"}])
        if rng.random() < 0.15:
            made["minProperties"] = rng.randrange(3)
        if rng.random() < 0.1:
            made["discriminator"] = {"propertyName": "a"}
        if rng.random() < 0.1:
            made[rng.choice(["not", "dependentRequired", "propertyNames", "unevaluatedProperties", "if"])] = {}
        return made
    if kind == "map":
        made = {"type": "object", "additionalProperties": inner()}
        if rng.random() < 0.3:
            made["patternProperties"] = {"^x_": {"type": "integer"}}
        if rng.random() < 0.4:
            made["maxProperties"] = rng.randrange(1, 4)
        return made
    if kind == "array":
        made = {"type": "array", "items": inner()}
        if rng.random() < 0.5:
            made["minItems"] = rng.randrange(3)
            made["maxItems"] = made["minItems"] + rng.randrange(3)
        if rng.random() < 0.1:
            made["uniqueItems"] = rng.choice([True, False])
        return made
    if kind == "tuple":
        return {"type": "array", "prefixItems": [inner() for _ in range(rng.randrange(1, 3))], "items": rng.choice([False, {"type": "integer"}])}
    if kind == "ref":
        return {"$ref": "#/$defs/" + rng.choice(["one", "two"])}
    return {kind: [inner() for _ in range(rng.randrange(1, 3))]}


class Schemas(unittest.TestCase):
    def setUp(self):
        self.walk = Walk()
        self.addCleanup(self.walk.close)

    def test_random(self):
        counts = {"refused": 0, "texts": 0, "cut": 0, "failed": 0}
        for seed in range(COUNT):
            rng = random.Random(seed)
            schema = schema_of(rng)
            if isinstance(schema, dict):
                schema["$defs"] = {"one": schema_of(rng, 2), "two": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/two"}}]}}
            answer = self.walk.ask(schema=schema, walks=3, seed=seed)
            if "refused" in answer:
                counts["refused"] += 1
                continue
            validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
            for text in answer["texts"]:
                if text is None or isinstance(text, dict):
                    counts["cut" if text is None else "failed"] += 1
                    continue
                with self.subTest(seed=seed, schema=json.dumps(schema), text=text):
                    validator.validate(json.loads(text))
                    counts["texts"] += 1
        print(f"random schemas: {COUNT}, {counts}", flush=True)
        self.assertGreater(counts["texts"], COUNT)
        self.assertLess(counts["failed"], COUNT // 10)

    def test_suite(self):
        folder = SUITE / "draft2020-12"
        if not folder.is_dir():
            self.skipTest(f"{folder} is missing: tools/setup --tests fetches it")
        counts = {"refused": 0, "held": 0, "narrower": 0, "valid accepted": 0, "invalid refused": 0}
        files = sorted(folder.glob("*.json")) + [folder / "optional" / "format" / f"{name}.json" for name in FORMATS] + [folder / "optional" / "ecmascript-regex.json"]
        for file in files:
            for case in json.loads(file.read_text()):
                texts = [json.dumps(test["data"], separators=(",", ":"), ensure_ascii=False) for test in case["tests"]]
                answer = self.walk.ask(schema=case["schema"], texts=texts)
                if "refused" in answer:
                    counts["refused"] += 1
                    continue
                counts["held"] += 1
                for test, text, found in zip(case["tests"], texts, answer["texts"]):
                    with self.subTest(file=file.name, case=case["description"], text=text):
                        if test["valid"]:
                            counts["valid accepted" if found == "ok" else "narrower"] += 1
                        else:
                            self.assertNotEqual(found, "ok")
                            counts["invalid refused"] += 1
        print(f"JSON Schema's test-suite: {counts}", flush=True)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
