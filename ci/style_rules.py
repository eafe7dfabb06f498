"""Purpose: the numbers and tables of the house style, as data for ci/style.

Contract: nothing here runs. A rule's exception goes into style_exceptions.txt, with its reason.
"""

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
LINE_COLUMNS_MAX = 100
CLANG_FORMAT_MAJOR = 14  # Debian 12's; other versions lay out differently

CXX = (".h", ".cpp", ".cc", ".cu", ".cuh", ".c")
CODE = CXX + (".py", ".sh", ".cmake", "CMakeLists.txt")

# Written by others, kept as it came.
VENDORED = ("harness/plugin/third_party/",)

# What lies in the root itself.
TOP_FILES = {".clang-format", ".clang-tidy", ".gitignore", "CMakeLists.txt", "LICENSE", "README.md"}

# Folders that need no README of their own: data, vendored text, and include paths.
NO_ROOM = ("third_party", "testdata", "include", ".ci")

# What the files of a room may include, beside those of the room itself (README.md, Rooms). The
# longest matching key holds; an entry is a folder (ends in /) or one file.
_LOW = ["harness/core/", "harness/case/"]
_JUDGED = _LOW + ["harness/gen/", "harness/trace/", "harness/plugin/", "harness/run/", "reference/",
                  "harness/judge/"]
_ABOVE = _JUDGED + ["harness/certify/", "harness/engine/", "harness/history/",
                    "harness/relation/", "harness/mutant/", "harness/campaign/",
                    "harness/explain/", "harness/minimize/", "harness/plan/",
                    "harness/serving/", "harness/report/", "harness/diff/", "harness/dump/",
                    "harness/bisect/"]
# Plain C, constants and structs, and their names, for all who speak of the device or of a plugin.
_DEVICE_TABLE = "harness/simt/control/"
_DEVICE = "harness/simt/device.h"
_EXECUTED = ["harness/core/", "harness/simt/ptx/", "harness/simt/memory/", "harness/simt/check/",
             _DEVICE, _DEVICE_TABLE]
_PLUGIN_HEADER = "harness/plugin/kverify_plugin.h"
IMPORTS = {
    "harness/core/": [],
    "harness/case/": ["harness/core/"],
    "harness/gen/": _LOW,
    "harness/trace/": _LOW,
    "harness/dump/": _LOW,
    "harness/bisect/": _LOW,
    "harness/plan/": _LOW + ["harness/trace/"],
    # It measures the production manager, whose headers know neither CUDA nor the harness; no
    # verdict comes from there.
    "harness/serving/": _LOW + ["harness/trace/", "harness/history/", "impl/include/kvattn/"],
    "harness/simt/": ["harness/core/"],
    "harness/simt/ptx/": ["harness/core/"],
    "harness/simt/mutate/": ["harness/core/", "harness/simt/ptx/"],
    "harness/simt/profile/": ["harness/core/", "harness/simt/ptx/", _DEVICE_TABLE],
    "harness/simt/memory/": ["harness/core/", _DEVICE_TABLE],
    "harness/simt/check/": ["harness/core/", "harness/simt/memory/", _DEVICE_TABLE],
    "harness/simt/exec/": _EXECUTED,
    "harness/simt/exec/math/": ["harness/simt/exec/isa/isa.h", _DEVICE_TABLE],
    "harness/simt/exec/isa/": ["harness/simt/exec/", "harness/simt/check/", "harness/simt/memory/"],
    "harness/simt/exec/lower/": [*_EXECUTED, "harness/simt/exec/"],
    "harness/simt/exec/semantics_test/": ["harness/core/", "harness/simt/ptx/", _DEVICE],
    "harness/simt/bench/": ["harness/core/", _DEVICE, _DEVICE_TABLE],
    "harness/simt/cudart/": ["harness/core/", "harness/simt/ptx/", "harness/simt/mutate/",
                             "harness/simt/profile/", _DEVICE, _DEVICE_TABLE],
    "harness/simt/cublas/": ["harness/core/", "harness/simt/cudart/handles.h", _DEVICE_TABLE],
    "harness/simt/programs_test/": ["harness/core/", _DEVICE_TABLE],
    "harness/simt/hostile_test/": ["harness/core/", "harness/simt/ptx/", _DEVICE, _DEVICE_TABLE],
    "harness/simt/control/": [],
    "harness/plugin/": _LOW + [_DEVICE_TABLE],
    "harness/run/": _LOW + ["harness/plugin/", _DEVICE_TABLE],
    "harness/engine/": _LOW + ["harness/plugin/", "harness/run/shape.h", "harness/run/tensor.h"],
    "harness/history/": _LOW + ["harness/gen/", "harness/engine/", "harness/plugin/",
                                "harness/run/shape.h", "harness/run/tensor.h", "reference/"],
    "reference/": _LOW,
    "harness/judge/": _LOW + ["reference/", "harness/run/observation.h", _DEVICE_TABLE,
                              _PLUGIN_HEADER],
    "harness/diff/": _LOW + ["harness/run/observation.h", "harness/judge/"],
    "harness/relation/": _JUDGED,
    "harness/campaign/": ["harness/core/"],
    "harness/explain/": _JUDGED + [_DEVICE_TABLE, _PLUGIN_HEADER],
    "harness/minimize/": _JUDGED + [_DEVICE_TABLE],
    "harness/report/": _JUDGED + [_DEVICE_TABLE],
    "harness/mutant/": _JUDGED + ["harness/relation/", "harness/report/", _DEVICE_TABLE],
    "harness/certify/": _JUDGED + ["harness/engine/", "harness/history/", "harness/relation/",
                                   _DEVICE_TABLE],
    "harness/cli/": _ABOVE + [_DEVICE_TABLE],
    "impl/": [_PLUGIN_HEADER, "harness/plugin/kverify_engine.h",
              "harness/plugin/third_party/dlpack.h"],
    "properties/": ["harness/", "reference/"],
    "fuzz/": ["harness/", "reference/"],
    "ci/": ["harness/core/"],
    "ci/peers/": [_PLUGIN_HEADER],
}

