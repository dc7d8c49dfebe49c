package gateway

import "slices"

// shares turns groups of clients into, for each client, the others of its
// groups. It is not passed on: whoever shares with two groups does not join them.
func shares(groups [][]string) map[string][]string {
	with := map[string][]string{}
	for _, group := range groups {
		for _, name := range group {
			for _, other := range group {
				if other != name && !slices.Contains(with[name], other) {
					with[name] = append(with[name], other)
				}
			}
		}
	}
	return with
}

// mayUse reports whether a client may act on a sandbox that another, or itself,
// has made.
func (g *Gateway) mayUse(client, owner string) bool {
	return client != "" && (client == owner || slices.Contains(g.shares[client], owner))
}
