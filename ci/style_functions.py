"""Purpose: where each C++ function begins and ends, well enough to count its lines.

Contract: a brace heuristic for code that clang-format has laid out, not a parser: a block is a
function when `)` stands between it and the end of the statement before, and it is neither inside
another function nor headed by a word such as namespace or class.
"""
import re

_TEXT = re.compile(
    r'R"(?P<d>[^(\s]*)\((?:.|\n)*?\)(?P=d)"'  # raw string
    r'|//[^\n]*|/\*(?:.|\n)*?\*/'             # comments
    r'|"(?:\\.|[^"\\\n])*"'                   # string
    r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'"   # character, not a digit separator
    r'|^[ \t]*#(?:[^\n\\]|\\\n|\\.)*',        # preprocessor line, continued lines too
    re.MULTILINE)
_NO_FUNCTION = re.compile(r"\s*(template\s*<[^{]*>\s*)?(inline\s+)?(namespace|class|struct|union|"
                          r"enum|extern\b(?![^{]*\())\b")


def without_text(source):
    """The source with comments, strings and preprocessor lines blanked, lines kept."""
    return _TEXT.sub(lambda m: re.sub(r"[^\n]", " ", m.group(0)), source)


def _is_function(head):
    return ")" in head and not _NO_FUNCTION.match(head)


def functions(source):
    """Yields (name, first line, last line)."""
    code = without_text(source)
    blocks = []          # kinds of the open blocks: "scope", "function", "inner", "value"
    head_start = 0       # where the statement that may head the next block begins
    first = name = None
    for position, character in enumerate(code):
        if character == ";" and "value" not in blocks[-1:]:
            head_start = position + 1
        elif character == "{":
            head = code[head_start:position]
            if re.search(r"[\w>\]),(=]\Z|(=|\breturn)\s*\Z", head):
                blocks.append("value")
                continue
            if "function" in blocks:
                blocks.append("inner")
            elif _is_function(head):
                blocks.append("function")
                first = code.count("\n", 0, head_start + len(head) - len(head.lstrip())) + 1
                name = (re.findall(r"([\w:~]+)\s*\(", head) or ["?"])[0]
            else:
                blocks.append("scope")
            head_start = position + 1
        elif character == "}" and blocks:
            kind = blocks.pop()
            if kind == "function":
                yield name, first, code.count("\n", 0, position) + 1
            if kind != "value":
                head_start = position + 1
