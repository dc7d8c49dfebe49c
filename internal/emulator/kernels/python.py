"""The emulator's Python kernel: reads requests on descriptor 3, one JSON object
a line, and answers events on descriptor 4. State lives in one namespace."""
import ast
import binascii
import builtins
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import traceback
import types

_requests = os.fdopen(3, "r", encoding="utf-8")
_events_fd = 4
os.set_inheritable(3, False)
os.set_inheritable(4, False)
_event_lock = threading.RLock()


def _emit(**event):
    line = (json.dumps(event) + "\n").encode("ascii")
    with _event_lock:
        view = memoryview(line)
        while view:
            view = view[os.write(_events_fd, view):]


class _Stream(io.TextIOBase):
    """Text that code prints, sent on at a flush or shortly after."""

    encoding = "utf-8"
    interval = 0.1

    def __init__(self, name, fd):
        self._name, self._fd = name, fd
        self._parts, self._timer = [], None
        self.other = None

    def writable(self):
        return True

    def fileno(self):
        return self._fd

    def isatty(self):
        return False

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError("write() argument must be str, not %s" % type(text).__name__)
        with _event_lock:
            if self.other._parts:
                self.other.flush()
            self._parts.append(text)
            if self._timer is None:
                self._timer = threading.Timer(self.interval, self.flush)
                self._timer.daemon = True
                self._timer.start()
        return len(text)

    def flush(self):
        with _event_lock:
            timer, self._timer = self._timer, None
            parts, self._parts = self._parts, []
            text = "".join(parts)
            if text:
                _emit(e=self._name, text=text)
        if timer is not None:
            timer.cancel()


_out, _err = _Stream("stdout", 1), _Stream("stderr", 2)
_out.other, _err.other = _err, _out
sys.stdout, sys.stderr = _out, _err

_main = types.ModuleType("__main__")
_main.__dict__.update(__builtins__=builtins, In=[""], Out={})
sys.modules["__main__"] = _main
_ns = _main.__dict__

_FORMATS = [
    ("html", "_repr_html_", False), ("markdown", "_repr_markdown_", False), ("svg", "_repr_svg_", False),
    ("png", "_repr_png_", True), ("jpeg", "_repr_jpeg_", True), ("pdf", "_repr_pdf_", True),
    ("latex", "_repr_latex_", False), ("json", "_repr_json_", False), ("javascript", "_repr_javascript_", False),
]
_MIME = {
    "text/plain": "text", "text/html": "html", "text/markdown": "markdown", "image/svg+xml": "svg",
    "image/png": "png", "image/jpeg": "jpeg", "application/pdf": "pdf", "text/latex": "latex",
    "application/json": "json", "application/javascript": "javascript",
}


def _encoded(value):
    return binascii.b2a_base64(value).decode("ascii") if isinstance(value, (bytes, bytearray)) else value


def _formats(value):
    data = {}
    bundle = getattr(type(value), "_repr_mimebundle_", None)
    if bundle is not None:
        found = value._repr_mimebundle_()
        if isinstance(found, tuple):
            found = found[0]
        for mime, content in (found or {}).items():
            if mime in _MIME:
                data[_MIME[mime]] = _encoded(content)
    for name, method, binary in _FORMATS:
        if name not in data and getattr(type(value), method, None) is not None:
            content = getattr(value, method)()
            if isinstance(content, tuple):
                content = content[0]
            if content is not None:
                data[name] = _encoded(content) if binary else content
    if "text" not in data:
        data["text"] = repr(value)
    return data


def _result(value, main):
    _out.flush()
    _err.flush()
    _emit(e="result", data=_formats(value), main=main)


def display(*values, **_):
    for value in values:
        _result(value, False)


builtins.display = display


def _fake_ipython():
    """IPython.display for code that imports it where IPython is not installed."""
    try:
        import IPython.display  # noqa: F401
        sys.modules["IPython.display"].display = display
        return
    except ImportError:
        pass

    class DisplayObject:
        def __init__(self, data=None, filename=None, url=None, **_):
            if data is None and filename is not None:
                with open(filename, "rb") as f:
                    data = f.read()
            self.data = data

        def __repr__(self):
            return "<IPython.core.display.%s object>" % type(self).__name__

    def kind(name, method):
        return type(name, (DisplayObject,), {method: lambda self: self.data})

    module = types.ModuleType("IPython.display")
    module.display = display
    module.clear_output = lambda wait=False: None
    for name, method in [("HTML", "_repr_html_"), ("Markdown", "_repr_markdown_"), ("SVG", "_repr_svg_"),
                         ("Image", "_repr_png_"), ("Latex", "_repr_latex_"), ("JSON", "_repr_json_"),
                         ("Javascript", "_repr_javascript_")]:
        setattr(module, name, kind(name, method))
    package = types.ModuleType("IPython")
    package.display, package.get_ipython = module, lambda: _shell
    sys.modules["IPython"], sys.modules["IPython.display"] = package, module


