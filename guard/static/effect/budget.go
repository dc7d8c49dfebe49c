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
	left  int
	spent int
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
