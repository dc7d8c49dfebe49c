package control

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/guard"
	"github.com/e2bguard/e2bguard/internal/e2b/refusal"
	"github.com/e2bguard/e2bguard/internal/e2b/route"
	"github.com/e2bguard/e2bguard/internal/policy"
)

// standard is the policy of a gateway without options.
var standard = policy.Policy{Limits: policy.Limits{LifetimeDefault: 5 * time.Minute, LifetimeMax: time.Hour}}

func with(edit func(*policy.Policy)) policy.Policy {
	p := standard
	edit(&p)
	return p
}

// target finds the row of a pattern, as route.Identify would.
func target(t testing.TB, pattern string) route.Target {
	t.Helper()
	for _, row := range route.Table() {
		if row.Pattern == pattern && (row.Method == "POST" || row.Method == "PUT") {
			return route.Target{Plane: row.Plane, Row: row}
		}
	}
	t.Fatalf("no row for %s", pattern)
	return route.Target{}
}

// enforced decodes, enforces and encodes a body.
func enforced(t testing.TB, pattern, body string, p policy.Policy) (string, []policy.Change, *refusal.Refusal) {
	t.Helper()
	m, ref := Decode(target(t, pattern), []byte(body))
	if ref != nil {
		return "", nil, ref
	}
	changes, ref := m.Enforce(p)
	return string(m.Encode()), changes, ref
}

const (
	create   = "/sandboxes"
	create2  = "/v2/sandboxes"
	sandbox  = "/sandboxes/{sandboxID}"
	blocked  = `"allow_internet_access":false`
	closedNW = `"network":{"denyOut":["0.0.0.0/0"],"allowPublicTraffic":false}`
)

