package audit

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds a line, in bytes: the largest text that can be judged, escaped,
// and room for what stands around it.
const maxLine = 64 << 20

// errTorn says that a file ends in the middle of a line.
var errTorn = errors.New("the last line is incomplete")

// lines reads a log line by line.
type lines struct {
	r    *bufio.Reader
	line []byte
	n    int
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, 64<<10)} }

// next returns a line without its end, valid until the next call; io.EOF behind
// the last, errTorn (and the piece) for one that was never ended.
func (l *lines) next() ([]byte, error) {
	l.line = l.line[:0]
	l.n++
	for {
		piece, err := l.r.ReadSlice('\n')
		if len(l.line)+len(piece) > maxLine {
			return nil, fmt.Errorf("line %d is longer than any record", l.n)
		}
		l.line = append(l.line, piece...)
		switch {
		case err == nil:
			return l.line[:len(l.line)-1], nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(l.line) > 0:
			return l.line, errTorn
		default:
			return nil, err
		}
	}
}

// Read calls each for the records of a log, with their lines, in the order they
// are there, until it returns false. A line is valid during the call only. Records
// that do not verify by themselves, and an incomplete last line, are passed over:
// Verify is for those. It returns how many were, and how many bytes of whole lines
// were read.
func Read(r io.Reader, each func(r Record, line []byte) bool) (unread int, size int64, err error) {
	for in := newLines(r); ; {
		line, err := in.next()
		switch {
		case errors.Is(err, io.EOF):
			return unread, size, nil
		case errors.Is(err, errTorn):
			return unread + 1, size, nil
		case err != nil:
			return unread, size, err
		}
		size += int64(len(line)) + 1
		rec, err := open(line, nil)
		if err != nil {
			unread++
			continue
		}
		if !each(rec, line) {
			return unread, size, nil
		}
	}
}

// Files are the files of a log: the old ones, oldest first, and the one that is
// written.
func Files(path string) []string {
	var all []string
	for _, old := range (&file{path: path}).files() {
		all = append(all, old.path)
	}
	return append(all, path)
}
