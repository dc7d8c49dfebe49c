package envd

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Frame flags of the Connect protocol.
const (
	flagCompressed = 1 << 0
	flagEndStream  = 1 << 1
	frameHeader    = 5
)

// errTooLarge says that a message is larger than the caller allows.
var errTooLarge = errors.New("message is too large")

// maxEndStream bounds the payload of a client's end-of-stream frame, which
// carries nothing.
const maxEndStream = 4 << 10

// readUnaryStream reads the one message of a server-streaming call. The message
// may be followed by an empty end-of-stream frame, and by nothing else.
func readUnaryStream(r io.Reader, gzipped bool, maxBytes int64) ([]byte, error) {
	flags, payload, err := readFrame(r, maxBytes)
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the body has no message")
	}
	if err != nil {
		return nil, err
	}
	switch {
	case flags == flagCompressed && !gzipped:
		return nil, errors.New("a compressed message needs Connect-Content-Encoding: gzip")
	case flags != 0 && flags != flagCompressed:
		return nil, fmt.Errorf("frame flags 0x%02x are not those of a message", flags)
	}
	if flags == flagCompressed {
		if payload, err = inflate(payload, maxBytes); err != nil {
			return nil, err
		}
	}
	return payload, readEnd(r)
}

// readEnd checks that nothing but an empty end-of-stream frame follows.
func readEnd(r io.Reader) error {
	flags, payload, err := readFrame(r, maxEndStream)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("after the message: %w", err)
	}
	if flags != flagEndStream {
		return errors.New("more than one message in a call that takes one")
	}
	return checkEnd(payload, r)
}

// checkEnd checks a client's end-of-stream frame, which is empty and the last.
func checkEnd(payload []byte, r io.Reader) error {
	var end map[string]json.RawMessage
	if err := json.Unmarshal(payload, &end); err != nil || len(end) != 0 {
		return errors.New("the end-of-stream frame of a request must be empty")
	}
	if n, _ := io.ReadFull(r, make([]byte, 1)); n != 0 {
		return errors.New("bytes after the end of the stream")
	}
	return nil
}

// readFrame reads one frame; io.EOF means that there is none.
func readFrame(r io.Reader, maxBytes int64) (flags byte, payload []byte, err error) {
	var head [frameHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, nil, errors.New("the body ends inside a frame's header")
		}
		return 0, nil, err
	}
	size := int64(binary.BigEndian.Uint32(head[1:]))
	if size > maxBytes {
		return 0, nil, errTooLarge
	}
	// The length is the client's word: grow as bytes come.
	payload, err = io.ReadAll(io.LimitReader(r, size))
	if err != nil {
		return 0, nil, err
	}
	if int64(len(payload)) != size {
		return 0, nil, fmt.Errorf("the frame promises %d bytes and has %d", size, len(payload))
	}
	return head[0], payload, nil
}

// readBare reads the one message of a unary call.
func readBare(r io.Reader, gzipped bool, maxBytes int64) ([]byte, error) {
	payload, err := readCapped(r, maxBytes)
	if err != nil {
		return nil, err
	}
	if gzipped {
		return inflate(payload, maxBytes)
	}
	return payload, nil
}

// inflate decompresses gzip, of one member or several, as connect-go does: an
// empty payload stays empty.
func inflate(payload []byte, maxBytes int64) ([]byte, error) {
	if len(payload) == 0 {
		return nil, nil
	}
	z, err := gzip.NewReader(bufio.NewReader(bytes.NewReader(payload)))
	if err != nil {
		return nil, fmt.Errorf("reading gzip: %w", err)
	}
	out, err := readCapped(z, maxBytes)
	if err != nil && !errors.Is(err, errTooLarge) {
		return nil, fmt.Errorf("reading gzip: %w", err)
	}
	return out, err
}

func readCapped(r io.Reader, maxBytes int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > maxBytes {
		return nil, errTooLarge
	}
	return b, nil
}

func appendFrame(b []byte, flags byte, payload []byte) []byte {
	b = append(b, flags)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	return append(b, payload...)
}