func TestCreateIsKeptWithinPolicy(t *testing.T) {
	list := with(func(p *policy.Policy) { p.Network = policy.Network{Allow: []string{"pypi.org", "*.example.com"}} })
	open := with(func(p *policy.Policy) { p.Network = policy.Network{Internet: true} })
	pause := with(func(p *policy.Policy) { p.Persistence.Pause = true })
	templates := with(func(p *policy.Policy) { p.Templates.Allow = []string{"base", "team/snap"} })
	tests := map[string]struct {
		pattern, body string
		policy        policy.Policy
		want          string
		changed       string
	}{
		"npm 2.51, nothing set": {create2, `{"templateID":"base"}`, standard,
			`{"templateID":"base","timeout":300,` + blocked + `,` + closedNW + `}`, "timeout network allowPublicTraffic"},
		"2.45, nothing set": {create, `{"templateID":"base","timeout":300,"secure":true,"allow_internet_access":true}`, standard,
			`{"templateID":"base","timeout":300,"secure":true,` + blocked + `,` + closedNW + `}`, "network allowPublicTraffic"},
		"Python": {create, `{"templateID":"base","allow_internet_access":true,"autoPause":false,"autoResume":{"enabled":false},"envVars":{"E":"1"},"metadata":{"a":"b"},"network":{"allowPublicTraffic":true,"denyOut":["0.0.0.0/0"]},"secure":true,"timeout":300}`, standard,
			`{"templateID":"base",` + blocked + `,"autoPause":false,"autoResume":{"enabled":false},"envVars":{"E":"1"},"metadata":{"a":"b"},"network":{"allowPublicTraffic":false,"denyOut":["0.0.0.0/0"]},"secure":true,"timeout":300}`, "allowPublicTraffic"},
		"already within policy": {create2, `{"templateID":"base","timeout":60,` + blocked + `,` + closedNW + `}`, standard,
			`{"templateID":"base","timeout":60,` + blocked + `,` + closedNW + `}`, ""},
		"secure is forced on v1": {create, `{"templateID":"base","timeout":60,"secure":false,` + blocked + `,` + closedNW + `}`, standard,
			`{"templateID":"base","timeout":60,"secure":true,` + blocked + `,` + closedNW + `}`, "secure"},
		"secure is added on v1": {create, `{"templateID":"base","timeout":60,` + blocked + `,` + closedNW + `}`, standard,
			`{"templateID":"base","timeout":60,` + blocked + `,` + closedNW + `,"secure":true}`, "secure"},
		"secure stays on v2": {create2, `{"templateID":"base","timeout":60,"secure":true,` + blocked + `,` + closedNW + `}`, standard,
			`{"templateID":"base","timeout":60,"secure":true,` + blocked + `,` + closedNW + `}`, ""},
		"lifetime is clamped": {create2, `{"templateID":"base","timeout":86400,` + blocked + `,` + closedNW + `}`, standard,
			`{"templateID":"base","timeout":3600,` + blocked + `,` + closedNW + `}`, "timeout"},
		"null is not set": {create2, `{"templateID":"base","timeout":null,"envVars":null,"metadata":null,"network":null,"autoPause":null,"autoResume":null,"mcp":null,"iam":null,"volumeMounts":null,"allow_internet_access":null}`, standard,
			`{"templateID":"base","timeout":300,"envVars":null,"metadata":null,` + closedNW + `,"autoPause":null,"autoResume":null,"mcp":null,"iam":null,"volumeMounts":null,` + blocked + `}`, "timeout network allowPublicTraffic"},
		"empty closed fields": {create2, `{"templateID":"base","timeout":60,"mcp":{},"iam":{},"volumeMounts":[],"network":{"rules":{},"egressProxy":null,"maskRequestHost":"","allowOut":[],"denyOut":[],"httpsPorts":[8443]}}`, standard,
			`{"templateID":"base","timeout":60,"mcp":{},"iam":{},"volumeMounts":[],"network":{"rules":{},"egressProxy":null,"maskRequestHost":"","denyOut":["0.0.0.0/0"],"httpsPorts":[8443],"allowPublicTraffic":false},` + blocked + `}`, "network allowPublicTraffic"},
		"unknown top-level fields survive": {create2, `{"futureThing":{"a":[1.50,"é\u2028",null]},"templateID":"base","timeout":60,"zz":1e400,` + blocked + `,` + closedNW + `}`, standard,
			`{"futureThing":{"a":[1.50,"é` + "\u2028" + `",null]},"templateID":"base","timeout":60,"zz":1e400,` + blocked + `,` + closedNW + `}`, ""},
		"network list": {create2, `{"templateID":"base","timeout":60}`, list,
			`{"templateID":"base","timeout":60,` + blocked + `,"network":{"allowOut":["pypi.org","*.example.com"],"denyOut":["0.0.0.0/0"],"allowPublicTraffic":false}}`, "network allowPublicTraffic"},
		"network list, client narrows": {create2, `{"templateID":"base","timeout":60,"network":{"allowOut":["API.example.com"],"denyOut":["0.0.0.0/0"],"allowPublicTraffic":false}}`, list,
			`{"templateID":"base","timeout":60,"network":{"allowOut":["api.example.com"],"denyOut":["0.0.0.0/0"],"allowPublicTraffic":false},` + blocked + `}`, "network"},
		"network list, client wants none": {create2, `{"templateID":"base","timeout":60,"allow_internet_access":false,"network":{"allowPublicTraffic":false}}`, list,
			`{"templateID":"base","timeout":60,"allow_internet_access":false,"network":{"allowPublicTraffic":false,"denyOut":["0.0.0.0/0"]}}`, ""},
		"network left to the client": {create2, `{"templateID":"base","timeout":60,"allow_internet_access":true,"network":{"allowOut":["x.test"],"denyOut":["0.0.0.0/0"]}}`, open,
			`{"templateID":"base","timeout":60,"allow_internet_access":true,"network":{"allowOut":["x.test"],"denyOut":["0.0.0.0/0"],"allowPublicTraffic":false}}`, "allowPublicTraffic"},
		"pausing allowed": {create2, `{"templateID":"base","timeout":60,"autoPause":true,"autoResume":{"enabled":true},` + blocked + `,` + closedNW + `}`, pause,
			`{"templateID":"base","timeout":60,"autoPause":true,"autoResume":{"enabled":true},` + blocked + `,` + closedNW + `}`, ""},
		"template allowed": {create2, `{"templateID":"team/snap:default","timeout":60,` + blocked + `,` + closedNW + `}`, templates,
			`{"templateID":"team/snap:default","timeout":60,` + blocked + `,` + closedNW + `}`, ""},
		"variables with quotes where nothing pastes them": {create2, `{"templateID":"base","timeout":60,"envVars":{"KEY":"-----BEGIN\n'\"\\"},` + blocked + `,` + closedNW + `}`, standard,
			`{"templateID":"base","timeout":60,"envVars":{"KEY":"-----BEGIN\n'\"\\"},` + blocked + `,` + closedNW + `}`, ""},
		"ordinary variables of an interpreter": {create2, `{"templateID":"code-interpreter-v1","timeout":60,"envVars":{"OPENAI_API_KEY":"sk-x","GREETING":"grüß dich, $USER"},` + blocked + `,` + closedNW + `}`, standard,
			`{"templateID":"code-interpreter-v1","timeout":60,"envVars":{"OPENAI_API_KEY":"sk-x","GREETING":"grüß dich, $USER"},` + blocked + `,` + closedNW + `}`, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, changes, ref := enforced(t, tt.pattern, tt.body, tt.policy)
			require.Nil(t, ref)
			assert.Equal(t, tt.want, got)
			var fields []string
			for _, c := range changes {
				fields = append(fields, c.Field)
				assert.NotEqual(t, c.From, c.To)
			}
			assert.Equal(t, tt.changed, strings.Join(fields, " "))
		})
	}
}

