package control

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/e2bguard/e2bguard/internal/e2b/strictjson"
	"github.com/e2bguard/e2bguard/internal/policy"
)

// Terms are what a sandbox must report of itself when it is read back.
type Terms struct {
	// Network is the policy that its outbound traffic must keep to.
	Network policy.Network
	// AllowOut is what was asked for, if Exact; it must not report more. Else it
	// must not report more than policy allows.
	AllowOut []string
	Exact    bool
	// Lifetime is the longest it may live from its start; 0 for any.
	Lifetime time.Duration
	// Legacy takes a field that is not reported for one that holds: the API is too
	// old to report it.
	Legacy bool
}

// lifetimeSlack is how much longer than asked a sandbox may report to live: E2B
// starts counting when it is up.
const lifetimeSlack = 30 * time.Second

// Terms are what a call for new sandboxes asks E2B for.
func (m *message) Terms(n policy.Network) Terms {
	t := Terms{Network: n}
	if seconds, set := getInt(m.object, "timeout"); set {
		t.Lifetime = time.Duration(seconds) * time.Second
	}
	value, _ := m.object.Get("network")
	if network, ok := value.(*strictjson.Object); ok {
		t.Exact, t.AllowOut = true, getTexts(network, "allowOut")
	}
	return t
}

// Check reads E2B's answer about one sandbox and returns an error that says what
// of the terms the sandbox does not keep.
func (t Terms) Check(body []byte, id string) error {
	answer, err := DecodeAnswer(body)
	if err != nil {
		return err
	}
	if len(answer.sandboxes) != 1 || answer.infos[0].ID != id {
		return errors.New("E2B's answer is about another sandbox")
	}
	o, info := answer.sandboxes[0], answer.infos[0]
	return errors.Join(t.checkNetwork(o), t.checkLifetime(info))
}

func (t Terms) checkLifetime(info SandboxInfo) error {
	switch lives := info.EndAt.Sub(info.StartedAt); {
	case t.Lifetime == 0:
		return nil
	case info.EndAt.IsZero() || info.StartedAt.IsZero():
		return t.absent("startedAt and endAt")
	case lives > t.Lifetime+lifetimeSlack:
		return fmt.Errorf("it reports a lifetime of %s instead of %s", lives.Round(time.Second), t.Lifetime)
	default:
		return nil
	}
}

func (t Terms) checkNetwork(o *strictjson.Object) error {
	value, _ := o.Get("network")
	network, ok := value.(*strictjson.Object)
	if !ok {
		if value != nil {
			return fmt.Errorf("its network is %s", strictjson.TypeName(value))
		}
		if err := t.absent("network"); err != nil {
			return err
		}
		network = strictjson.NewObject()
	}
	if err := check(network, networkFields, "network."); err != nil {
		return err
	}
	var problems []error
	if public, set := getBool(network, "allowPublicTraffic"); !set {
		problems = append(problems, t.absent("network.allowPublicTraffic"))
	} else if public {
		problems = append(problems, errors.New("its ports are open to everybody"))
	}
	if !t.Network.Internet {
		problems = append(problems, t.checkOutbound(o, network))
	}
	return errors.Join(problems...)
}

func (t Terms) checkOutbound(o, network *strictjson.Object) error {
	var problems []error
	for _, f := range closedNetworkFields {
		if value, _ := network.Get(f.name); !isEmpty(value) {
			problems = append(problems, fmt.Errorf("it reports network.%s, which was not asked for", f.name))
		}
	}
	value, _ := o.Get("allowInternetAccess")
	if access, ok := value.(bool); ok && access {
		problems = append(problems, errors.New("it reports access to the internet"))
	} else if !ok {
		problems = append(problems, t.absent("allowInternetAccess"))
	}
	denied := getTexts(network, "denyOut")
	if _, set := network.Get("denyOut"); !set {
		problems = append(problems, t.absent("network.denyOut"))
	} else if !slices.Contains(denied, "0.0.0.0/0") {
		problems = append(problems, errors.New("it does not deny what is not allowed"))
	}
	allowed := getTexts(network, "allowOut")
	if !t.Exact {
		if len(allowed) > 0 {
			_, err := t.Network.Grant(policy.NetworkAsk{AllowOut: allowed})
			problems = append(problems, err)
		}
		return errors.Join(problems...)
	}
	for _, entry := range allowed {
		if !slices.ContainsFunc(t.AllowOut, func(asked string) bool { return strings.EqualFold(asked, entry) || asked+"/32" == entry }) {
			problems = append(problems, fmt.Errorf("it may reach %s, which was not asked for", shorten(entry)))
		}
	}
	return errors.Join(problems...)
}

// absent is the error for a field that is not reported.
func (t Terms) absent(name string) error {
	if t.Legacy {
		return nil
	}
	return fmt.Errorf("E2B does not report %s", name)
}
