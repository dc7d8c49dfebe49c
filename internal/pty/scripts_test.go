package pty

// bashLines are ordinary lines as people type them, a message a line: words,
// corrections, completions, history, pasted text.
const bashLines = `
pwd⏎
ls⏎
ls -la⏎
whoami⏎
l
s
⏎
cd pro\t
⏎
cat ma\t⏎
cd⏎
\e[A⏎
\e[A
\e[A
⏎
cat not\t⏎
cat nots\x7fes.txt | head -3⏎
echo helo\e[D\e[Dl⏎
echo world^Ax^E!⏎
^U⏎
echo one two three^W^Wfour⏎
echo abc^A^K^Y⏎
echo ab^T⏎
echo first second\ebbig ⏎
echo a b c\eb\ed^E d⏎
mkdir -p tmp/a tmp/b⏎
touch tmp/a/x tmp/b/y⏎
ls tmp/\t\t
a/⏎
find . -name '*.py'⏎
grep -rn print project⏎
wc -l notes.txt⏎
sort data.csv | uniq -c⏎
head -n 5 notes.txt⏎
tail -n 2 notes.txt⏎
echo $HOME⏎
export GREETING=hello⏎
echo "$GREETING world"⏎
x=5; echo $((x * 2))⏎
for i in 1 2 3; do echo $i; done⏎
for f in *.txt; do⏎
echo "file $f"⏎
done⏎
if [ -f notes.txt ]; then⏎
echo yes⏎
else⏎
echo no⏎
fi⏎
while read -r l; do echo "> $l"; done < data.csv⏎
cat > hello.txt <<EOF⏎
Hello
⏎
it's a "quoted" line⏎
EOF⏎
cat hello.txt⏎
echo one \⏎
two⏎
python3 project/main.py⏎
python3 -c 'print(1 + 1)'⏎
node -e 'console.log(2)'⏎
git --version⏎
mkdir repo; cd repo⏎
git init -q⏎
git status --short⏎
cd -⏎
history | tail -3⏎
^Rcat\e[C⏎
^Rgrep⏎
^P⏎
\e[A\e[A\e[B⏎
echo \e.⏎
!!⏎
echo done !$⏎
true && echo ok || echo no⏎
date +%Y⏎
uname -s⏎
id -un⏎
env | grep GREETING⏎
unset GREETING⏎
type ls⏎
alias ll='ls -l'⏎
ll⏎
which bash⏎
ps aux | head -2⏎
df -h . | tail -1⏎
du -sh project⏎
cp notes.txt copy.txt⏎
mv copy.txt moved.txt⏎
rm moved.txt⏎
rm -r tmp/b⏎
chmod +x project/main.py⏎
ln -s notes.txt link.txt⏎
readlink link.txt⏎
stat -c %s notes.txt⏎
tar czf project.tgz project⏎
tar tzf project.tgz⏎
gzip -k data.csv⏎
zcat data.csv.gz⏎
md5sum data.csv⏎
sed -i 's/1/3/' data.csv⏎
awk -F, '{print $2}' data.csv⏎
awk '!seen[$0]++' notes.txt⏎
cut -d, -f1 data.csv⏎
tr a-z A-Z < data.csv⏎
seq 1 5 | paste -sd+⏎
printf '%s\n' a b c⏎
test -d project && echo dir⏎
[[ "abc" == a* ]] && echo match⏎
echo {a,b}{1,2}⏎
echo $(date +%s) > stamp⏎
cat stamp⏎
f() { echo "f: $1"; }⏎
f arg⏎
declare -A m; m[a]=1; echo "${m[a]}"⏎
arr=(1 2 3); echo "${#arr[@]}"⏎
case x in x) echo isx;; esac⏎
sleep 0.1 &⏎
wait⏎
jobs⏎
(cd project && ls)⏎
pushd project⏎
popd⏎
echo "tab	inside"⏎
echo 'grüße 日本'⏎
echo grüßen\x7f⏎
echo 日本語\x7f\x7fx⏎
\e[200~echo pasted\e[201~⏎
\e[200~echo p1↵echo p2↵\e[201~⏎
\e[200~for i in a b; do↵  echo $i↵done\e[201~⏎
echo not this\x03
echo but this⏎
^L⏎
clear⏎
diff data.csv data.csv⏎
basename /a/b/c⏎
dirname /a/b/c⏎
realpath notes.txt⏎
file_count=$(ls | wc -l)⏎
echo "$file_count files"⏎
xargs -n1 echo < data.csv⏎
tee out.txt < data.csv⏎
ls | tee list.txt | wc -l⏎
cat <<< "here"⏎
set -o | head -3⏎
set -e; set +e⏎
trap 'echo bye' EXIT⏎
stty size⏎
tput cols⏎
echo a;echo b⏎
 echo leading space⏎
echo trailing space ⏎
⏎
# a comment⏎
cd project/s\t⏎
ls u\t⏎
cd ~⏎
ls pro\t/ma\t⏎
cat hel\t^A^Klsx\x7f⏎
echo one⏎
echo two⏎
\e[A\e[A⏎
\e[A\x7f\x7f\x7ften⏎
\e[Aty^W twenty⏎
make --version | head -1⏎
curl --version | head -1⏎
ssh -V⏎
vim --version | head -1⏎
less --version | head -1⏎
python3 --version⏎
node --version⏎
pip --version⏎
npm --version⏎
jq --version || true⏎
echo '{"a":1}' | python3 -m json.tool⏎
python3 -m venv --help | head -1⏎
export PATH="$PATH:$HOME/bin"⏎
source ~/.profile 2>/dev/null⏎
umask⏎
ulimit -n⏎
uptime⏎
free -m | head -2⏎
nproc⏎
hostname > /dev/null⏎
kill -0 $$⏎
echo $?⏎
echo $$ > /dev/null⏎
time true⏎
yes | head -2⏎
rev <<< abc⏎
nl data.csv⏎
comm -12 data.csv data.csv⏎
split -l 20 notes.txt part_⏎
rm part_*⏎
od -c data.csv | head -2⏎
base64 data.csv⏎
echo aGk= | base64 -d⏎
dd if=/dev/zero of=zero bs=1k count=1⏎
truncate -s 0 zero⏎
mktemp -d⏎
tree project || ls -R project⏎
echo "a b" | read -r p q⏎
let y=3+4; echo $y⏎
echo ${HOME%/*}⏎
echo ~⏎
help cd | head -2⏎
man -w ls⏎
false || true⏎
! false⏎
exec 3>/dev/null⏎
echo x >&3⏎
exec 3>&-⏎
read -r name⏎
Ada⏎
echo "hello $name"⏎
cat⏎
some words⏎
\x04
echo after cat⏎
sh⏎
echo in sh⏎
exit⏎
bash⏎
echo in bash⏎
\e[A⏎
exit⏎
echo bye⏎
`