func TestChangesSayFromWhatToWhat(t *testing.T) {
	_, changes, ref := enforced(t, create, `{"templateID":"base","timeout":86400,"secure":false,"allow_internet_access":true,"network":{"allowPublicTraffic":true}}`, standard)
	require.Nil(t, ref)
	assert.Equal(t, []policy.Change{
		{Field: "timeout", From: "86400", To: "3600"},
		{Field: "network", From: "open", To: "blocked"},
		{Field: "allowPublicTraffic", From: "true", To: "false"},
		{Field: "secure", From: "false", To: "true"},
	}, changes)
}

// Allowed entries win over denied ones, and other fields open side doors (the
// description of SandboxNetworkConfig in E2B's API file); a timeout of 0 was read
// as "never" (e2b-dev/infra PR 3419, e2b-dev/E2B#873).
func TestCreateIsRefusedRatherThanMadeIntoSomethingElse(t *testing.T) {
	list := with(func(p *policy.Policy) { p.Network = policy.Network{Allow: []string{"pypi.org"}} })
	templates := with(func(p *policy.Policy) { p.Templates.Allow = []string{"base"} })
	tests := map[string]struct {
		fields string // besides templateID
		policy policy.Policy
		code   refusal.Code
		want   string
	}{
		"timeout zero":             {`"timeout":0`, standard, refusal.CodeInvalid, "at least 1 second"},
		"timeout negative":         {`"timeout":-1`, standard, refusal.CodeInvalid, "at least 1 second"},
		"timeout over 32 bits":     {`"timeout":2147483648`, standard, refusal.CodeInvalid, "more than E2B can hold"},
		"timeout over 64 bits":     {`"timeout":9223372036854775808`, standard, refusal.CodeInvalid, "more than E2B can hold"},
		"timeout as text":          {`"timeout":"300"`, standard, refusal.CodeInvalid, `the field "timeout" is a string; send a whole number`},
		"timeout with a fraction":  {`"timeout":300.0`, standard, refusal.CodeInvalid, "without a point or exponent"},
		"timeout with an exponent": {`"timeout":3e2`, standard, refusal.CodeInvalid, "without a point or exponent"},
		"timeout as a list":        {`"timeout":[300]`, standard, refusal.CodeInvalid, "is an array"},
		"timeout in capitals":      {`"TIMEOUT":300`, standard, refusal.CodeInvalid, `write "timeout"`},
		"timeout in two spellings": {`"timeout":60,"Timeout":86400`, standard, refusal.CodeInvalid, `write "timeout"`},
		"timeout by a folded rune": {`"envVarſ":{}`, standard, refusal.CodeInvalid, `write "envVars"`},
		"timeout twice":            {`"timeout":60,"timeout":86400`, standard, refusal.CodeInvalid, "appears twice"},
		"secure of another type":   {`"secure":"true"`, standard, refusal.CodeInvalid, "send true or false"},
		"access of another type":   {`"allow_internet_access":"false"`, standard, refusal.CodeInvalid, "send true or false"},
		"network as a list":        {`"network":[]`, standard, refusal.CodeInvalid, "send an object"},
		"allowOut as text":         {`"network":{"allowOut":"pypi.org"}`, standard, refusal.CodeInvalid, `"network.allowOut" is a string`},
		"allowOut of numbers":      {`"network":{"allowOut":[1]}`, standard, refusal.CodeInvalid, `"network.allowOut[0]" is a number`},
		"public traffic as text":   {`"network":{"allowPublicTraffic":"no"}`, standard, refusal.CodeInvalid, "send true or false"},
		"allowOut in capitals":     {`"network":{"ALLOWOUT":["*"]}`, standard, refusal.CodeInvalid, `write "network.allowOut"`},
		"network in capitals":      {`"Network":{"allowOut":["*"]}`, standard, refusal.CodeInvalid, `write "network"`},
		"metadata of numbers":      {`"metadata":{"a":1}`, standard, refusal.CodeInvalid, `"metadata.a" is a number`},
		"envVars as a list":        {`"envVars":[]`, standard, refusal.CodeInvalid, "object of strings"},
		"envVars of null":          {`"envVars":{"A":null}`, standard, refusal.CodeInvalid, `"envVars.A" is null`},
		"autoPause as text":        {`"autoPause":"true"`, standard, refusal.CodeInvalid, "send true or false"},
		"autoResume as a switch":   {`"autoResume":true`, standard, refusal.CodeInvalid, "send an object"},
		"autoResume in capitals":   {`"autoResume":{"Enabled":true}`, standard, refusal.CodeInvalid, `write "autoResume.enabled"`},
		"autoResume as text":       {`"autoResume":{"enabled":"true"}`, standard, refusal.CodeInvalid, "send true or false"},

		"autoPause":                {`"autoPause":true`, standard, refusal.CodePolicy, "persistence allow pause"},
		"autoResume":               {`"autoResume":{"enabled":true}`, standard, refusal.CodePolicy, "persistence allow pause"},
		"a host under blocked":     {`"network":{"allowOut":["evil.test"]}`, standard, refusal.CodePolicy, `"evil.test" is outside what this gateway allows`},
		"a host outside the list":  {`"network":{"allowOut":["pypi.org","*.evil.test"]}`, list, refusal.CodePolicy, `"*.evil.test" is outside`},
		"everything, with a false": {`"allow_internet_access":false,"network":{"allowOut":["0.0.0.0/0"]}`, list, refusal.CodePolicy, "wider than"},
		"everything, in halves":    {`"network":{"allowOut":["1.0.0.0/1","128.0.0.0/1"]}`, list, refusal.CodePolicy, "wider than"},
		"an unknown network field": {`"network":{"futureThing":true}`, list, refusal.CodePolicy, `"network.futureThing" is not one that e2bguard knows`},
		"egress proxy":             {`"network":{"egressProxy":{"address":"p.test:1080"}}`, list, refusal.CodePolicy, "network.egressProxy is closed"},
		"rules":                    {`"network":{"rules":{"pypi.org":[]}}`, list, refusal.CodePolicy, "network.rules is closed"},
		"mask":                     {`"network":{"maskRequestHost":"localhost"}`, list, refusal.CodePolicy, "network.maskRequestHost is closed"},
		"mcp of another type":      {`"mcp":"x"`, standard, refusal.CodeInvalid, `the field "mcp" is a string`},
		"iam":                      {`"iam":{"tokens":{}}`, standard, refusal.CodePolicy, "the field iam is closed"},
		"volumes":                  {`"volumeMounts":[{"name":"v","path":"/m"}]`, standard, refusal.CodePolicy, "the field volumeMounts is closed"},
		"variable breaks out":      {`"envVars":{"A":"x'; import os #"}`, standard, refusal.CodePolicy, `the value of "A" holds a single quote`},
		"variable's name":          {`"envVars":{"A;id":"x"}`, standard, refusal.CodePolicy, "characters other than"},
		"another variable":         {`"envVars":{"BASH_ENV=/tmp/x #":"x"}`, standard, refusal.CodePolicy, "make another variable"},
		"a variable without name":  {`"envVars":{"":"x"}`, standard, refusal.CodePolicy, "make another variable"},
		"template not listed":      {`"timeout":60`, templates, refusal.CodePolicy, `template "code-interpreter-v1" is not one of those allowed here (base)`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, pattern := range []string{create, create2} {
				_, _, ref := enforced(t, pattern, `{"templateID":"code-interpreter-v1",`+tt.fields+`}`, tt.policy)
				require.NotNil(t, ref)
				assert.Equal(t, tt.code, ref.Code)
				assert.Contains(t, ref.Reason, tt.want)
			}
		})
	}

	for body, want := range map[string]string{
		"":                    "the body of sandbox.create is missing",
		"  \n":                "the body of sandbox.create is missing",
		"null":                "send an object",
		"[]":                  "send an object",
		"{}":                  "names no template",
		`{"templateID":null}`: "names no template",
		`{"templateID":""}`:   "names no template",
		`{"templateID":1}`:    `"templateID" is a number`,
		`{"templateID":"base"}{"templateID":"x"}`: "more data follows",
		`{"templateID":"base"`:                    "ends before",
	} {
		_, _, ref := enforced(t, create2, body, standard)
		require.NotNil(t, ref, body)
		assert.Equal(t, refusal.CodeInvalid, ref.Code, body)
		assert.Contains(t, ref.Reason, want, body)
	}

	_, _, ref := enforced(t, create2, `{"templateID":"base","secure":false}`, standard)
	require.NotNil(t, ref)
	assert.Contains(t, ref.Reason, "without a token")
	_, _, ref = enforced(t, create2, `{"templateID":"base","envVars":{"A=B":"x"}}`, standard)
	require.NotNil(t, ref)
	assert.Contains(t, ref.Reason, "make another variable")
}

