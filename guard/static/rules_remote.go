package static

import (
	"strings"

	"github.com/e2bguard/e2bguard/guard/static/effect"
)

// cloudDeletes are commands that remove resources that can be made again.
var cloudDeletes = map[string][]string{
	"aws":      {"terminate-instances", " delete-", " rb ", "deregister"},
	"gcloud":   {" delete"},
	"az":       {" delete"},
	"kubectl":  {"delete --all", "delete node", "delete all", "delete deployment", "delete statefulset", "drain "},
	"helm":     {" uninstall", " delete"},
	"docker":   {"system prune -a", "volume prune", "volume rm", "system prune --all", "system prune --volumes"},
	"doctl":    {" delete"},
	"flyctl":   {" destroy"},
	"wrangler": {" delete"},
	"vercel":   {" rm ", " remove"},
	"gh":       {"issue delete", "release delete", "repo archive"},
	"circleci": {" delete"},
}

// dataDeletes are commands after which data, backups or secrets are gone.
var dataDeletes = map[string][]string{
	"aws":                   {"s3 rm --recursive", "s3 sync --delete", "s3 rb --force", "delete-db-", "delete-table", "delete-secret", "schedule-key-deletion", "delete-snapshot"},
	"gsutil":                {" rm -r", " rb ", " rm -m -r"},
	"kubectl":               {"delete namespace", "delete ns ", "delete pvc", "delete pv "},
	"terraform":             {" destroy", " state rm"},
	"tofu":                  {" destroy"},
	"pulumi":                {" destroy"},
	"cdk":                   {" destroy"},
	"heroku":                {"apps:destroy", "pg:reset"},
	"redis-cli":             {"flushall", "flushdb"},
	"dropdb":                {""},
	"gh":                    {"repo delete", "api -x delete"},
	"vault":                 {" destroy", " policy delete", " metadata delete", "secrets disable"},
	"op":                    {" delete"},
	"doppler":               {" delete"},
	"rclone":                {" purge", " delete", " deletefile", " sync", " move ", " rmdirs"},
	"restic":                {" forget", " prune"},
	"borg":                  {" delete", " repo-delete", " rdelete", " prune"},
	"velero":                {" delete"},
	"kafka-topics":          {" --delete"},
	"kafka-topics.sh":       {" --delete"},
	"kafka-consumer-groups": {" --delete"},
	"kafka-acls":            {" --remove"},
	"kafka-configs":         {" --delete-config"},
	"rabbitmqctl":           {" delete_", " clear_permissions", " purge_queue", " reset"},
	"rabbitmqadmin":         {" delete", " purge"},
	"nats":                  {" delete", " del ", " purge", " rm "},
	"gitlab-runner":         {" unregister --all"},
	"etcdctl":               {" del "},
	"consul":                {"kv delete -recurse"},
	"influx":                {" delete", "bucket delete"},
	"supabase":              {"db reset", "projects delete"},
	"mongosh":               {"dropdatabase", "deletemany({})"},
	"mongo":                 {"dropdatabase", "deletemany({})"},
	"curl":                  {"/_all", "/_delete_by_query", "/dodelete"},
	"http":                  {"delete http", "delete https"},
	"java":                  {" delete-job", " delete-node", " delete-view"},
	"mysqladmin":            {" drop "},
}

// remoteTools are command lines of services that hold other people's data.
var remoteTools = setOf("stripe", "splunk", "newrelic", "pd", "ldcli", "split", "flipt", "unleash", "argocd", "wrangler", "fastly", "deck", "apigeecli", "gcloud", "az", "aws", "doctl", "linode-cli", "hcloud",
	"sendgrid", "twilio", "mc", "s3cmd", "b2", "azcopy", "pscale", "neonctl", "turso", "fly", "flyctl", "railway", "render", "netlify", "heroku", "firebase", "supabase", "eksctl", "kops", "nomad",
	"consul", "vault", "datadog-ci", "datadog", "mongocli", "atlas", "cockroach", "influx", "rabbitmqadmin", "nats", "pulsar-admin", "kafka-topics", "algolia", "cloudflared", "flarectl", "mailgun", "postmark", "gsutil", "rclone", "ibmcloud", "oci", "aliyun", "exo", "scw", "vultr-cli")

