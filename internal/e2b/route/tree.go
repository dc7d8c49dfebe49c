package route

import "strings"

// node is a segment of the patterns of one plane and method. A literal child
// wins over the variable one, which wins over the rest.
type node struct {
	literal  map[string]*node
	variable *node
	row      *entry
	rest     *entry
}

// entry is a row made ready for matching.
type entry struct {
	Row
	names []string // the variables, in order
}

// trees holds one tree per plane and method, "*" being a method of its own.
var trees = buildTrees(table)

// treeKey avoids a nested map on the path of every call.
type treeKey struct {
	plane  Plane
	method string
}

func buildTrees(rows []Row) map[treeKey]*node {
	out := map[treeKey]*node{}
	for _, row := range rows {
		key := treeKey{row.Plane, row.Method}
		if out[key] == nil {
			out[key] = &node{}
		}
		out[key].insert(row)
	}
	return out
}

func (n *node) insert(row Row) {
	e := &entry{Row: row}
	for _, seg := range strings.Split(row.Pattern, "/")[1:] {
		name, isVariable := strings.CutPrefix(seg, "{")
		name = strings.TrimSuffix(name, "}")
		switch {
		case strings.HasSuffix(name, "..."):
			n.rest = e
			return
		case isVariable:
			e.names = append(e.names, name)
			if n.variable == nil {
				n.variable = &node{}
			}
			n = n.variable
		default:
			if n.literal == nil {
				n.literal = map[string]*node{}
			}
			if n.literal[seg] == nil {
				n.literal[seg] = &node{}
			}
			n = n.literal[seg]
		}
	}
	n.row = e
}

// find returns the entry for decoded segments. It backs out of a literal branch
// that leads nowhere, so no row hides another.
func (n *node) find(segs []string) *entry {
	if n == nil {
		return nil
	}
	if len(segs) == 0 {
		if n.row != nil {
			return n.row
		}
		return n.rest
	}
	if e := n.literal[segs[0]].find(segs[1:]); e != nil {
		return e
	}
	if e := n.variable.find(segs[1:]); e != nil {
		return e
	}
	return n.rest
}

// lookup finds the row for a plane, method and decoded segments.
func lookup(plane Plane, method string, segs []string) *entry {
	if e := trees[treeKey{plane, method}].find(segs); e != nil {
		return e
	}
	return trees[treeKey{plane, "*"}].find(segs)
}

// values returns the variables of a matched entry, nil if it has none.
func (e *entry) values(segs []string) map[string]string {
	if len(e.names) == 0 {
		return nil
	}
	params := make(map[string]string, len(e.names))
	next := 0
	for i, pattern := 0, e.Pattern[1:]; pattern != ""; i++ {
		seg, rest, _ := strings.Cut(pattern, "/")
		if seg[0] == '{' {
			params[e.names[next]] = segs[i]
			next++
		}
		pattern = rest
	}
	return params
}