func TestCreateVariablesThatAreCodeAreSubjects(t *testing.T) {
	m, ref := Decode(target(t, create2), []byte(`{"templateID":"base","envVars":{"PATH":"/tmp","X":"secret","BASH_ENV":"/tmp/x"}}`))
	require.Nil(t, ref)
	labels := map[string]string{guard.LabelEnvNames: "BASH_ENV,PATH,X"}
	assert.Equal(t, []guard.Subject{
		{Kind: guard.KindCode, Language: "bash", Text: "/tmp/x", Target: "BASH_ENV", Labels: labels},
		{Kind: guard.KindCode, Text: "/tmp", Target: "PATH", Labels: labels},
	}, m.Subjects())

	m, ref = Decode(target(t, sandbox+"/timeout"), []byte(`{"timeout":1}`))
	require.Nil(t, ref)
	assert.Empty(t, m.Subjects())
}

func TestLaterOperationsKeepToTheLimits(t *testing.T) {
	all := with(func(p *policy.Policy) { p.Persistence = policy.Persistence{Pause: true, Snapshot: true, Fork: true} })
	connect, connect2 := sandbox+"/connect", "/v2"+sandbox+"/connect"
	tests := map[string]struct {
		pattern, body string
		policy        policy.Policy
		want          string // "" and no refusal: nothing is sent
		refused       string
	}{
		"connect":                        {connect, `{"timeout":60}`, standard, `{"timeout":60}`, ""},
		"connect, clamped":               {connect, `{"timeout":7200}`, standard, `{"timeout":3600}`, ""},
		"connect, missing":               {connect, `{}`, standard, `{"timeout":300}`, ""},
		"connect, zero":                  {connect, `{"timeout":0}`, standard, "", "at least 1 second"},
		"connect, no body":               {connect, ``, standard, "", "is missing"},
		"connect v2, no body":            {connect2, ``, standard, `{"timeout":300}`, ""},
		"connect v2, reboot":             {connect2, `{"memory":false}`, standard, `{"memory":false,"timeout":300}`, ""},
		"connect v2, memory as text":     {connect2, `{"memory":"no"}`, standard, "", "send true or false"},
		"resume, no body":                {sandbox + "/resume", ``, standard, `{"timeout":300}`, ""},
		"resume, spaces":                 {sandbox + "/resume", ` `, standard, `{"timeout":300}`, ""},
		"resume, clamped":                {sandbox + "/resume", `{"timeout":7200,"autoPause":false,"x":1}`, standard, `{"timeout":3600,"autoPause":false,"x":1}`, ""},
		"resume, autoPause":              {sandbox + "/resume", `{"autoPause":true}`, standard, "", "persistence allow pause"},
		"resume, autoPause allowed":      {sandbox + "/resume", `{"autoPause":true,"timeout":1}`, all, `{"autoPause":true,"timeout":1}`, ""},
		"timeout":                        {sandbox + "/timeout", `{"timeout":7200}`, standard, `{"timeout":3600}`, ""},
		"timeout, missing":               {sandbox + "/timeout", `{}`, standard, "", "is missing"},
		"timeout, null":                  {sandbox + "/timeout", `{"timeout":null}`, standard, "", "is missing"},
		"timeout, no body":               {sandbox + "/timeout", ``, standard, "", "is missing"},
		"timeout, negative":              {sandbox + "/timeout", `{"timeout":-5}`, standard, "", "at least 1 second"},
		"timeout, overflow":              {sandbox + "/timeout", `{"timeout":4294967296}`, standard, "", "more than E2B can hold"},
		"timeout, second spelling":       {sandbox + "/timeout", `{"timeout":1,"tiMeout":99999}`, standard, "", `write "timeout"`},
		"refresh":                        {sandbox + "/refreshes", `{"duration":7200}`, standard, `{"duration":3600}`, ""},
		"refresh, missing":               {sandbox + "/refreshes", `{}`, standard, `{}`, ""},
		"refresh, no body":               {sandbox + "/refreshes", ``, standard, ``, ""},
		"refresh, zero":                  {sandbox + "/refreshes", `{"duration":0}`, standard, "", "at least 1 second"},
		"fork, closed":                   {sandbox + "/fork", `{"count":2}`, standard, "", "persistence allow fork"},
		"fork":                           {sandbox + "/fork", `{"timeout":7200,"count":2}`, all, `{"timeout":3600,"count":2}`, ""},
		"fork, no body":                  {sandbox + "/fork", ``, all, `{"timeout":300}`, ""},
		"fork, too many":                 {sandbox + "/fork", `{"count":101}`, all, "", "send 1 to 100"},
		"fork, none":                     {sandbox + "/fork", `{"count":0}`, all, "", "send 1 to 100"},
		"fork, negative":                 {sandbox + "/fork", `{"count":-1}`, all, "", "send 1 to 100"},
		"pause, closed":                  {sandbox + "/pause", `{}`, standard, "", "persistence allow pause"},
		"pause":                          {sandbox + "/pause", `{"memory":false}`, all, `{"memory":false}`, ""},
		"pause, no body":                 {sandbox + "/pause", ``, all, ``, ""},
		"pause, memory as a number":      {sandbox + "/pause", `{"memory":0}`, all, "", "send true or false"},
		"snapshot, closed":               {sandbox + "/snapshots", `{}`, standard, "", "persistence allow snapshot"},
		"snapshot":                       {sandbox + "/snapshots", `{"name":"s1"}`, all, `{"name":"s1"}`, ""},
		"snapshot, name of another type": {sandbox + "/snapshots", `{"name":1}`, all, "", "send a string"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, _, ref := enforced(t, tt.pattern, tt.body, tt.policy)
			if tt.refused != "" {
				require.NotNil(t, ref)
				assert.Contains(t, ref.Reason, tt.refused)
				return
			}
			require.Nil(t, ref)
			assert.Equal(t, tt.want, got)
		})
	}
}

