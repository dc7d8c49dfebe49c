package gateway

import "strings"

// keys is one message of a person at a terminal, and what the terminal must have
// shown before the next.
type keys struct{ typed, shown string }

const shellPrompt = "P> "

// tricks are ways to have a shell on a terminal run "touch marker" although that
// is not what was typed. Every one works without the gateway: that is tried first.
func tricks() map[string][]keys {
	line := func(typed string) keys { return keys{typed, "\n\x1b[?2004l\r\x1b[?2004h" + shellPrompt} } // one that shows nothing
	ran := func(typed, output string) keys { return keys{typed, output + "\r\n\x1b[?2004h" + shellPrompt} }
	do := func(typed string) []keys { return []keys{{typed, ""}} }
	commented := line("#touch marker\r")
	said := ran("echo touch marker\r", "touch marker")

	return map[string][]keys{
		// The line itself, in every way to press Enter.
		"carriage return":        do("touch marker\r"),
		"line feed":              do("touch marker\n"),
		"operate and get next":   do("touch marker\x0f"),
		"key by key":             split("touch marker\r"),
		"after another line":     do("true\rtouch marker\r"),
		"in a list":              do("true; touch marker\r"),
		"continued inside words": {{"tou\\\r", "> "}, {"ch mar\\\r", "> "}, {"ker\r", ""}},

		// Edited into the line.
		"rubout":                     do("touch markex\x7fr\r"),
		"backspace":                  do("touch markex\br\r"),
		"word rubout":                do("touch marker x\x17\r"),
		"kernel's word rubout":       do("touch nothing/x\x17marker\r"),
		"discard":                    do("# harmless\x15touch marker\r"),
		"discard before":             do("#touch marker\x01\x06\x15\r"),
		"kill to the end":            do("touch markerxx\x1b[D\x1b[D\x0b\r"),
		"yank":                       do("touch marker\x15\x19\r"),
		"yank pop":                   do("touch marker\x15ls\x01\x0b\x19\x1by\r"),
		"kill word":                  do("x touch marker\x01\x1bd\r"),
		"backward kill word":         do("x touch marker\x01\x06\x1b\x7f\r"),
		"transpose characters":       do("touch amrker\x1bb\x06\x14\r"),
		"transpose words":            do("marker touch\x1bt\r"),
		"capitals lowered":           do("touch MARKER\x1bb\x1bl\r"),
		"capitals raised, lowered":   do("TOUCH marker\x01\x1bl\r"),
		"numeric argument":           do("touch marker\x1b2x\x1b2\x7f\r"),
		"negative argument":          do("touch marker#\x1b-\x04\r"),
		"arrows":                     do("touch mrker\x1b[D\x1b[D\x1b[D\x1b[Da\r"),
		"word arrows":                do("x touch marker\x01\x1b[1;5C\x15\r"),
		"application arrows":         do("touch mrker\x1bOD\x1bOD\x1bOD\x1bODa\r"),
		"home and delete":            do("#touch marker\x1b[H\x1b[3~\r"),
		"home and end of file":       do("#touch marker\x01\x04\r"),
		"character search":           do("touch #marker\x01\x1d#\x04\r"),
		"backward search":            do("touch #marker\x1b\x1d#\x04\r"),
		"undo":                       do("touch marker#x\x7f\x7f\x1f\x7f\r"),
		"revert":                     do("touch marker\x01#\x1b1\x1f\r"),
		"delete blanks":              do("touch   marker\x01\x1bf\x1b\\ \r"),
		"exchange point and mark":    do("#touch marker\x01\x00\x05\x18\x18\x04\r"),
		"rubout to the start":        do("#\x18\x7ftouch marker\r"),
		"comment taken away":         do("#touch marker\x1b1\x1b#"),
		"quoted control":             do("touch marker\x16\x07\x7f\r"),
		"stopped output and a quote": do("#touch marker\x01\x11\x04\r"),
		"stopped output inside":      do("touch ma\x13\x11rker\r"),
		"redraw":                     do("touch \x0cmarker\r"),
		"wide characters":            do("touch mar日本\x7f\x7fker\r"),
		"combining characters":       do("touch e\u0301\x17marker\r"),
		"a meta key":                 do("touch marker x\x1b\b\r"),
		"wrapped line":               do("#" + strings.Repeat("x", 90) + "\x15touch marker\r"),
		"wrapped, edited":            do("touch marker " + strings.Repeat("x", 90) + "\x17\r"),

		// From the history.
		"history":                   {commented, {"\x1b[A\x01\x04\r", ""}},
		"history, key by key":       append([]keys{commented}, split("\x1b[A|\x01|\x04|\r")...),
		"history, other keys":       {commented, {"\x10", ""}, {"\x01", ""}, {"\x04", ""}, {"\r", ""}},
		"history, one further":      {commented, line("true\r"), {"\x1b[A\x1b[A", ""}, {"\x01\x04", ""}, {"\r", ""}},
		"history, the first":        {commented, {"\x1b<\x01\x04", ""}, {"\r", ""}},
		"history, searched":         {commented, {"\x12mark", "mark"}, {"\x01\x04", ""}, {"\r", ""}},
		"history, searched at once": {commented, {"\x12mark\x01\x04\r", ""}},
		"history, forward":          {commented, line("true\r"), {"\x1b[A\x1b[A\x0e\x10\x01\x04", ""}, {"\r", ""}},
		"history, operate":          {commented, line("true\r"), {"\x1b[A\x1b[A\x01\x04\x0f", ""}},
		"last argument":             {ran("echo marker\r", "marker"), {"touch \x1b.\r", ""}},
		"last argument, other key":  {ran("echo marker\r", "marker"), {"touch \x1b_", ""}, {"\r", ""}},
		"first argument":            {ran("echo marker x\r", "marker x"), {"touch \x1b\x19", ""}, {"\r", ""}},
		"event":                     {said, {"!!:1*\r", ""}},
		"event, words":              {said, {"!echo:1-2\r", ""}},
		"event, modified":           {commented, {"!!:s/#//\r", ""}},
		"event, substituted":        {commented, {"^#^\r", ""}},
		"event, searched":           {said, {"!?marker?:1-$\r", ""}},
		"event, this line":          {said, {"!:1*\r", ""}},
		"event, last word":          {ran("echo marker\r", "marker"), {"touch !$\r", ""}},
		"event, all words":          {said, {"!*\r", ""}},
		"event, the line's own":     do("true touch marker; !#:1 !#:2\r"),
		"event, expanded by a key":  {said, {"!!:1*\x1b^", ""}, {"\r", ""}},
		"event, printed":            {said, {"!!:1*:p\r", "touch marker\r\n"}, {"\x1b[A", ""}, {"\r", ""}},
		"events by another letter":  {line("histchars='@^#'\r"), said, {"@@:1*\r", ""}},
		"a history of one's own":    {line("history -s touch\\ marker\r"), {"\x1b[A\r", ""}},
		"fc":                        {commented, {"fc -s '#='\r", ""}},
		"fc, an editor":             {said, {"FCEDIT=\"sed -i s/echo.//\" fc\r", ""}},
		"r":                         {said, {"fc -e 'sed -i s/echo.//' -1\r", ""}},

		// Completed.
		"command completed":         do("touc\t marker\r"),
		"command completed by key":  do("touc\x1b! marker\r"),
		"file completed":            {line("mkdir marker.d\r"), {"touch marker\t\x7f\x7f\x7f\r", ""}},
		"word completed":            {line("complete -W marker touch\r"), {"touch ma\t\r", ""}},
		"completed from a function": {line("g() { COMPREPLY=(\"touc\"\"h\"); }; complete -I -F g\r"), {"to\tmarker\r", ""}},
		"completed from history":    {ran("echo marker\r", "marker"), {"touch mar\x1b\t", ""}, {"\r", ""}},
		"all completions":           {line("touch 'marker '; complete -W marker touch\r"), {"touch ma\x1b*", ""}, {"\r", ""}},
		"menu":                      {line("complete -W marker touch\r"), {"touch ma\x1b\x1b[Z\t", ""}, {"\r", ""}},
		"a variable completed":      {line("marker=1; v=touch\r"), {"touch ${mark\t\x1b\x7f\x7f\x7fmarker\r", ""}},
		"glob expanded":             {line("mkdir -p d/touch\r"), {"d/to*\x18*\x15touch marker\r", ""}},
		"line expanded":             {line("a='touch marker' b=x\r"), {"$a\x1b\x05", ""}, {"\r", ""}},
		"alias expanded":            {line("alias t='touch  marker'\r"), {"t\r", ""}},

		// Pasted.
		"pasted":                  do("\x1b[200~touch marker\x1b[201~\r"),
		"pasted, a line":          do("\x1b[200~true\ntouch marker\n\x1b[201~\r"),
		"pasted in pieces":        {{"\x1b[200~tou", ""}, {"ch mar", ""}, {"ker\x1b[20", ""}, {"1~", ""}, {"\r", ""}},
		"pasted, then killed":     do("\x1b[200~#x\x1b[201~\x15touch marker\r"),
		"pasted, the end inside":  do("\x1b[200~#\x1b[201~\x15touch marker\x1b[201~\x7f\r"),
		"pasted twice":            do("\x1b[200~touch \x1b[201~\x1b[200~marker\x1b[201~\r"),
		"pasted output stop":      do("\x1b[200~touch ma\x11rker\x1b[201~\r"),
		"pasted, carriage return": do("\x1b[200~touch marker\r\x1b[201~\r"),

		// Given up, but not.
		"signal ignored":          {line("trap '' INT\r"), {"touch ", "touch "}, {"\x03", ""}, {"marker\r", ""}},
		"signal ignored, at once": {line("trap '' INT\r"), {"touch ", "touch "}, {"\x03marker\r", ""}},
		"stopped":                 {{"touch ", "touch "}, {"\x1a", ""}, {"marker\r", ""}},
		"aborted search":          {{"touch \x12zzz\x07", ""}, {"marker\r", ""}},

		// Keys that do something else.
		"bound":                   {line("bind '\"Z\":\"touch marker\\n\"'\r"), {"Z", ""}},
		"bound, in a variable":    {line("b=bind; $b '\"Z\": unix-line-discard'\r"), {"#Ztouch marker\r", ""}},
		"bound, quoted":           {line("b''ind '\"Z\": unix-line-discard'\r"), {"#Ztouch marker\r", ""}},
		"bound, by builtin":       {line("builtin bind '\"Z\": unix-line-discard'\r"), {"#Ztouch marker\r", ""}},
		"bound, by eval":          {line("eval \"bind '\\\"Z\\\": unix-line-discard'\"\r"), {"#Ztouch marker\r", ""}},
		"bound, in a function":    {line("f() { bind \"$@\"; }; f '\"Z\": unix-line-discard'\r"), {"#Ztouch marker\r", ""}},
		"bound, in a condition":   {line("if bind '\"Z\": unix-line-discard'; then :; fi\r"), {"#Ztouch marker\r", ""}},
		"bound, a command":        {line("bind -x '\"Z\":eval touch  marker'\r"), {"Z", ""}},
		"bound, by a file":        {line("echo '\"Z\": unix-line-discard' > keys; bind -f keys\r"), {"#Ztouch marker\r", ""}},
		"bound, by a shell":       {line("echo '\"Z\": unix-line-discard' > .inputrc\r"), {"bash --norc\r", "P> "}, {"#Ztouch marker\r", ""}},
		"bound, by an export":     {line("echo '\"Z\": unix-line-discard' > keys\r"), {"INPUTRC=keys bash --norc\r", "P> "}, {"#Ztouch marker\r", ""}},
		"edited elsewhere":        {line("export EDITOR='sed -i s/echo.//'\r"), {"echo touch marker\x18\x05", ""}},
		"kill key":                {line("stty kill Z\r"), {"#Ztouch marker\r", ""}},
		"erase key":               {line("stty erase Z\r"), {"#Ztouch marker\r", ""}},
		"kill key, quoted":        {line("s\"tty\" kill Z\r"), {"#Ztouch marker\r", ""}},
		"kill key, by a path":     {line("/bin/stty kill Z\r"), {"#Ztouch marker\r", ""}},
		"kill key, in a variable": {line("s=stty; $s kill Z\r"), {"#Ztouch marker\r", ""}},
		"kill key, by xargs":      {line("echo kill Z | xargs stty -F /dev/tty\r"), {"#Ztouch marker\r", ""}},
		"kill key, by env":        {line("env -i /bin/stty kill Z\r"), {"#Ztouch marker\r", ""}},
		"kill key, in quotes":     {line("bash -c 'stty kill Z'\r"), {"#Ztouch marker\r", ""}},
		"kill key, by find":       {line("find . -maxdepth 0 -exec stty kill Z \\;\r"), {"#Ztouch marker\r", ""}},
		"kill key, by python":     {line("python3 -c 'import termios as t; a = t.tcgetattr(0); a[6][t.VKILL] = b\"Z\"; t.tcsetattr(0, 0, a)'\r"), {"#Ztouch marker\r", ""}},
		"editing of vi":           {line("set -o vi\r"), {"#touch marker\x1b0x\r", ""}},
		"editing of vi, slowly":   {line("set -o vi\r"), {"#touch marker\x1b", ""}, {"0", ""}, {"x", ""}, {"\r", ""}},
		"editing of vi, history":  {line("set -o vi\r"), commented, {"\x1bk", ""}, {"0x", ""}, {"\r", ""}},
		"editing of vi by a key":  {line("set -o vi\r"), {"touch xmarker\x1bFxx\r", ""}},
		"comments that are none":  {line("shopt -u interactive_comments\r"), {": #; touch marker\r", ""}},
		"another locale":          {line("export LC_ALL=C\r"), {"#Q touch marker\x01\xc4\x88\r", ""}},

		// Read by something else than the line editor.
		"sh":                      {{"exec sh\r", "P> "}, {"touch marker\r", ""}},
		"sh, half a character":    {{"exec sh\r", "P> "}, {"touch marker\xc3\xa9\x7f\x7f\r", ""}},
		"sh, word rubout":         {{"exec sh\r", "P> "}, {"touch marker/x\x17\x7f\r", ""}},
		"sh, no word rubout":      {{"exec sh\r", "P> "}, {"touch marker #\x01\x0b\r", ""}},
		"sh, as if it edited":     {{"printf '\\e[?2004h'; exec sh\r", "P> "}, {"touch marker #\x01\x0b\r", ""}},
		"sh, as if it filled":     {{"printf '\\e[?1049h'; exec sh\r", "P> "}, {"touch marker #\x01\x0b\r", ""}},
		"sh, end of file":         {{"exec sh\r", "P> "}, {"touch marker;\x04\r", ""}},
		"sh, given up":            {{"exec sh\r", "P> "}, {"ls\x03", "P> "}, {"touch marker\r", ""}},
		"cat for a shell":         {{"cat | sh\r", "\n"}, {"touch marker\r", ""}},
		"cat, in halves":          {{"cat | sh\r", "\n"}, {"touch m\x04", ""}, {"arker\r", ""}},
		"cat, with an erase":      {{"cat | sh\r", "\n"}, {"touch m\x04\x7farker\r", ""}},
		"typed ahead":             {{"sleep 1\r", "\x1b[?2004l"}, {"touch marker\r", ""}},
		"typed ahead, quoted":     {{"sleep 1\r", "\x1b[?2004l"}, {"touch marker\x01#\x16\x7f\r", ""}},
		"typed ahead, as if not":  {{"printf '\\e[?2004h'; sleep 1\r", "\x1b[?2004l\r\x1b[?2004h"}, {"touch marker\x01#\x16\x7f\r", ""}},
		"read and run":            {{"read -r x; $x\r", "\n"}, {"touch marker\r", ""}},
		"read and kept":           {{"read -r x\r", "\n"}, {"touch  marker\r", "P> "}, {"$x\r", ""}},
		"read by letters":         {{"read -N 12 x; $x\r", "\n"}, {"touch marker", ""}},
		"read by letters, quoted": {{"r=read; $r -N 12 x; $x\r", "\n"}, {"touch marker", ""}},
		"read by letters, hidden": {{"n=-N; read $n 12 x; $x\r", "\n"}, {"touch marker", ""}},
		"read by letters, eval":   {{"eval 'read -N 12 x'; $x\r", "\n"}, {"touch marker", ""}},
		"read up to a letter":     {{"read -d Z x; $x\r", "\n"}, {"touch markerZ", ""}},
		"read by an editor":       {{"read -e x; $x\r", "\n"}, {"#touch marker\x01\x04\r", ""}},
		"mapfile up to a letter":  {{"mapfile -n 1 -d Z x; ${x%Z}\r", "\n"}, {"touch marker\rZ\r", ""}},
		"here-document":           {{"sh <<X\r", "> "}, {"touch marker\r", "> "}, {"X\r", ""}},
		"python":                  {{"python3 -q\r", ">>> "}, {"import os\r", ">>> "}, {"os.system('touch marker')\r", ""}},
		"python, history":         {{"python3 -q\r", ">>> "}, {"#import os; os.system('touch marker')\r", ">>> "}, {"\x1b[A\x01\x04\r", ""}},
		"python, bound":           {{"python3 -q\r", ">>> "}, {"import os, readline; readline.parse_and_bind('Z: unix-line-discard')\r", ">>> "}, {"#Zos.system('touch marker')\r", ""}},
	}
}

// split makes every letter a message of its own; of a text with bars, every part.
func split(typed string) []keys {
	parts := strings.Split(typed, "|")
	if len(parts) == 1 {
		parts = strings.Split(typed, "")
	}
	var all []keys
	for _, k := range parts {
		all = append(all, keys{k, ""})
	}
	return all
}
