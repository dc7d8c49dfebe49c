package relay

// Output is where a program wrote.
type Output uint8

// The outputs of a program.
const (
	Stdout Output = iota + 1
	Stderr
	PTY
)

// Observer is shown what a program writes while it passes, decoded. It is called
// from Read, so it must be quick.
type Observer interface {
	// Output is the next piece; it is valid during the call only.
	Output(to Output, piece []byte)
	// Missed says that about n bytes passed that could not be shown.
	Missed(to Output, n int64)
}

// Both shows what a program writes to two observers. Either may be nil.
func Both(a, b Observer) Observer {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return both{a, b}
}

type both [2]Observer

// Output implements Observer.
func (o both) Output(to Output, piece []byte) {
	o[0].Output(to, piece)
	o[1].Output(to, piece)
}

// Missed implements Observer.
func (o both) Missed(to Output, n int64) {
	o[0].Missed(to, n)
	o[1].Missed(to, n)
}
