package effect

// Limits of one review. They are counted in steps, never in time: a busy node
// must not change a verdict.
const (
	// DefaultSteps is the number of steps one subject may cost, all languages and
	// all embedded code together. An ordinary kilobyte costs a few hundred.
	DefaultSteps = 400_000
	// DefaultDepth is how deep code may be embedded in code.
	DefaultDepth = 8
)

// Budget counts the steps of a review. It is not safe for concurrent use; one
// review is one goroutine.
type Budget struct {
	// World is what is known of the machine; nil for nothing.
	World *World

	left  int
	spent int
	lent  []Effect
}

// NewBudget gives a budget of so many steps.
func NewBudget(steps int) *Budget { return &Budget{left: steps} }

// Spend takes n steps and says whether the work may go on. Once it has said
// no, it says no for ever.
func (b *Budget) Spend(n int) bool {
	b.spent += n
	b.left -= n

	return b.left >= 0
}

// Exhausted says whether Spend has said no.
func (b *Budget) Exhausted() bool { return b.left < 0 }

// Spent is the number of steps taken.
func (b *Budget) Spent() int { return b.spent }

// Lend gives memory that the next caller of Effects uses. A review that ends
// may so pass its memory on to the next.
func (b *Budget) Lend(buf []Effect) { b.lent = buf[:0] }

// Effects is an empty list with room for n effects, in lent memory if there is
// any.
func (b *Budget) Effects(n int) []Effect {
	buf := b.lent
	b.lent = nil

	if cap(buf) >= n {
		return buf
	}

	return make([]Effect, 0, n)
}
