"""check_layering_test.py FOLDER_OF_THE_SCRIPT: every rule finds what breaks it, and lets pass what does not."""

import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv.pop(1))
import check_layering  # noqa: E402

TREE = {
    "sdk/include/tessera/a.h": "#include <stdint.h>\n",
    "sdk/cpp/include/tessera/cpp/a.hpp": "#include <tessera/a.h>\n#include <string>\n",
    "sdk/cpu/include/tessera/cpu/a.hpp": "#include <tessera/a.h>\n",
    "sdk/formats/include/tessera/formats/freestanding.hpp": "#if !defined(__CUDACC_RTC__)\n#include <string.h>\n#endif\n",
    "core/base/a.hpp": "#include <tessera/a.h>\n#include <spdlog/spdlog.h>\n",
    "core/plan/a.hpp": '#include "core/base/a.hpp"\n',
    "core/model/a.hpp": '#include "core/plan/a.hpp"\n',
    "core/text/a.hpp": "",
    "plugins/one/a.hpp": "#include <immintrin.h>\n",
    "plugins/two/a.hpp": "",
    "apps/tessera/main.cpp": '#include "core/model/a.hpp"\nint main() { std::printf("x"); exit(1); }\n',
}


folder = tempfile.TemporaryDirectory()
root = pathlib.Path(folder.name).resolve()