// PUT …/network replaces everything, and what it leaves out is open.
func TestNetworkUpdateNeverOpens(t *testing.T) {
	list := with(func(p *policy.Policy) { p.Network = policy.Network{Allow: []string{"pypi.org", "203.0.113.0/24"}} })
	const none = `{"denyOut":["0.0.0.0/0"],"allow_internet_access":false}`
	tests := map[string]struct {
		body    string
		policy  policy.Policy
		want    string
		refused string
	}{
		"empty":                     {`{}`, standard, none, ""},
		"nulls":                     {`{"denyOut":null,"allow_internet_access":null}`, standard, none, ""},
		"opened":                    {`{"allow_internet_access":true}`, standard, `{"allow_internet_access":false,"denyOut":["0.0.0.0/0"]}`, ""},
		"a denial":                  {`{"denyOut":["203.0.113.1"]}`, standard, none, ""},
		"an allowance":              {`{"allowOut":["pypi.org"],"denyOut":["0.0.0.0/0"]}`, standard, "", `"pypi.org" is outside`},
		"everything":                {`{"allow_internet_access":false,"allowOut":["0.0.0.0/0"]}`, standard, "", "wider than"},
		"egress proxy":              {`{"egressProxy":{"address":"p.test:1"}}`, standard, "", "egressProxy is closed"},
		"rules":                     {`{"rules":{"a.test":[]}}`, standard, "", "rules is closed"},
		"unknown":                   {`{"futureThing":1}`, standard, "", "is not one that e2bguard knows"},
		"create's fields":           {`{"allowPublicTraffic":true}`, standard, "", "is not one that e2bguard knows"},
		"another spelling":          {`{"AllowOut":["*"]}`, standard, "", `write "allowOut"`},
		"no body":                   {``, standard, "", "is missing"},
		"list, empty":               {`{}`, list, `{"allowOut":["pypi.org","203.0.113.0/24"],"denyOut":["0.0.0.0/0"],"allow_internet_access":false}`, ""},
		"list, within":              {`{"allowOut":["203.0.113.7"]}`, list, `{"allowOut":["203.0.113.7"],"denyOut":["0.0.0.0/0"],"allow_internet_access":false}`, ""},
		"list, outside":             {`{"allowOut":["203.0.114.7"]}`, list, "", `"203.0.114.7" is outside`},
		"left to the client":        {`{}`, with(func(p *policy.Policy) { p.Network.Internet = true }), `{}`, ""},
		"left to the client, rules": {`{"rules":{"a.test":[]}}`, with(func(p *policy.Policy) { p.Network.Internet = true }), "", "rules is closed"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, _, ref := enforced(t, sandbox+"/network", tt.body, tt.policy)
			if tt.refused != "" {
				require.NotNil(t, ref)
				assert.Contains(t, ref.Reason, tt.refused)
				return
			}
			require.Nil(t, ref)
			assert.Equal(t, tt.want, got)
		})
	}
}

func TestEveryGuardedRowOfTheControlPlaneIsRead(t *testing.T) {
	// Those without a body of JSON.
	others := []route.Operation{route.TemplateDelete, route.TemplateFile, route.TemplateFileUpload, route.VolumeInfo, route.VolumeDelete}
	for _, row := range route.Table() {
		if row.Plane == route.Control && !slices.Contains(others, row.Operation) {
			assert.Equal(t, row.Default == route.Guard, Reads(row.Operation), row.Operation)
		}
	}
	_, ref := Decode(route.Target{Row: route.Row{Operation: route.SandboxKill}}, []byte(`{}`))
	require.NotNil(t, ref)
}
