package python

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
	"github.com/e2bguard/e2bguard/guard/static/flow"
)

// defineEngines defines clients of container engines.
func defineEngines(l *flow.Language) {
	root := l.Root

	run := func(m *flow.Machine, c *flow.Call) flow.Value {
		m.RunsContainer(c)

		return flow.Value{Ref: "container"}
	}
	containers := root.At("docker.containers()")
	containers.Def("run create", run)

	for name := range strings.FieldsSeq("docker.from_env() docker.DockerClient() docker.client.DockerClient() podman.PodmanClient() aiodocker.Docker()") {
		root.DefGet(name+".containers", func(*flow.Machine, *flow.Call) flow.Value { return flow.New(containers, flow.Value{}) })
	}

	// The lower client makes a host's configuration first.
	for name := range strings.FieldsSeq("docker.APIClient() docker.api.client.APIClient() docker.from_env().api") {
		root.Def(name+".create_host_config", run)
		root.Def(name+".create_container", run)
	}

	// Objects of Kubernetes are records of what they are made of.
	record := func(_ *flow.Machine, c *flow.Call) flow.Value {
		t := &flow.Table{}
		for _, k := range c.Kw {
			t.Set(k.Name, k.Value)
		}

		return flow.Value{Kind: flow.Record, X: t}
	}
	root.Def("kubernetes.client.V1()", record)
	root.At("kubernetes.client.models").Link("V1()", root.At("kubernetes.client.V1()"))
	root.Link("kubernetes_asyncio", root.At("kubernetes"))

	for _, name := range strings.Fields("create_namespaced_pod create_namespaced_deployment create_namespaced_daemon_set create_namespaced_job create_namespaced_custom_object " +
		"patch_namespaced_pod patch_namespaced_deployment create_from_dict") {
		l.Methods[name] = func(m *flow.Machine, c *flow.Call) flow.Value {
			m.RunsPod(c)

			return flow.Value{}
		}
	}

	root.Def("kubernetes.utils.create_from_dict", l.Methods["create_from_dict"])
	root.Def("httpx.HTTPTransport httpx.AsyncHTTPTransport aiohttp.UnixConnector", func(m *flow.Machine, c *flow.Call) flow.Value {
		path, ok := c.Arg(-1, "uds")
		if !ok {
			path = c.Val(0, "path")
		}

		if path.IsText() {
			m.Emit(c, effect.Effect{Kind: effect.Connect, Target: path.Value()})
		}

		return flow.Value{}
	})
}