def write(files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


write(TREE)


def violations(changes):
    write(changes)
    try:
        return check_layering.Checker(root).run()
    finally:
        for name in changes:
            (root / name).unlink()
        write({name: TREE[name] for name in changes if name in TREE})


class Rules(unittest.TestCase):
    def assert_clean(self, name, text):
        self.assertEqual(violations({name: text}), [])

    def assert_found(self, name, text, message):
        found = violations({name: text})
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(name + ":"), found)
        self.assertIn(message, found[0])

    def test_sound_tree(self):
        self.assertEqual(violations({}), [])

    def test_includes(self):
        for name, include, message in [
            ("sdk/cpp/include/tessera/cpp/b.hpp", '"core/base/a.hpp"', "the SDK is the ground floor"),
            ("sdk/cpu/include/tessera/cpu/b.hpp", '"plugins/one/a.hpp"', "the SDK is the ground floor"),
            ("sdk/include/tessera/b.h", "<tessera/cpp/a.hpp>", "the C ABI must not include"),
            ("sdk/include/tessera/b.h", "<string>", "the C ABI includes"),
            ("sdk/cpp/include/tessera/cpp/b.hpp", "<boost/dll.hpp>", "stands on the standard library only"),
            ("core/base/b.cpp", '"plugins/one/a.hpp"', "the core includes itself and the SDK only"),
            ("core/base/b.cpp", '"apps/tessera/main.cpp"', "the core includes itself and the SDK only"),
            ("core/base/b.cpp", "<tessera/cpu/a.hpp>", "the core knows no kernels"),
            ("core/base/b.cpp", '"core/text/a.hpp"', "the engine (base) must not include the language part"),
            ("core/cache/b.cpp", '"../model/a.hpp"', "the engine (cache) must not include the language part"),
            ("core/base/b.cpp", '"core/session/later.hpp"', "the engine (base) must not include the language part"),
            ("sdk/formats/include/tessera/formats/b.hpp", "<cstdint>", "which has no <cstdint>"),
            ("sdk/formats/include/tessera/formats/b.hpp", "<tessera/cpu/a.hpp>", "formats include the C ABI and themselves"),
            ("core/base/b.cpp", '"nowhere.hpp"', "is not in the tree"),
            ("core/base/b.cpp", "<immintrin.h>", "no intrinsics in the core"),
            ("core/base/b.cpp", "<cuda_runtime.h>", "no CUDA in the core"),
            ("core/plan/b.cpp", '"core/run/a.hpp"', "a plan knows nothing of how it is run"),
            ("core/plan/b.cpp", "<thread>", "a plan is computed without threads"),
            ("core/plan/b.cpp", "<sys/mman.h>", "a plan is computed without threads"),
            ("plugins/one/b.cpp", '"core/base/a.hpp"', "a plugin includes the SDK and itself only"),
            ("plugins/one/b.cpp", '"../two/a.hpp"', "a plugin includes the SDK and itself only"),
            ("plugins/one/b.cpp", '"kernels/x86/a.hpp"', "a plugin includes the SDK and itself only"),
            ("plugins/cpu_avx2/b.cpp", '"kernels/plain/a.hpp"', "a plugin includes the SDK and itself only"),
            ("kernels/x86/b.cpp", '"kernels/plain/a.hpp"', "kernels include the SDK and their own kind only"),
            ("kernels/x86/b.cpp", '"core/base/a.hpp"', "kernels include the SDK and their own kind only"),
            ("apps/server/b.cpp", '"apps/tessera/main.cpp"', "the server is a library that the program uses"),
            ("apps/tessera/b.cpp", '"plugins/one/a.hpp"', "through the registry only"),
            ("apps/tessera/b.cpp", '"kernels/x86/a.hpp"', "through the registry only"),
        ]:
            with self.subTest(include=include):
                self.assert_found(name, f"#include {include}\n", message)

    def test_circle(self):
        found = violations({"core/base/b.hpp": '#include "core/plan/a.hpp"\n'})
        self.assertEqual(len(found), 1, found)
        self.assertIn("base -> plan -> base", found[0])

    def test_lines(self):
        for name, text, message in [
            ("core/base/b.cpp", "auto x = _mm256_add_ps(a, b);", "no intrinsics in the core"),
            ("core/base/b.cpp", "__m512i x;", "no intrinsics in the core"),
            ("core/gguf/b.cpp", "bool is_mla = true;", '"mla" is known'),
            ("core/run/b.cpp", "// as for MLA", '"mla" is known'),
            ("core/run/b.cpp", 'if (name == "deepseek2")', "names of models"),
            ("core/graph/b.cpp", "int llama = 1;", "names of models"),
            ("core/plan/b.cpp", 'fail("a smaller -c");', "no command line"),
            ("core/setup/b.cpp", 'fail("-ngl 3: not for this model");', "no command line"),
            ("core/text/b.cpp", 'fail("(--chat-template)");', "no command line"),
            ("core/run/b.cpp", "fail(\"'tessera plugins --why'\");", "no command line"),
            ("core/setup/b.cpp", "fail(\"'tools/setup' builds it\");", "no command line"),
            ("plugins/one/b.cpp", "#ifdef __AVX2__", "no instruction-set macros"),
            ("sdk/cpu/include/tessera/cpu/b.hpp", "#if __FMA__", "no instruction-set macros"),
            ("plugins/one/b.cpp", "std::abort();", "ends the process"),
            ("core/base/b.cpp", "assert(x > 0);", "ends the process"),
            ("core/base/b.cpp", "exit(1);", "ends the process"),
            ("plugins/one/b.cpp", 'std::fprintf(stderr, "x");', "prints"),
            ("core/base/b.cpp", 'std::cerr << "x";', "prints"),
        ]:
            with self.subTest(text=text):
                self.assert_found(name, text + "\n", message)

    def test_what_may_stand(self):
        for name, text in [
            ("core/model/b.cpp", 'add("mla_attention"); // deepseek2'),
            ("core/text/b.cpp", '"llama-bpe"'),
            ("core/session/b.cpp", "int rows; // as -mla 3 needs them"),
            ("core/setup/b.cpp", 'fail("expected a number or -infinity - or none"); // give it with -c'),
            ("core/session/sampling_parameters.hpp", '"--temp --temperature"'),
            ("apps/tessera/b.cpp", 'say("give it with -c");'),
            ("core/base/b.cpp", "// types as llama.cpp writes them; a formula; std::snprintf(text, 8, x);"),
            ("core/base/b.cpp", "static_assert(sizeof(int) == 4); on_exit_(1); // never abort()"),
            ("plugins/one/b.cpp", "x = _mm256_add_ps(a, b);"),
            ("plugins/cpu_avx2/b.cpp", '#include "kernels/x86/a.hpp"'),
            ("testing/simulated/b.cpp", '#include "kernels/plain/a.hpp"'),
            ("apps/tessera/b.cpp", '#include "apps/server/a.hpp"'),
            ("tests/one/b.cpp", '#include "plugins/one/a.hpp"\n#include "core/text/a.hpp"'),
        ]:
            with self.subTest(text=text):
                self.assert_clean(name, text + "\n")

    def test_length(self):
        self.assert_found("tools/b.py", "x = 1\n" * 801, "801 lines")
        self.assert_clean("plugins/one/b.cpp", "\n" * 800)
        self.assert_found("plugins/one/b.cpp", "\n" * 801, "801 lines")
        self.assert_clean("plugins/one/b.cu", "\n" * 1200)
        self.assert_found("plugins/one/b.cu", "\n" * 1201, "1201 lines")


if __name__ == "__main__":
    unittest.main()
