package guardapi

import "github.com/e2bguard/e2bguard/guard"

// Subjects is what the guard must see of a text.
func Subjects(text string) []guard.Subject {
	return []guard.Subject{{Kind: guard.KindTool, Target: "guard", Text: text}}
}
