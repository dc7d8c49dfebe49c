package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/e2bguard/e2bguard/caddymodule"
)

func main() {
	caddycmd.Main()
}
