#!/usr/bin/env python3
"""testing/goldens/record_abi finds every kind of change that breaks plugins, and lets those pass that do not."""

import importlib.machinery
import importlib.util
import pathlib
import shutil
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
loader = importlib.machinery.SourceFileLoader("record_abi", str(ROOT / "testing/goldens/record_abi"))
record_abi = importlib.util.module_from_spec(importlib.util.spec_from_loader("record_abi", loader))
sys.dont_write_bytecode = True
loader.exec_module(record_abi)


class Changes(unittest.TestCase):
    def differences(self, *edits):
        """Lines about the headers of this tree after (file, old text, new text)."""
        with tempfile.TemporaryDirectory() as folder:
            changed = pathlib.Path(folder) / "tessera"
            shutil.copytree(record_abi.HEADERS, changed)
            for file, old, new in edits:
                text = (changed / file).read_text()
                self.assertEqual(text.count(old), 1, f"{file}: '{old}'")
                (changed / file).write_text(text.replace(old, new))
            return "\n".join(record_abi.differences(record_abi.Abi(record_abi.HEADERS), record_abi.Abi(changed), "1.0"))

    def test_nothing(self):
        self.assertEqual(self.differences(), "")

    def test_comments_do_not_count(self):
        self.assertEqual(self.differences(("status.h", "/* the caller asked to stop */", "/* stopped */")), "")

    def test_field_in_the_middle(self):
        lines = self.differences(("kernel.h", "    const char* op;\n    const char* device_kind;", "    const char* device_kind;\n    const char* op;"))
        self.assertIn("tsr_kernel: field", lines)
        self.assertIn("fields are only appended", lines)

    def test_field_of_another_type(self):
        self.assertIn("tsr_status: field 1", self.differences(("status.h", "    tsr_code code;", "    int32_t code;")))

    def test_function_with_another_parameter(self):
        lines = self.differences(("graph.h", "uint32_t index, tsr_value value);\n} tsr_builder", "uint32_t index, tsr_value* value);\n} tsr_builder"))
        self.assertIn("tsr_builder: field", lines)

    def test_field_at_the_end_needs_a_version(self):
        grown = ("status.h", "    void (*destroy)(const struct tsr_status* self);\n}", "    void (*destroy)(const struct tsr_status* self);\n    uint64_t more;\n}")
        self.assertIn("raise TSR_ABI_MINOR", self.differences(grown))
        minor = record_abi.Abi(record_abi.HEADERS).version()[1]
        self.assertEqual(self.differences(grown, ("abi.h", f"#define TSR_ABI_MINOR {minor}", f"#define TSR_ABI_MINOR {minor + 1}")), "")

    def test_struct_is_gone(self):
        self.assertIn("tsr_range: is gone", self.differences(("tensor.h", "typedef struct tsr_range {", "typedef struct tsr_ranges {")))

    def test_enumerator_of_another_value(self):
        self.assertIn("constant TSR_ROLE_CACHE", self.differences(("tensor.h", "TSR_ROLE_CACHE = 3", "TSR_ROLE_CACHE = 4")))

    def test_name_of_an_op(self):
        self.assertIn("constant TSR_OP_ADD", self.differences(("ops.h", '#define TSR_OP_ADD "add"', '#define TSR_OP_ADD "plus"')))

    def test_type_with_another_block(self):
        self.assertIn("type Q4_0", self.differences(("types.h", '2, 20002, q4_0, Small, 32, 18, 0)', '2, 20002, q4_0, Small, 32, 20, 0)')))

    def test_device_struct_needs_its_own_number(self):
        grown = ("device.h", "    void (*close)(struct tsr_device* self);\n}", "    void (*close)(struct tsr_device* self);\n    void* more;\n}")
        self.assertIn("raise TSR_DEVICE_ABI", self.differences(grown))
        number = int(record_abi.Abi(record_abi.HEADERS).constants["TSR_DEVICE_ABI"])
        self.assertEqual(self.differences(grown, ("abi.h", f"#define TSR_DEVICE_ABI {number}", f"#define TSR_DEVICE_ABI {number + 1}")), "")


if __name__ == "__main__":
    unittest.main()