// deletesRemote sees a verb of removal in a command of such a service. Deleting
// an empty container, or one item by name, is left to delete-cloud.
func deletesRemote(f *facts, e *fact) (string, bool) {
	if !remoteTools[e.name()] {
		return "", false
	}

	verb := ""

	for i := range e.Args {
		t := strings.ToLower(e.Args[i].Text)

		switch {
		case t == "--help" || t == "-h" || strings.Contains(t, "dry-run") || strings.Contains(t, "dryrun"):
			return "", false
		case strings.HasPrefix(t, "-"):
		case oneOf(t, "delete", "destroy", "purge", "drop", "flush", "remove-all", "delete-all", "delete-batch", "wipe", "teardown", "reset"), removalVerb(t):
			verb = t
		}
	}

	return show(e.name() + " " + verb), verb != "" && verb != "delete-bucket"
}

// madeAnew says whether a database that is dropped is then made anew, as tests and
// migrations do.
func madeAnew(f *facts, e *fact) bool {
	if e.name() != "dropdb" || e.lastOperand() == "" {
		return false
	}

	made := false

	f.each(func(o *fact) {
		made = made || o.name() == "createdb" && o.lastOperand() == e.lastOperand()
	}, effect.Exec)

	return made
}

// removalVerb says whether a subcommand such as delete-table removes.
func removalVerb(t string) bool {
	for _, p := range []string{"delete-", "destroy-", "purge-", "terminate-", "deregister-", "remove-"} {
		if strings.HasPrefix(t, p) && strings.Count(t, "-") <= 4 {
			return true
		}
	}

	return false
}

// deletesBy matches an Exec against a table of verbs. A verb's words may be
// apart from each other on the command line, in their order.
func deletesBy(table map[string][]string) func(f *facts, e *fact) (string, bool) {
	return func(f *facts, e *fact) (string, bool) {
		verbs, ok := table[e.name()]
		if !ok {
			return "", false
		}

		var b strings.Builder

		for _, a := range e.Args {
			b.WriteByte(' ')
			b.WriteString(strings.ToLower(a.Text))
		}

		b.WriteByte(' ')
		line := b.String()

		if strings.Contains(line, "dry-run") || strings.Contains(line, "dryrun") || strings.Contains(line, " --help") || strings.Contains(line, " -n ") && e.name() == "restic" {
			return "", false
		}

		if e.name() == "curl" && (strings.Contains(line, " -x delete ") || strings.Contains(line, " -xdelete ") || strings.Contains(line, " --request delete ")) && storeURL(line) {
			return show(e.name() + line), true
		}

		for _, v := range verbs {
			if inOrder(line, v) {
				return show(strings.TrimSpace(e.name() + line)), true
			}
		}

		return "", false
	}
}

// storeURL says whether a request goes to a data store's collections.
func storeURL(line string) bool {
	for _, p := range []string{":9200/", ":7700/", ":8108/", "/indexes/", "/_snapshot/", ":5984/", ":8086/", ":6333/", "/collections/", "/_all"} {
		if strings.Contains(line, p) {
			return true
		}
	}

	return false
}

func inOrder(line, verb string) bool {
	if strings.Contains(line, verb) {
		return true
	}

	words := strings.Fields(verb)
	if len(words) < 2 || !strings.Contains(verb, " --") {
		return false
	}

	for _, w := range words {
		i := strings.Index(line, w)
		if i < 0 || i > 0 && line[i-1] != ' ' {
			return false
		}

		line = line[i+len(w):]
	}

	return true
}
