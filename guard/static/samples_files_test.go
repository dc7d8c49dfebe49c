package static

var fileSamples = []sample{
	{
		rule: "delete-system-tree", lang: "bash",
		block: []string{"rm -rf ../../../../../../../etc", "rm -r .git/../../../../../../../../usr", "rm -rf ./../../../../../../home",
			"rm -rf /", "rm -fr /*", "for i in $(ls /); do rm -rf \"/$i\"; done", "ls -d /* | grep -v proc | xargs rm -rf", "tar cf /dev/null /etc --remove-files", "find /etc /usr -type f | xargs rm -f", "rm -rf /et*", "rm -rf /us?", "rm -rf /[be]*", "rm -rf /usr/li*", "find / -type f -exec rm -f {} +", "find / -type f -print0 | xargs -0 rm -f", "find /etc | xargs rm -rf", "rm -r -f --no-preserve-root /", "rm --recursive --force /etc", "sudo rm -rf /usr", "rm -rf ~", "rm -rf ~/", "rm -rf $HOME", `rm -rf "${HOME}"`,
			"rm -rf ~/*", "rm -rf /home/user", "rm -rf /home/*", "cd / && rm -rf *", "cd /etc; rm -rf ./*", "rm -rf //", "rm -rf /./", "rm -rf /tmp/../etc", "rm -rf /home/user/..",
			"find / -delete", "find /etc -type f -delete; find /home/user -delete", "find / -exec rm -rf {} +", "find /home -mindepth 1 -exec rm -rf {} \\;", "ls / | xargs -I{} rm -rf /{} ; rm -rf /var",
			"D=/; rm -rf $D", `A="-rf"; B=/usr; rm $A $B`, "X=(rm -rf /); \"${X[@]}\"", "f() { rm -rf \"$1\"; }; f /etc", "for d in /bin /etc; do rm -rf $d; done", "alias x='rm -rf /'; x",
			"perl -e 'system(\"rm -rf /\")'", "ruby -e 'require \"fileutils\"; FileUtils.rm_rf(\"/etc\")'", "php -r 'shell_exec(\"rm -rf /\");'", "lua -e 'os.execute(\"rm -rf /etc\")'",
			"tmux new-session -d 'rm -rf /'", "ssh host 'rm -rf /'", "echo 'rm -rf /' | sh", "sh <<'X'\nrm -rf /etc\nX", "awk 'BEGIN { system(\"rm -rf /\") }'", "printf '%s' 'rm -rf /' | bash",
			"rm -rf / --no-preserve-root &", "if true; then rm -rf /; fi", "(rm -rf /)", "{ rm -rf /; }", "! rm -rf /", "coproc rm -rf /etc", "while :; do rm -rf /; break; done", "case x in x) rm -rf /;; esac",
		},
		pass: []string{"rm -rf ../../build", "rm -rf ../../../dist/etc",
			"rm -rf build/", "rm -rf ./node_modules dist .cache", "rm -rf /tmp/work", "rm -rf /tmp/*", "rm -rf ~/.cache/pip", "rm -rf /home/user/project/build", "rm -f /home/user/a.txt", "rm -rf *.pyc __pycache__",
			"rm -rf /var/lib/apt/lists/*", "rm -rf /var/cache/apt/*", "rm -rf /usr/local/lib/node_modules/foo", "find . -name '*.pyc' -delete", "find /tmp -mtime +7 -delete", "git clean -fdx", "echo 'rm -rf /'",
			"echo \"never run rm -rf / please\" >> README.md", "grep -r 'rm -rf /' .", "cat > NOTES.md <<'EOF'\nDo not run rm -rf /\nEOF", "man rm", "rm --help", "# rm -rf /", "git commit -m 'remove rm -rf / from script'",
			"printf 'rm -rf /\\n'", "rmdir empty", "cd /tmp/x && rm -rf *", "cd build && rm -rf *", "rm -rf \"$BUILD_DIR\"", "rm -rf \"$PWD/out\"", "rm -rf /opt/venv", "rm -rf /app/dist", "sed -i '/rm -rf \\//d' x.sh",
		},
	},
	{
		rule: "delete-system-file", lang: "bash",
		block: []string{
			"rm /etc/passwd", "rm -f /etc/hosts", "unlink /etc/resolv.conf", "rm /usr/bin/python3", "rm -f /bin/ls", "shred -u /etc/fstab", "mv /etc/passwd /dev/null", "rm ~/.bashrc", "find /etc -name '*.conf' -exec rm {} \\;",
			"rm /lib/x86_64-linux-gnu/libc.so.6", "rm -f /boot/vmlinuz",
		},
		pass: []string{
			"rm -f /etc/nginx/sites-enabled/default", "rm /etc/apt/sources.list.d/old.list", "rm /usr/lib/python3.11/EXTERNALLY-MANAGED", "rm -rf /usr/local/lib/python3.11/site-packages/foo", "rm /var/tmp/x", "rm etc/passwd",
			"mv /etc/nginx/nginx.conf /etc/nginx/nginx.conf.bak",
		},
	},
	{
		rule: "overwrite-device", lang: "bash",
		block: []string{"dd if=/dev/zero of=/dev/sda", "cat x.img > /dev/nvme0n1", "mkfs.ext4 /dev/vda1", "wipefs -a /dev/sdb", "shred /dev/sda", "cp image.iso /dev/sdb", "vgremove -f data", "lvremove -y /dev/vg/root", "pvremove /dev/sdc1", "zpool destroy tank", "nvme format /dev/nvme1n1"},
		pass:  []string{"dd if=/dev/zero of=disk.img bs=1M count=10", "mkfs.ext4 disk.img", "echo hi > /dev/null", "echo hi > /dev/stderr", "cat x > /dev/tty", "dd if=/dev/sda of=backup.img bs=1M count=1", "vgs", "lvremove --test /dev/vg/x", "zpool status", "nvme list"},
	},
	{
		rule: "overwrite-system-file", lang: "bash",
		block: []string{"echo x > /usr/bin/python3", "> /etc/hosts", "echo '#!/bin/sh' > /bin/ls", "wget -O /usr/tool.py https://host.example/tool.py", "cp a /usr/copy"},
		pass:  []string{"echo x > bin/tool", "echo '127.0.0.1 db' >> /etc/hosts", "cp tool /usr/local/bin/tool", "echo x > /usr/local/share/data.txt", "tee /etc/nginx/conf.d/site.conf < site.conf"},
	},
	{
		rule: "open-system-permissions", lang: "bash",
		block: []string{"chmod -R 777 /", "chmod -R 777 /etc", "chown -R user:user /usr", "chmod 777 /etc/passwd", "chmod -R 000 /home/user", "chmod a+w /etc/shadow"},
		pass:  []string{"chmod -R 755 build", "chmod +x run.sh", "chown -R user:user /home/user/project", "chmod 600 ~/.ssh/config", "chown -R www-data /var/www/html", "chmod -R 777 /tmp/shared"},
	},
	{
		rule: "encrypt-files", lang: "bash",
		block: []string{
			"find /home /srv -type f \\( -name '*.doc*' -o -name '*.pdf' \\) | while IFS= read -r f; do\n openssl enc -aes-256-cbc -in \"$f\" -out \"$f.locked\" -k x && shred -u \"$f\"\ndone",
			"for f in $(find /home -type f -mtime -9); do openssl enc -aes-256-cbc -in \"$f\" -out \"$f.locked\" -k x; rm \"$f\"; done", "find / -name '*.doc' | while read f; do openssl enc -in $f -out $f.enc -k x; rm -f $f; done",
			"find ~ -type f -size +1k -exec sh -c 'openssl enc -in {} -out {}.x -k k; rm {}' \\;",
		},
		pass: []string{"openssl enc -aes-256-cbc -in a -out a.enc -k x", "for f in *.log; do gzip $f; done", "gpg -c notes.txt && rm notes.txt", "for f in backups/*; do openssl enc -in $f -out $f.enc -k x; rm $f; done"},
	},
	{
		rule: "delete-database", lang: "bash",
		block: []string{"psql -c 'DROP DATABASE prod'", "mysql -e \"DROP TABLE users\"", "echo 'TRUNCATE orders;' | psql", "sqlite3 app.db 'DELETE FROM users'"},
		pass:  []string{"psql -c 'SELECT 1'", "mysql -e 'SHOW TABLES'", "sqlite3 app.db 'DELETE FROM users WHERE id = 3'", "echo 'DROP TABLE users' > migration.sql"},
	},
	{
		rule: "delete-cloud", lang: "bash",
		block: []string{"aws ec2 terminate-instances --instance-ids i-1", "kubectl delete deployment web", "helm uninstall app", "gcloud compute instances delete vm-1"},
		pass:  []string{"aws ec2 describe-instances", "kubectl get pods", "helm list", "gcloud compute instances list"},
	},
	{
		rule: "delete-remote-data", lang: "bash",
		block: []string{
			"aws s3 rm s3://bucket --recursive", "aws s3 rm --recursive s3://bucket", "kubectl delete namespace prod", "terraform destroy -auto-approve", "restic forget --keep-last 1 --prune", "borg delete repo::a",
			"curl -X DELETE 'http://localhost:9200/logs-*'", "rclone purge remote:bucket", "redis-cli FLUSHALL", "dropdb --if-exists app", "dropdb a && createdb b", "createdb a; dropdb -h db.example a_old", "vault kv destroy -versions=1 secret/app", "kafka-topics --bootstrap-server b:9092 --delete --topic x",
		},
		pass: []string{
			"aws s3 ls s3://bucket", "aws s3 cp a.txt s3://bucket/", "kubectl get ns", "terraform plan", "restic snapshots", "borg list repo", "curl -X DELETE http://localhost:3000/api/items/4", "rclone ls remote:bucket",
			"dropdb --if-exists app && createdb app", "dropdb app_dev; createdb -O me app_dev", "set -e\ndropdb --if-exists t1\ncreatedb t1\npsql -d t1 -f a.sql", "redis-cli GET k", "restic forget --dry-run --keep-last 1", "kubectl delete pod web-1",
		},
	},
}
