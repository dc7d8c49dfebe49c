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
