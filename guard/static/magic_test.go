package static

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/e2bguard/e2bguard/guard"
)

// Every way in which IPython runs a program or other code than Python, as its
// cells are read.
func TestNotebookMagicsRunPrograms(t *testing.T) {
	t.Parallel()

	g := newGuard(t, Options{})

	for name, cell := range map[string]string{
		"a line": "!rm -rf /etc", "two marks": "!!rm -rf /etc", "assigned": "x = !rm -rf /etc", "a magic assigned": "x = %sx rm -rf /etc",
		"sx": "%sx rm -rf /etc", "system": "%system rm -rf /etc", "sc": "%sc x=rm -rf /etc", "sc with an option": "%sc -l x = rm -rf /etc",
		"rm": "%rm -rf /etc", "in a block": "if True:\n    !rm -rf /etc", "continued": "!rm \\\n -rf /etc", "a name in it": "c = 'rm -rf /etc'\n!{c}",
		"a dollar in it": "c = 'rm -rf /etc'\n!$c", "with blanks": "\t!rm -rf /etc", "after a return": "x = 1\r!rm -rf /etc",
		"a bash cell": "%%bash\nrm -rf /etc", "a sh cell": "%%sh\nrm -rf /etc", "in the background": "%%bash --bg --out x\nrm -rf /etc",
		"in its line": "%%bash -c 'rm -rf /etc'\n", "a system cell": "%%system\nrm -rf /etc", "an sx cell": "%%sx\nrm -rf /etc", "a bang cell": "%%!\nrm -rf /etc",
		"a script": "%%script bash\nrm -rf /etc", "a script with a flag": "%%script --bg bash\nrm -rf /etc", "a script with a value": "%%script --out x bash -e\nrm -rf /etc",
		"a script by path": "%%script /usr/bin/env bash\nrm -rf /etc", "a script that is a program": "%%script rm -rf /etc\n", "perl": "%%perl\nsystem('rm -rf /etc')",
		"ruby": "%%ruby\nsystem('rm -rf /etc')", "python3": "%%python3\nimport os; os.system('rm -rf /etc')",
		"another line break": "%%bash\u2028rm -rf /etc", "a next line": "%%bash\u0085rm -rf /etc", "a form feed": "%%bash\frm -rf /etc",
		"after empty lines": "\n \u2028\f\n%%bash\nrm -rf /etc", "captured": "%%capture\n!rm -rf /etc", "captured twice": "%%capture\n%%bash\nrm -rf /etc",
		"timed": "%time !rm -rf /etc", "timed cell": "%%time\n!rm -rf /etc", "timed in the line": "%%timeit -n 1 __import__('os').system('rm -rf /etc')\npass",
		"debugged": "%debug __import__('os').system('rm -rf /etc')", "profiled": "%prun __import__('os').system('rm -rf /etc')",
		"an alias": "%alias x rm -rf /etc\n%x", "another name for a cell": "%%t\nrm -rf /etc", "another name for a line": "%t rm -rf /etc", "a program in the path": "%rehashx\n%chmod -R 777 /",
		"unmarked": "rm -rf /etc", "unmarked sx": "sx rm -rf /etc", "unmarked system": "system rm -rf /etc\n",
		"after a tab": "system\trm -rf /etc", "sx after a tab": "sx\trm -rf /etc", "a second program": "ls\t;rm -rf /etc", "pip and more": "pip\tinstall x; rm -rf /etc", "an alias after a tab": "alias\tboom rm -rf /etc",
		"a bracket": "sx(rm -rf /etc)", "a quote": `sx"true"; rm -rf /etc`, "a semicolon": "sx;rm -rf /etc", "a slash": "sx/bin/rm -rf /etc", "a dash": "sx-x;rm -rf /etc", "a substitution": "pip$(true);rm -rf /etc",
		"a bracket apart": "sx (rm -rf /etc)", "a subshell": "sx (true); rm -rf /etc", "a test": "sx [ 1 ] && rm -rf /etc", "a list": "sx [x]; rm -rf /etc", "sourced": "sx . /dev/null; rm -rf /etc", "a dot": "sx .;rm -rf /etc",
		"a colon": "sx : ; rm -rf /etc", "a colon and more": "sx :; rm -rf /etc", "pasted": ">>> !rm -rf /etc", "pasted unmarked": ">>> sx rm -rf /etc", "pasted from IPython": "In [1]: !rm -rf /etc",
		"pasted unmarked from IPython": "In [12]: sx rm -rf /etc", "pasted block": ">>> if True:\n...     !rm -rf /etc",
		"the shell": "get_ipython().system('rm -rf /etc')", "its output": "get_ipython().getoutput('rm -rf /etc')", "raw": "get_ipython().system_raw('rm -rf /etc')",
		"piped": "get_ipython().system_piped('rm -rf /etc')", "a magic called": "get_ipython().run_line_magic('sx', 'rm -rf /etc')",
		"a program called": "get_ipython().run_line_magic('rm', '-rf /etc')", "a cell called": "get_ipython().run_cell_magic('bash', '', 'rm -rf /etc')",
		"a script called": "get_ipython().run_cell_magic('script', 'bash', 'rm -rf /etc')", "a magic in one": "get_ipython().magic('sx rm -rf /etc')",
		"a cell run": "get_ipython().run_cell('%%bash\\nrm -rf /etc')", "kept": "ip = get_ipython()\nip.system('rm -rf /etc')",
		"imported": "from IPython import get_ipython\nget_ipython().system('rm -rf /etc')", "the class": "from IPython.core.interactiveshell import InteractiveShell\nInteractiveShell.instance().system('rm -rf /etc')",
		"the helper": "from IPython.utils.process import getoutput\ngetoutput('rm -rf /etc')",
	} {
		assert.NotEmpty(t, rulesOf(g.Inspect(guard.Subject{Kind: guard.KindCode, Language: "python", Text: cell})), name)
	}

	for _, cell := range []string{
		"%matplotlib inline\nimport matplotlib.pyplot as plt", "%load_ext autoreload\n%autoreload 2", "%time x = 1", "%%time\nx = 1", "%%capture out\nprint(1)",
		"!ls -la", "ls -la", "files = !ls", "%pwd", "%cd /home/user", "%who", "%env A=b", "%%writefile a.py\nprint(1)", "%run a.py", "%%html\n<b>x</b>",
		"time.sleep(5)", "run(5)", "system, x = 1, 2", "ls[0]", ">>> print(1)\n1", "In [3]: x = 1\n   ...: y = 2", "cat = 1\ncat / 2", "rm = 3", "time = 5", "system = 'x'", "ls = [1]\nls", "%config InlineBackend.figure_format = 'retina'", "%history -n 1-5", "%timeit sum(range(10))",
	} {
		assert.Empty(t, rulesOf(g.Inspect(guard.Subject{Kind: guard.KindCode, Language: "python", Text: cell})), cell)
	}
}
