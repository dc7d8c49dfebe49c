package static

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestAnOrdinaryDayPasses holds what agents do all day in a sandbox. None of it
// may be blocked under the default profile.
func TestAnOrdinaryDayPasses(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{})

	for lang, texts := range map[string][]string{
		"bash": {
			"pip install -r requirements.txt", "pip install numpy pandas matplotlib", "python3 -m venv .venv && . .venv/bin/activate && pip install -U pip", "npm ci && npm run build && npm test -- --ci", "npx create-next-app@latest app --yes",
			"sudo apt-get update && sudo apt-get install -y ffmpeg", "apt-get install -y --no-install-recommends git && rm -rf /var/lib/apt/lists/*", "git clone --depth 1 https://github.com/psf/requests && cd requests && pytest -q", "git add -A && git commit -m 'fix: x' && git push origin main",
			"git checkout -b feature && git rebase main", "git clean -fdx && git reset --hard HEAD", "git config user.email a@b.c", "git stash && git pull --rebase && git stash pop", "nohup npm run dev > dev.log 2>&1 &", "python3 -m http.server 8000 &", "uvicorn app:app --host 0.0.0.0 --port 8000 --reload &",
			"curl -s http://localhost:3000/api/health | jq .", "curl -fsSL https://api.github.com/repos/a/b/releases/latest | jq -r .tag_name", "curl -X POST -H 'Content-Type: application/json' -d '{\"a\":1}' http://localhost:8000/items", "wget -q https://example.com/data.csv -O data.csv && head -5 data.csv",
			"docker compose up -d && docker ps", "docker build -t app . && docker run --rm -p 8080:80 app", "docker run --rm -v \"$PWD\":/work -w /work node:20 npm test", "kubectl get pods -A", "terraform init && terraform plan", "make -j$(nproc) && sudo make install", "cmake -B build && cmake --build build",
			"cargo build --release && ./target/release/app --help", "go test ./... -race", "rm -rf build dist *.egg-info", "rm -rf node_modules package-lock.json && npm install", "find . -name __pycache__ -type d -exec rm -rf {} +", "find . -type f -name '*.log' -mtime +3 -delete",
			"tar czf out.tar.gz dist/ && ls -lh out.tar.gz", "tar xzf data.tar.gz -C data --strip-components=1", "unzip -o a.zip -d a", "zip -r app.zip app -x '*.git*'", "chmod +x scripts/*.sh && ./scripts/build.sh", "cp -r src /tmp/backup && mv /tmp/backup ./old", "mkdir -p ~/.ssh && chmod 700 ~/.ssh",
			"ssh-keygen -t ed25519 -N '' -f ~/.ssh/id_ed25519 && cat ~/.ssh/id_ed25519.pub", "ssh-keyscan github.com >> ~/.ssh/known_hosts", "echo 'export PATH=\"$HOME/.local/bin:$PATH\"' >> ~/.bashrc && source ~/.bashrc", "cat >> ~/.bashrc <<'EOF'\nexport NVM_DIR=\"$HOME/.nvm\"\n[ -s \"$NVM_DIR/nvm.sh\" ] && \\. \"$NVM_DIR/nvm.sh\"\nEOF",
			"curl -o- https://raw.githubusercontent.com/nvm-sh/nvm/v0.39.7/install.sh | bash", "curl -LsSf https://astral.sh/uv/install.sh | sh", "curl https://bun.sh/install | bash", "eval \"$(ssh-agent -s)\"", "eval \"$(conda shell.bash hook)\" && conda activate x", "source ~/.profile", "env | sort | head", "printenv PATH", "export API_KEY=abc && python app.py",
			"ps aux | grep node | grep -v grep | awk '{print $2}' | xargs kill", "kill -9 $(lsof -ti:8000)", "pkill -f uvicorn || true", "killall node", "lsof -i :3000", "netstat -tlnp", "ss -tlnp | grep 8000", "df -h && free -m && nproc", "cat /proc/cpuinfo | head", "cat /etc/os-release", "uname -a", "whoami && id && pwd", "hostname -I",
			"time python train.py --epochs 1", "timeout 60 python long.py", "watch -n 1 -t ls", "for i in {1..5}; do curl -s localhost:3000/$i; done", "while ! nc -z localhost 5432; do sleep 1; done", "seq 1 1000 | xargs -P 4 -I{} echo {}", "ls | wc -l", "sed -i 's/foo/bar/g' src/*.py", "awk -F, '{s+=$2} END {print s}' data.csv", "sort data.txt | uniq -c | sort -rn | head",
			"cat <<'EOF' > app.py\nprint('hi')\nEOF\npython app.py", "cat > Dockerfile <<'EOF'\nFROM python:3.12\nRUN rm -rf /var/lib/apt/lists/*\nCMD [\"python\"]\nEOF", "echo 'aGVsbG8=' | base64 -d", "base64 -w0 logo.png > logo.b64", "openssl rand -hex 16", "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 1 -subj /CN=localhost", "gpg --version",
			"psql -h localhost -U postgres -c 'CREATE DATABASE app'", "sqlite3 app.db '.schema'", "redis-cli ping", "mysql -uroot -e 'SHOW DATABASES'", "service postgresql start", "sudo systemctl restart nginx", "sudo cp nginx.conf /etc/nginx/sites-available/app && sudo ln -s /etc/nginx/sites-available/app /etc/nginx/sites-enabled/", "sudo nginx -t && sudo nginx -s reload",
			"sudo tee /etc/apt/sources.list.d/x.list <<< 'deb https://h.example stable main'", "curl -fsSL https://download.docker.com/linux/ubuntu/gpg | sudo gpg --dearmor -o /etc/apt/keyrings/docker.gpg", "sudo rm -f /etc/apt/sources.list.d/x.list", "echo '127.0.0.1 app.local' | sudo tee -a /etc/hosts", "sudo sysctl -w fs.inotify.max_user_watches=524288",
			"rsync -av --delete src/ dst/", "scp build.zip deploy@h.example:/srv/", "aws s3 ls", "aws s3 cp dist s3://bucket --recursive", "gh pr create --fill", "gh release download v1", "huggingface-cli download gpt2", "ollama pull llama3", "playwright install chromium", "ffmpeg -i a.mp4 -vf scale=640:-1 b.mp4", "convert a.png -resize 50% b.png",
			"jupyter nbconvert --to script a.ipynb", "python -c 'import sys; print(sys.version)'", "node -e 'console.log(process.version)'", "perl -pi -e 's/a/b/' f.txt", "ruby -e 'puts 1'", "php -r 'echo 1;'", "bash -c 'echo hi; exit 3'", "sh -c \"cd app && npm start\"", "bash -lc 'nvm use 20 && npm test'", "tmux new -d -s dev 'npm run dev'", "screen -dmS dev npm run dev",
			"truncate -s 0 app.log", "dd if=/dev/zero of=test.img bs=1M count=100", "head -c 100 /dev/urandom | base64", "mktemp -d", "trap 'rm -rf \"$TMP\"' EXIT; TMP=$(mktemp -d)", "crontab -l", "history | tail", "alias ll='ls -la'", "ulimit -n 4096", "git log --oneline | head -5", "diff -u a b || true", "xxd a.bin | head", "strings a.out | grep version", "nm -D lib.so",
			"gdb -batch -ex run -ex bt ./a.out", "strace -c ls", "valgrind ./a.out", "ip addr", "ping -c 1 8.8.8.8", "dig +short example.com", "nmap -sV localhost", "traceroute example.com", "adduser --disabled-password --gecos '' dev", "sudo -u postgres psql -c 'select 1'", "su - postgres -c 'pg_ctl start'", "sudo mkdir -p /opt/app && sudo chown $USER /opt/app", "chown -R node:node /app",
			"python - <<'PY'\nimport pandas as pd\nprint(pd.DataFrame({'a': [1]}))\nPY", "pytest -q --maxfail=1 2>&1 | tail -20", "ls /etc /usr/bin | head", "cat ~/.bashrc", "cat .env | grep -v '^#'", "grep -rn 'TODO' src | head", "test -f .env && export $(grep -v '^#' .env | xargs)", "set -a; source .env; set +a; npm start", "cat /var/log/syslog | tail", "journalctl -n 20", "dmesg | tail",
		},
		"python": {
			"import numpy as np\nimport matplotlib.pyplot as plt\nx = np.linspace(0, 10, 100)\nplt.plot(x, np.sin(x))\nplt.show()", "import pandas as pd\ndf = pd.read_csv('data.csv')\nprint(df.describe())\ndf.to_parquet('data.parquet')",
			"import requests\nr = requests.get('https://api.example.com/items', params={'q': 'a'}, timeout=10)\nprint(r.json())", "import os\nprint(os.environ.get('HOME'), os.getcwd(), os.listdir('.'))", "import subprocess\nprint(subprocess.run(['git', 'status'], capture_output=True, text=True).stdout)",
			"!pip install seaborn", "%matplotlib inline\nimport seaborn as sns", "%%bash\nls -la\npip list | head", "import sqlite3\nc = sqlite3.connect('app.db')\nprint(c.execute('select 1').fetchall())", "from sklearn.linear_model import LinearRegression\nm = LinearRegression().fit([[1],[2]], [1,2])",
			"import os, openai\nclient = openai.OpenAI(api_key=os.environ['OPENAI_API_KEY'])\nprint(client.chat.completions.create(model='m', messages=[]))", "import shutil, os\nshutil.rmtree('build', ignore_errors=True)\nos.makedirs('build', exist_ok=True)", "from pathlib import Path\nfor p in Path('.').rglob('*.tmp'):\n    p.unlink()",
			"import multiprocessing as mp\nwith mp.Pool(4) as p:\n    print(p.map(abs, range(10)))", "import threading\nts = [threading.Thread(target=print, args=(i,)) for i in range(4)]\n[t.start() for t in ts]", "import time\nwhile True:\n    time.sleep(1)\n    break", "import socket\nprint(socket.gethostname())", "import base64\nprint(base64.b64encode(open('a.png','rb').read())[:20])",
			"import pickle\npickle.dump({'a': 1}, open('m.pkl', 'wb'))\nprint(pickle.load(open('m.pkl', 'rb')))", "import tempfile, subprocess\nwith tempfile.NamedTemporaryFile('w', suffix='.py') as f:\n    f.write('print(1)')\n    f.flush()\n    subprocess.run(['python3', f.name])", "import urllib.request\nurllib.request.urlretrieve('https://example.com/a.zip', 'a.zip')\nimport zipfile\nzipfile.ZipFile('a.zip').extractall('a')",
			"from flask import Flask, request\napp = Flask(__name__)\n@app.route('/', methods=['POST'])\ndef i():\n    return request.get_json()\napp.run(host='0.0.0.0', port=8000)", "import hashlib\nprint(hashlib.sha256(b'a').hexdigest())", "import secrets\nprint(secrets.token_hex(8))", "import psutil\nprint(psutil.virtual_memory())", "import getpass\nprint(getpass.getuser())", "import platform\nprint(platform.platform())",
			"import boto3\ns3 = boto3.client('s3')\ns3.upload_file('report.pdf', 'bucket', 'report.pdf')", "import smtplib\ns = smtplib.SMTP('localhost', 1025)\ns.sendmail('a@b', 'c@d', 'hi')", "import paramiko\nc = paramiko.SSHClient()\nc.connect('h.example', username='u', key_filename='k')", "exec(open('script.py').read())", "import importlib\nm = importlib.import_module('json')", "eval('[1, 2, 3]')", "import re\nprint(re.sub('a', 'b', 'cat'))",
			"import torch\nmodel = torch.load('model.pt', weights_only=True)", "from bs4 import BeautifulSoup\nimport requests\ns = BeautifulSoup(requests.get('https://example.com').text, 'html.parser')\nprint([a['href'] for a in s.find_all('a')])", "for i in range(1000):\n    print(i)", "data = [x ** 2 for x in range(10 ** 6)]\nprint(sum(data))",
		},
		"javascript": {
			"const fs = require('fs');\nconsole.log(fs.readFileSync('package.json', 'utf8'));", "const { execSync } = require('child_process');\nconsole.log(execSync('git status').toString());", "import express from 'express';\nconst app = express();\napp.get('/', (q, r) => r.send('hi'));\napp.listen(3000);",
			"const r = await fetch('https://api.example.com/items');\nconsole.log(await r.json());", "console.log(process.env.HOME, process.argv, process.version);", "fetch('https://api.openai.com/v1/chat', { method: 'POST', headers: { Authorization: `Bearer ${process.env.OPENAI_API_KEY}` }, body: '{}' });", "const path = require('path');\nrequire('fs').rmSync(path.join(__dirname, 'dist'), { recursive: true, force: true });",
			"const { spawn } = require('child_process');\nspawn('npm', ['run', 'dev'], { stdio: 'inherit' });", "setInterval(() => console.log('tick'), 1000);", "const b = Buffer.from('aGk=', 'base64').toString();\nconsole.log(b);", "import axios from 'axios';\nconst { data } = await axios.get('https://example.com');\nconsole.log(data.length);", "const os = require('os');\nconsole.log(os.cpus().length, os.hostname());",
			"const { Worker } = require('worker_threads');\nnew Worker('./job.js');", "const cluster = require('cluster');\nif (cluster.isPrimary) { for (let i = 0; i < 4; i++) cluster.fork(); }", "document.querySelector('#a').addEventListener('click', () => alert(1));", "const f = new Function('a', 'b', 'return a + b');\nconsole.log(f(1, 2));", "module.exports = { rules: { 'no-eval': 'error' } };", "const net = require('net');\nnet.createServer((s) => s.end('hi')).listen(1234);",
		},
	} {
		for _, text := range texts {
			f := g.Inspect(code(lang, text))
			assert.Empty(t, rulesOf(f), "%s: %s", lang, text)
		}
	}
}
