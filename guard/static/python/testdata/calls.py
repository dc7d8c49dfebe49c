"""Prints the calls and imports of the files named on standard input, as JSON lines.

A call is written as its callee's path and its number of arguments. Files that
the interpreter itself cannot parse are left out.
"""
import ast
import json
import sys
import warnings

warnings.simplefilter("ignore")


def path(node):
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return path(node.value) + "." + node.attr
    if isinstance(node, ast.Call):
        return path(node.func) + "()"
    if isinstance(node, ast.Subscript):
        return path(node.value) + "[]"
    return "?"


for name in sys.stdin.read().splitlines():
    try:
        with open(name, encoding="utf-8") as f:
            text = f.read()
        tree = ast.parse(text)
    except (SyntaxError, ValueError, UnicodeDecodeError, RecursionError):
        continue
    calls = {}
    imports = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            key = "%s/%d" % (path(node.func), len(node.args) + len(node.keywords))
            calls[key] = calls.get(key, 0) + 1
        elif isinstance(node, ast.Import):
            imports += [a.name + " " + (a.asname or "") for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            m = "." * node.level + (node.module or "")
            imports += [m + ":" + a.name + " " + (a.asname or "") for a in node.names]
    print(json.dumps({"file": name, "calls": calls, "imports": sorted(imports)}))