# Folders that are include paths of their own for quoted includes.
INCLUDE_PATHS = {"impl/": "impl/include/"}

# Where a library may be included; tests and benchmarks may include any.
LIBRARIES = {
    r"CLI/": ["harness/cli/options/", "harness/cli/cli.cpp"],
    r"rapidcheck": ["properties/"],
    r"(mpfr|mpfi|gmp)": ["reference/"],
    r"zip\.h": ["harness/dump/"],
    r"sqlite3": ["harness/campaign/"],
    r"boost/": ["reference/", "harness/judge/"],
    r"cuda|cublas|mma\.h|cooperative_groups": ["impl/", "harness/simt/", "ci/peers/"],
    r"nlohmann/": ["harness/", "reference/", "fuzz/", "properties/"],
    r"fmt/": ["harness/", "reference/", "fuzz/", "properties/"],
}

# Words that may stand nowhere in the tree, and why. Split, so that this file obeys them.
FORBIDDEN = {
    r"(?<![\w.])/(wo" r"rk|ro" r"ot|ho" r"me)/\w": "a path of one machine",
    r"(py" r"pi|python" r"hosted|deb\.deb" r"ian|developer\.download\.nvid" r"ia)\.(org|com)":
        "a registry's host name",
}
# Functions of libm whose last bits differ from machine to machine, where results are published;
# reference/elementary.h has its own. Tests may use them.
LIBM = r"\bstd::(exp|exp2|log|log2|log10|pow|tanh|sin|cos|tan|cbrt|lgamma)\("
LIBM_FREE = ("harness/case/", "harness/core/", "harness/gen/", "harness/judge/", "harness/explain/",
             "harness/certify/", "harness/engine/", "harness/history/", "harness/relation/",
             "harness/minimize/", "harness/report/", "harness/run/", "reference/")
# Words that may not stand in C++ or CUDA, CMake and scripts.
FORBIDDEN_IN_CODE = {
    r"std::rand" r"om_device|std::mt" r"19937|#include <rand" r"om>":
        "the one source of random numbers is harness/core/philox.h",
    r"std::unif" r"orm_|std::norm" r"al_distribution": "std:: distributions differ by library",
    r"\bs?ran" r"d\(": "the one source of random numbers is harness/core/philox.h",
    r"-march=nat" r"ive|-ffast-ma" r"th": "results must not depend on the machine",
}
