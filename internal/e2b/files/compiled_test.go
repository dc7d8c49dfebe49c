package files

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCompiledCodeIsKnownByNameOrContent(t *testing.T) {
	for name, head := range map[string]string{
		"helper.pyc": "", "a/Helper.PYC": "", "__pycache__/helper.data": "", "x/__pycache__/y": "", "lib.so": "", "lib.so.1": "", "addon.node": "", "Main.class": "",
		"tool": "\x7fELF\x02\x01\x01\x00", "tool.txt": "MZ\x90\x00", "x.dat": "\x00asm\x01", "y.dat": "\xca\xfe\xba\xbe\x00\x00",
	} {
		assert.True(t, Compiled(name, []byte(head)), name)
	}
	for name, head := range map[string]string{
		"helper.py": "", "data.csv": "MZ,1\n", "chart.png": "\x89PNG\r\n\x1a\n\x00", "data.sqlite": "SQLite format 3\x00", "pycache/x": "", "notes.sop": "", "a.zip": "PK\x03\x04\x00",
	} {
		assert.False(t, Compiled(name, []byte(head)), name)
	}
}
