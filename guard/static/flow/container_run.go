package flow

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// What the clients of container engines are told is told to docker or kubectl as
// well: it is reported as if it had been.

// RunsContainer reports that a call makes a container, with the options that
// matter of all its arguments.
func (m *Machine) RunsContainer(c *Call) {
	e := effect.Effect{Kind: effect.Exec, Target: effect.Const("docker"), Args: []effect.Value{effect.Const("run")}}
	for _, o := range m.containerOptions(c) {
		e.Args = append(e.Args, effect.Const(o))
	}

	for i := range c.Args {
		c.Args[i].Each(func(v Value) {
			if v.IsText() {
				e.Args = append(e.Args, v.Value())
			} else if l := listOf(v); len(l) > 0 && len(l) < maxOptions {
				for _, w := range l {
					e.Args = append(e.Args, w.Value())
				}
			}
		})
	}

	for _, k := range c.Kw {
		if k.Name == "command" || k.Name == "image" {
			e.Args = append(e.Args, k.Value.Value())
		}
	}

	m.Emit(c, e)
}

// RunsPod is RunsContainer for Kubernetes.
func (m *Machine) RunsPod(c *Call) {
	e := effect.Effect{Kind: effect.Exec, Target: effect.Const("kubectl"), Args: []effect.Value{effect.Const("create")}}

	for _, o := range m.containerOptions(c) {
		switch {
		case o == "--privileged":
			o = "privileged:true"
		case o == "--pid=host":
			o = "hostPID:true"
		case strings.HasPrefix(o, "/:"):
			o = `"hostPath":{"path":"/"`
		}

		e.Args = append(e.Args, effect.Const(o))
	}

	m.Emit(c, e)
}

// containerOptions are the options of docker's command line that stand for what
// is in the arguments of a call, at any depth.
func (m *Machine) containerOptions(c *Call) []string {
	var out []string

	room := maxVisits
	add := func(option string) {
		if len(out) < maxOptions {
			out = append(out, option)
		}
	}

	var look func(name string, v Value, depth int)

	look = func(name string, v Value, depth int) {
		if room--; depth == 0 || room < 0 {
			return
		}

		v = v.First()
		key := strings.ToLower(strings.ReplaceAll(name, "_", ""))

		switch {
		case v.Kind == Bool && v.Int != 0 && key == "privileged":
			add("--privileged")
		case v.Kind == Bool && v.Int != 0 && key == "hostpid", key == "pidmode" && v.Text == "host":
			add("--pid=host")
		case v.Kind == Bool && v.Int != 0 && key == "hostipc", key == "ipcmode" && v.Text == "host":
			add("--ipc=host")
		case key == "capadd":
			for _, it := range listOf(v) {
				add("--cap-add")
				add(it.Text)
			}
		case (key == "binds" || key == "volumes") && v.IsText():
			add("-v")
			add(v.Text)
		case key == "hostpath" && v.Table() != nil && v.Table().Values["path"].Text == "/":
			add("-v")
			add("/:/")
		}

		if t := v.Table(); v.Kind == Record {
			for _, k := range t.Keys {
				if (key == "volumes" || key == "binds") && strings.HasPrefix(k, "/") {
					add("-v")
					add(k + ":/mnt")
				}

				look(k, t.Values[k], depth-1)
			}

			return
		}

		for _, it := range listOf(v)[:min(len(listOf(v)), maxOptions)] {
			look(name, it, depth-1)
		}
	}

	const deep = 10

	for i := range c.Args {
		look("", c.Args[i], deep)
	}

	for _, k := range c.Kw {
		look(k.Name, k.Value, deep)
	}

	return out
}
