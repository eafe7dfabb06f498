#!/usr/bin/env python3
"""Purpose: every rule of ci/style fires on a planted violation and is silent on its twin."""
import os
import subprocess
import sys
import tempfile
import unittest

STYLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "style")
HEADER = "// Purpose: p.\n// Contract: c.\n#pragma once\n"


def style(files, *arguments):
    """Lines that ci/style prints about a tree of the given files, and its exit status."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)) or root, exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        result = subprocess.run([sys.executable, STYLE, "--root", root, *arguments],
                                capture_output=True, text=True)
        assert result.stderr == "", result.stderr
        return result.stdout.splitlines(), result.returncode


class StyleTest(unittest.TestCase):
    def expect(self, rule, bad, good, where=None):
        """`bad` has one violation of the rule (at `where`); `good` has none."""
        lines, status = style(bad, rule)
        self.assertEqual((len(lines), status), (2, 1), lines)
        self.assertIn(f": {rule}: ", lines[0])
        if where:
            self.assertTrue(lines[0].startswith(where), lines[0])
        lines, status = style(good, rule)
        self.assertEqual((len(lines), status), (1, 0), lines)

    def test_file_length(self):
        self.expect("file-length", {"a.cpp": "\n" * 401}, {"a.cpp": "\n" * 400})

    def test_name(self):
        self.expect("name", {"impl/a b.cpp": ""}, {"impl/a_b.cpp": ""})
        self.expect("name", {"report.json": ""}, {"README.md": "", "docs/report.json": ""})

    def test_heading(self):
        self.expect("heading", {"a/README.md": "#a : x\n"}, {"a/README.md": "# a: x\n"})

    def test_line_length(self):
        self.expect("line-length", {"a.cu": "\n" + "x" * 101}, {"a.cu": "x" * 100}, "a.cu:2:")
        self.expect("line-length", {"s": "#!/bin/sh\n" + "x" * 101}, {"a.md": "x" * 101})

    def test_function_length(self):
        def function(statements):
            return f"namespace n {{\nclass C {{}};\nint f(int a)\n{{\na;" + \
                "\n{ a; }" * statements + "\n}\n}\n"
        self.expect("function-length", {"a.cpp": function(67)}, {"a.cpp": function(66)}, "a.cpp:3:")

    def test_function_length_knows_what_is_no_function(self):
        body = "\n  a;" * 60
        quiet = {
            "class of short functions": "class C {" + "\n  int f() { return 1; }" * 80 + "\n};",
            "table": "const int kTable[] = {" + "\n  f(1)," * 80 + "\n};",
            "raw string": 'const char* k = R"(' + "\nf() {" * 80 + ')";\n',
            "macro": "#define M(x) do { \\\n" + " f(); \\\n" * 80 + "} while (0)\n",
            "two neighbours": f"void f() {{{body}\n}}\nC::C() : a(1), b{{2}} {{{body}\n}}\n",
        }
        for what, text in quiet.items():
            with self.subTest(what):
                self.assertEqual(style({"a.cpp": text}, "function-length")[1], 0)
        noisy = f"C::C() : a(1), b{{2}} {{{body}{body}\n}}\n"
        self.assertEqual(style({"a.cpp": noisy}, "function-length")[1], 1)

    def test_purpose(self):
        self.expect("purpose", {"a.h": "// Purpose: p.\n#pragma once\n"}, {"a.h": HEADER})

    def test_word(self):
        good = {"a.cpp": "// work/main, operand(1)\n"}
        for bad in ["/wo" "rk/main", "see /ro" "ot/x", "ran" "d()", "-march=nat" "ive",
                    "std::unif" "orm_int_distribution", "py" "pi.org"]:
            with self.subTest(bad):
                self.expect("word", {"a.cpp": f"\n// {bad}\n"}, good, "a.cpp:2:")

    def test_libm(self):
        bad = {"harness/judge/a.cpp": "\nreturn std::" "exp(x);\n"}
        good = {"harness/judge/a_test.cpp": "return std::" "exp(x);\n",
                "harness/judge/b.cpp": "return reference::exp_nonpositive(x) + std::fabs(x);\n"}
        self.expect("libm", bad, good, "harness/judge/a.cpp:2:")

    def test_import(self):
        core, case = {"harness/core/c.h": HEADER}, {"harness/case/c.h": HEADER}
        up = {**case, "harness/core/a.h": '#include "harness/case/c.h"\n'}
        down = {**core, "harness/case/a.h": '#include "harness/core/c.h"\n'}
        self.expect("import", up, down, "harness/core/a.h:1:")

    def test_import_of_the_library_under_check(self):
        header = {"harness/plugin/kverify_plugin.h": "", "harness/core/c.h": ""}
        bad = {**header, "impl/plugin.cpp": '#include "harness/core/c.h"\n'}
        good = {**header, "impl/include/kvattn/a.h": "",
                "impl/plugin.cpp": '#include "harness/plugin/kverify_plugin.h"\n'
                                   '#include "kvattn/a.h"\n#include <cuda_runtime.h>\n'}
        self.expect("import", bad, good)

    def test_import_of_libraries(self):
        self.expect("import", {"harness/judge/a.cpp": "#include <CLI/CLI.hpp>\n"},
                    {"harness/cli/options/a.cpp": "#include <CLI/CLI.hpp>\n"})
        self.expect("import", {"harness/run/a.cpp": "#include <cuda_runtime.h>\n"},
                    {"harness/core/a_test.cpp": "#include <cuda_fp16.h>\n"})

    def test_import_of_nothing(self):
        self.expect("import", {"harness/core/a.cpp": '#include "missing.h"\n'},
                    {"harness/core/a.cpp": '#include "b.h"\n', "harness/core/b.h": ""})

    def test_readme(self):
        self.expect("readme", {"harness/core/a.cpp": ""},
                    {"harness/core/a.cpp": "", "harness/core/README.md": "",
                     "harness/core/testdata/a.cu": ""})

    def test_format(self):
        config = {".clang-format": "BasedOnStyle: Google\n"}
        if style({}, "format")[1] == 77:
            self.skipTest("clang-format of the right version is not here")
        good = {**config, "a.cpp": "int f();\n"}
        self.expect("format", {**config, "a.cpp": "int  f ( );\n"}, good)

    def test_exception(self):
        long = {"a.cpp": "\n" * 401}
        excuse = {"ci/style_exceptions.txt": "# comment\nfile-length a.cpp a table\n"}
        self.assertEqual(style({**long, **excuse}, "file-length")[1], 0)
        lines, status = style({"a.cpp": "", **excuse}, "file-length")
        self.assertEqual(status, 1)
        self.assertIn("excuses nothing", lines[0])


if __name__ == "__main__":
    unittest.main()
