package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/e2bguard/e2bguard/guard/static/program"
)

// sideEffects runs the substitutions inside tests and arithmetic.
func (e *eval) sideEffects(n syntax.Node) {
	syntax.Walk(n, func(x syntax.Node) bool {
		if cs, ok := x.(*syntax.CmdSubst); ok {
			e.part(cs, true)

			return false
		}

		return e.budget.Spend(1)
	})
}

// arithRef names the many numbers an expression goes through.
func (e *eval) arithRef(x syntax.ArithmExpr) string {
	ref := ""

	if x == nil {
		return ""
	}

	syntax.Walk(x, func(n syntax.Node) bool {
		if l, ok := n.(*syntax.Lit); ok && ref == "" {
			if v, ok := e.vars[l.Value]; ok && strings.HasPrefix(v.val.Ref, program.ManyRef) {
				ref = v.val.Ref
			}
		}

		return ref == ""
	})

	return ref
}

// arith evaluates arithmetic on known numbers.
func (e *eval) arith(x syntax.ArithmExpr, depth int) (int, bool) {
	if depth > 64 || !e.budget.Spend(1) {
		return 0, false
	}

	switch x := x.(type) {
	case *syntax.Word:
		v := e.word(x)
		if n, ok := number(v.Text); ok {
			return n, true
		}

		if cur, ok := e.vars[v.Text]; ok {
			return number(cur.val.Text)
		}
	case *syntax.ParenArithm:
		return e.arith(x.X, depth+1)
	case *syntax.UnaryArithm:
		n, ok := e.arith(x.X, depth+1)

		switch x.Op {
		case syntax.Minus:
			return -n, ok
		case syntax.Plus:
			return n, ok
		case syntax.BitNegation:
			return ^n, ok
		}
	case *syntax.BinaryArithm:
		a, ok1 := e.arith(x.X, depth+1)
		b, ok2 := e.arith(x.Y, depth+1)

		if ok1 && ok2 {
			return binary(x.Op, a, b)
		}
	}

	return 0, false
}

func number(s string) (int, bool) {
	if base, digits, ok := strings.Cut(s, "#"); ok {
		if b, err := strconv.Atoi(base); err == nil && b >= 2 && b <= 36 {
			n, err := strconv.ParseInt(digits, b, 32)

			return int(n), err == nil
		}
	}

	n, err := strconv.ParseInt(s, 0, 32)

	return int(n), err == nil
}

func binary(op syntax.BinAritOperator, a, b int) (int, bool) {
	switch op {
	case syntax.Add:
		return a + b, true
	case syntax.Sub:
		return a - b, true
	case syntax.Mul:
		return a * b, true
	case syntax.Quo:
		if b != 0 {
			return a / b, true
		}
	case syntax.Rem:
		if b != 0 {
			return a % b, true
		}
	case syntax.Shl:
		if b >= 0 && b < 31 {
			return a << b, true
		}
	case syntax.Shr:
		if b >= 0 && b < 31 {
			return a >> b, true
		}
	case syntax.And:
		return a & b, true
	case syntax.Or:
		return a | b, true
	case syntax.Xor:
		return a ^ b, true
	case syntax.Pow:
		if b >= 0 && b < 16 && a > -16 && a < 16 {
			n := 1
			for range b {
				n *= a
			}

			return n, true
		}
	}

	return 0, false
}
