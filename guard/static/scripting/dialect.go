package scripting

import (
	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// dialect is what the scanner knows of a language.
type dialect struct {
	name string
	// runs are calls that run their first argument as shell text, or their
	// arguments as a command.
	runs []string
	// evals run text of the language itself.
	evals []string
	// deletes remove their arguments; deleteTrees recursively.
	deletes, deleteTrees []string
	reads, writes        []string
	sockets              []string
	forks                []string
	decodes              []string
	fetches              []string
	backquote            bool
	comment              string
}

var (
	perl = dialect{
		name: "perl", runs: []string{"system", "exec", "qx", "popen", "readpipe"}, evals: []string{"eval"}, deletes: []string{"unlink", "rmdir", "glob"},
		deleteTrees: []string{"rmtree", "remove_tree"}, reads: []string{"read_file", "slurp"},
		sockets: []string{"IO::Socket", "socket(", "use Socket"}, forks: []string{"fork"}, decodes: []string{"decode_base64", "pack(", "unpack("},
		fetches: []string{"LWP::Simple", "HTTP::Tiny", "get("}, backquote: true, comment: "#",
	}
	ruby = dialect{
		name: "ruby", runs: []string{"system", "exec", "spawn", "popen", "Open3.capture2", "Open3.capture3", "Open3.popen3", "capture2e", "syscall", "%x"},
		evals: []string{"eval", "instance_eval", "class_eval"}, deletes: []string{"File.delete", "File.unlink", "FileUtils.rm", "rm_f", "Dir.rmdir", "unlink"},
		deleteTrees: []string{"rm_rf", "rm_r", "remove_dir", "remove_entry_secure", "rmtree"}, reads: []string{"File.read", "IO.read", "File.open", "File.readlines", "IO.readlines"},
		writes: []string{"File.write", "IO.write"}, sockets: []string{"TCPSocket", "TCPServer", "UDPSocket", "Socket.tcp"}, forks: []string{"fork"},
		decodes: []string{"Base64.decode64", "unpack("}, fetches: []string{"open-uri", "URI.open", "Net::HTTP.get"}, backquote: true, comment: "#",
	}
	php = dialect{
		name: "php", runs: []string{"system", "exec", "shell_exec", "passthru", "popen", "proc_open", "pcntl_exec"}, evals: []string{"eval", "assert", "create_function"},
		deletes: []string{"unlink", "rmdir"}, reads: []string{"file_get_contents", "readfile", "fopen", "file"}, writes: []string{"file_put_contents"},
		sockets: []string{"fsockopen", "socket_create", "stream_socket_client", "pfsockopen", "socket_connect", "stream_socket_server"}, forks: []string{"pcntl_fork"},
		decodes: []string{"base64_decode", "gzinflate", "str_rot13", "gzuncompress", "hex2bin"}, fetches: []string{"curl_exec", "file_get_contents(\"http", "file_get_contents('http"},
		backquote: true, comment: "//",
	}
	lua = dialect{
		name: "lua", runs: []string{"os.execute", "io.popen"}, evals: []string{"load", "loadstring"}, deletes: []string{"os.remove"},
		reads: []string{"io.open", "io.lines"}, sockets: []string{"socket.tcp", "require('socket')", `require("socket")`, "socket.connect", "uv.new_tcp"}, comment: "--",
	}
	tcl = dialect{name: "tcl", runs: []string{"exec", "spawn"}, deletes: []string{"file delete"}, sockets: []string{"[socket", "set s [socket"}, comment: "#"}
)

// ParsePerl reads Perl.
func ParsePerl(text string, b *effect.Budget) effect.Result { return scan(&perl, text, b) }

// ParseRuby reads Ruby.
func ParseRuby(text string, b *effect.Budget) effect.Result { return scan(&ruby, text, b) }

// ParsePHP reads PHP.
func ParsePHP(text string, b *effect.Budget) effect.Result { return scan(&php, text, b) }

// ParseLua reads Lua.
func ParseLua(text string, b *effect.Budget) effect.Result { return scan(&lua, text, b) }

// ParseTcl reads Tcl and expect scripts.
func ParseTcl(text string, b *effect.Budget) effect.Result { return scan(&tcl, text, b) }
