package static

import (
	"path"
	"strings"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/place"
)

// file judges what happens to a file: the place, and the content where it is
// code.
func (a *analysis) file() {
	p := place.Resolve(a.subject.Target, a.fileHome())
	whole := effect.Span{End: len(a.subject.Text)}
	target := effect.Const(p)

	add := func(e effect.Effect) {
		e.Span, e.Target, e.Via = whole, target, "file "+a.subject.Labels[guard.LabelAction]
		a.effects = append(a.effects, e)
	}

	action := a.subject.Labels[guard.LabelAction]
	if action == "move" && a.subject.Text == "" {
		a.movedUnseen(p, add)

		return
	}

	switch action {
	case "remove":
		add(effect.Effect{Kind: effect.Delete, Flags: effect.FlagRecursive})
	case "read":
		a.fileRead(p, add)
	case "take":
		a.fileRead(p, add)
		add(effect.Effect{Kind: effect.Delete, Flags: effect.FlagRecursive})
	case "list", "watch":
		// Names are not contents, except where the name is the secret.
		if strings.HasPrefix(p, "/proc/") && place.Classify(p).Has(place.Secret|place.HostEscape) {
			add(effect.Effect{Kind: effect.Read})
		}
	case "mkdir":
	default:
		n := normalise(a.subject.Text)
		a.changed(n.changes)
		data := effect.Const(n.text)

		if len(a.subject.Text) > effect.MaxText {
			data.Text = data.Text[:effect.MaxText]
		}

		add(effect.Effect{Kind: effect.Write, Data: data})
		a.content(p, n.text)
	}
}

// fileRead judges a read. What lies behind a process's folder in /proc may be below
// any directory: the homes are what matters.
func (a *analysis) fileRead(p string, add func(effect.Effect)) {
	add(effect.Effect{Kind: effect.Read})

	if rest, ok := place.BehindProcess(p); ok {
		for _, home := range []string{place.Home, "/root", ""} {
			a.effects = append(a.effects, effect.Effect{Kind: effect.Read, Span: effect.Span{End: len(a.subject.Text)}, Target: effect.Const(home + rest), Via: "file read"})
		}
	}
}

// fileHome is what relative paths of the file API are relative to: the home of
// the user the call names.
func (a *analysis) fileHome() string {
	switch u := a.subject.Labels[guard.LabelUser]; u {
	case "":
		return place.Home
	case "root":
		return "/root"
	default:
		return "/home/" + path.Base(u)
	}
}

// movedUnseen judges a rename of a file whose text is not known.
func (a *analysis) movedUnseen(p string, add func(effect.Effect)) {
	add(effect.Effect{Kind: effect.Write, Data: effect.Unknown(0)})

	if place.Classify(p).Has(place.SelfRunning | place.AuthFile) {
		a.direct = append(a.direct, Hit{Rule: ruleUnseenSelfRunning, Detail: quote(p)})
	}
}

// content judges text that a place or its name says is code.
func (a *analysis) content(p, text string) {
	lang := normalLanguage(a.subject.Language)

	if l := byShebang(text); lang == "" && l != "" {
		lang = l
	}

	if lang == "" || lang == "unknown" {
		if l := byPath(p); l != "" {
			lang = l
		} else if place.Classify(p).Has(place.SelfRunning) && path.Ext(p) == "" {
			lang = "bash"
		}
	}

	if lang == "" {
		return
	}

	if lang == "unknown" {
		a.code("", text)

		return
	}

	a.code(lang, text)
}

var ruleUnseenSelfRunning = Rule{
	ID: "unseen-self-running", Category: "persistence", Severity: High, CWE: "CWE-506",
	Seen: "it puts a file whose content was not seen where it runs by itself ({}).", Fine: "Writing the file there directly, so that its text can be judged, would be fine.",
}