class _Shell:
    """What the lines that are not Python turn into."""

    def system(self, command):
        done = subprocess.run(["/bin/bash", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        sys.stdout.write(done.stdout.decode("utf-8", "replace"))

    def magic(self, line):
        name, _, rest = line.partition(" ")
        rest = rest.strip()
        if name == "cd":
            try:
                os.chdir(os.path.expanduser(rest or "~"))
                print(os.getcwd())
            except OSError as e:
                print(e)
        elif name in ("pip", "conda", "uv"):
            self.system(line)
        elif name == "pwd":
            return os.getcwd()
        elif name in ("env", "set_env"):
            key, _, value = rest.replace("=", " ", 1).partition(" ")
            os.environ[key] = value.strip()
        elif name in ("matplotlib", "load_ext", "autoreload", "config"):
            pass
        else:
            sys.stderr.write("UsageError: Line magic function `%%%s` not found.\n" % name)

    def cell(self, line, body):
        name = line.split()[0] if line.split() else ""
        if name in ("bash", "sh"):
            done = subprocess.run(["/bin/" + name], input=body.encode(), stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, check=False)
            sys.stdout.write(done.stdout.decode("utf-8", "replace"))
            sys.stderr.write(done.stderr.decode("utf-8", "replace"))
        elif name == "writefile":
            with open(line.split(None, 1)[1], "w") as f:
                f.write(body)
        else:
            sys.stderr.write("UsageError: Cell magic `%%%%%s` not found.\n" % name)


_shell = _Shell()
builtins.get_ipython = lambda: _shell
_fake_ipython()


def _transform(code):
    """Turns IPython's shell and magic lines into calls, if it is not Python as it is."""
    first = next((line for line in code.split("\n") if line.strip()), "")
    indent = first[:len(first) - len(first.lstrip())]
    if indent:
        code = "\n".join(line[len(indent):] if line.startswith(indent) else line for line in code.split("\n"))
    if code.lstrip().startswith("%%"):
        first, _, body = code.lstrip()[2:].partition("\n")
        return "get_ipython().cell(%r, %r)" % (first.strip(), body)
    try:
        ast.parse(code)
        return code
    except SyntaxError:
        pass
    lines = []
    for line in code.split("\n"):
        match = re.match(r"^(\s*)(?:(\w+)\s*=\s*)?([!%])(.*)$", line)
        if match:
            indent, name, mark, rest = match.groups()
            call = "get_ipython().%s(%r)" % ("system" if mark == "!" else "magic", rest.strip())
            line = indent + ("%s = " % name if name else "") + call
        lines.append(line)
    return "\n".join(lines)


def _run(code, filename):
    tree = ast.parse(code, filename)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not code.rstrip().endswith(";"):
        last = ast.Expression(tree.body.pop().value)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    coroutine = getattr(__import__("inspect"), "CO_COROUTINE")

    def step(node, mode):
        compiled = compile(node, filename, mode, flags=flags)
        value = eval(compiled, _ns)  # noqa: S307
        if compiled.co_flags & coroutine:
            import asyncio
            value = _loop().run_until_complete(value) if asyncio else value
        return value

    step(tree, "exec")
    if last is not None:
        value = step(last, "eval")
        if value is not None:
            _ns["_"] = value
            _result(value, True)


_event_loop = None


def _loop():
    global _event_loop
    import asyncio
    if _event_loop is None or _event_loop.is_closed():
        _event_loop = asyncio.new_event_loop()
    asyncio.set_event_loop(_event_loop)
    return _event_loop


def _figures():
    """What matplotlib's inline backend does at the end of a cell."""
    plt = sys.modules.get("matplotlib.pyplot")
    if plt is None:
        return
    for number in plt.get_fignums():
        figure = plt.figure(number)
        image = io.BytesIO()
        figure.savefig(image, format="png", bbox_inches="tight")
        _emit(e="result", main=False, data={"text": repr(figure), "png": _encoded(image.getvalue())})
    plt.close("all")


def _traceback(error, code, filename, count):
    head = type(error).__name__
    lines = ["-" * 75, head + " " * max(1, 75 - len(head) - 33) + "Traceback (most recent call last)"]
    source = code.split("\n")
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == "<string>" and frame.name in ("_run", "step", "_execute"):
            continue
        if frame.filename == filename:
            lines.append("Cell In[%d], line %d" % (count, frame.lineno))
            for number in range(max(1, frame.lineno - 2), min(len(source), frame.lineno + 2) + 1):
                mark = "----> " if number == frame.lineno else "      "
                lines.append("%s%d %s" % (mark, number, source[number - 1]))
        else:
            lines.append("File %s:%d, in %s" % (frame.filename, frame.lineno, frame.name))
            if frame.line:
                lines.append("----> %d %s" % (frame.lineno, frame.line))
        lines.append("")
    if isinstance(error, SyntaxError):
        lines = ["  Cell In[%d], line %s" % (count, error.lineno), "    " + (error.text or "").rstrip("\n"), ""]
    lines.append("%s: %s" % (head, error))
    return "\n".join(lines)


def _execute(request):
    code, count = request["code"], request["count"]
    env = {k: v for k, v in (request.get("env") or {}).items() if k and "=" not in k and "\0" not in k + v}
    before = {name: os.environ.get(name) for name in env}
    os.environ.update(env)
    filename = "<cell-%d>" % count
    code = _transform(code)
    __import__("linecache").cache[filename] = (len(code), None, code.splitlines(True), filename)
    try:
        _run(code, filename)
        _figures()
    except SystemExit:
        pass
    except BaseException as error:  # noqa: BLE001
        _out.flush()
        _err.flush()
        try:
            value = str(error)
        except Exception:  # noqa: BLE001
            value = "<unprintable>"
        _emit(e="error", name=type(error).__name__, value=value, traceback=_traceback(error, code, filename, count))
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _serve():
    for line in _requests:
        request = json.loads(line)
        if request.get("cwd"):
            try:
                os.chdir(request["cwd"])
                _emit(e="done")
            except OSError as error:
                _emit(e="error", name=type(error).__name__, value=str(error), traceback="")
                _emit(e="done")
            continue
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            _execute(request)
        except KeyboardInterrupt:
            _emit(e="error", name="KeyboardInterrupt", value="", traceback="")
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _out.flush()
        _err.flush()
        for fd in (1, 2):
            os.write(fd, request["marker"].encode("ascii"))
        _emit(e="done")


signal.signal(signal.SIGINT, signal.SIG_IGN)
_emit(e="ready")
if __name__ == "__main__":
    _serve()