// viLines are lines in readline's other mode.
const viLines = `
set -o vi⏎
echo one⏎
echo two\eb
cwthree\e
⏎
\e
kk⏎
echo x\e0iecho \e⏎
\ek
A more⏎
set -o emacs⏎
echo back⏎
`

// programSessions are sessions of full-screen programs and REPLs: a blank line
// ends one, and its first line starts the program.
const programSessions = `
vim notes.txt⏎
jjjkk
dd
:wq⏎

vim new.py⏎
iimport os⏎
print(os.getcwd())⏎
\e
:wq⏎

vim project/main.py⏎
\e[B\e[A\e[C
Aprint("more")⏎
\e[D\e[D\x7f
\e
:set number⏎
:w⏎
:q⏎

vi data.csv⏎
/2⏎
n
x
u
:%s/a/b/g⏎
:wq⏎

vim notes.txt⏎
gg
5G
yyp
:!ls⏎
⏎
:r !date +%Y⏎
:q!⏎

vim -u NONE todo.md⏎
i# Title⏎
⏎
- one⏎
- two⏎
\e
ZZ

vim notes.txt⏎
:split⏎
^W
j
:q⏎
:q⏎

vim notes.txt⏎
:\e[A
\x03
:q⏎

vim a.sh⏎
i#!/bin/bash⏎
for f in *.txt; do⏎
\techo "$f"⏎
done⏎
\e
:x⏎
bash a.sh⏎

vim notes.txt⏎
iword\t
\x03
:q!⏎

vim -R notes.txt⏎
G
gg
:q⏎

view notes.txt⏎
\e[6~
\e[5~
:q⏎

vim notes.txt⏎
:help⏎
:q⏎
:q⏎

vim notes.txt⏎
:e data.csv⏎
:bn⏎
:qa⏎

vim x.txt⏎
i\e[200~pasted text↵of two lines↵\e[201~\e
:wq⏎
cat x.txt⏎

less notes.txt⏎
j
k
q

less notes.txt⏎
⏎
⏎
\e[B
\e[A
⏎
q

less notes.txt⏎
/text⏎
n
N
q

less +G notes.txt⏎
g
q

less notes.txt⏎
\s
b
h
q
q

less -N notes.txt⏎
G
q

cat notes.txt | less⏎
\e[6~
⏎
q

man ls⏎
j
/size⏎
q

git help -a | less⏎
q

more notes.txt⏎
⏎
⏎
q

less -X notes.txt⏎
⏎
\e[B⏎
q

less notes.txt⏎
:e data.csv⏎
q

less -S data.csv⏎
\e[C
\e[D
q

python3⏎
1 + 1⏎
print("hi")⏎
exit()⏎

python3⏎
import os⏎
os.getcwd()⏎
x = [1, 2, 3]⏎
sum(x)⏎
quit()⏎

python3⏎
def f(x):⏎
    return x * 2⏎
⏎
f(4)⏎
\x04

python3⏎
for i in range(3):⏎
    print(i)⏎
⏎
exit()⏎

python3⏎
x = 5⏎
\e[A⏎
\e[A
⏎
exit()⏎

python3⏎
import ma\t⏎
\x03
import math⏎
math.p\t⏎
exit()⏎

python3⏎
s = "it's"⏎
s.upper()⏎
len(s)\x7f\x7f\x7fs)⏎
exit()⏎

python3⏎
class A:⏎
    def m(self):⏎
        return 1⏎
⏎
A().m()⏎
exit()⏎

python3⏎
try:⏎
    1/0⏎
except ZeroDivisionError as e:⏎
    print(e)⏎
⏎
exit()⏎

python3⏎
1/0⏎
undefined⏎
exit()⏎

python3 -q⏎
import json⏎
json.dumps({"a": 1})⏎
exit()⏎

python3 -i project/main.py⏎
2 ** 10⏎
exit()⏎

python3⏎
name = input("name: ")⏎
Ada⏎
print(name)⏎
exit()⏎

python3⏎
\e[200~a = 1↵b = 2↵\e[201~⏎
a + b⏎
exit()⏎

python3⏎
import re⏎
re.findall(r'\d+', 'a1b22')⏎
[c for c in "abc" if c != "b"]⏎
exit()⏎

node⏎
1 + 1⏎
.exit⏎

node⏎
const x = [1, 2, 3]⏎
x.map(v => v * 2)⏎
\x04

node⏎
function f(a) {⏎
return a + 1⏎
}⏎
f(2)⏎
.exit⏎

node⏎
let y = 4⏎
\e[A⏎
!y⏎
.exit⏎

node⏎
.help⏎
console.log('hi')⏎
.exit⏎

node⏎
await Promise.resolve(3)⏎
JSON.stringify({a: 1})⏎
.exit⏎

node⏎
Math.ma\t⏎
.exit⏎

node -i⏎
undefined_name⏎
typeof 1⏎
.exit⏎

node⏎
const o = {⏎
a: 1,⏎
}⏎
o.a⏎
.exit⏎

node⏎
require('path').join('a', 'b')⏎
process.version.length > 0⏎
.exit⏎

sqlite3⏎
select 1;⏎
.quit⏎
`
