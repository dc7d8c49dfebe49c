package gateway

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/e2bguard/e2bguard/internal/e2b/route"
)

// A row that is guarded but not read would be passed blind, and one that is read
// but not in the table would never be reached.
func TestOperationsFitTheRouteTable(t *testing.T) {
	inTable := map[route.Operation]route.Default{}
	for _, row := range route.Table() {
		inTable[row.Operation] = row.Default
		op := operationOf(row.Operation)
		_, known := operations[row.Operation]
		known = known || op.answer != nil
		switch row.Default {
		case route.Guard:
			require.True(t, known, "%s is guarded, but nothing is done with it", row.Operation)
			require.True(t, op.read != nil || op.subjects != nil || op.enforce != nil || op.open != nil, "%s is guarded, but nothing of it is looked at", row.Operation)
		case route.Allow:
			require.NotEmpty(t, row.Why, "%s is passed and must say why that is safe", row.Operation)
		case route.Deny:
			require.False(t, known, "%s is denied, but something would be done with it", row.Operation)
			require.NotEmpty(t, row.Why, "%s is denied and must say what would open it", row.Operation)
		default:
			t.Errorf("%s has no default", row.Operation)
		}
	}
	for name, op := range operations {
		require.Contains(t, inTable, name, "this operation has no row")
		if op.sees != "" {
			require.True(t, op.subjects != nil || op.read != nil, "%s shows the guard nothing", name)
		}
		require.Equal(t, op.filter != nil || op.vaultFilter != nil, op.filtered != "", "%s: what is filtered is told wrongly", name)
	}
}

func TestRoutesTellsEveryRow(t *testing.T) {
	infos := Routes()
	require.Len(t, infos, len(route.Table()))
	for _, info := range infos {
		if info.Operation == string(route.ProcessStart) {
			require.Equal(t, RouteInfo{
				Plane: "envd", Method: "POST", Pattern: "/process.Process/Start", Operation: "process.start",
				Sees:     "program, arguments, working directory, environment variables that are code",
				Enforced: "wall clock, CPU seconds, memory", Filtered: "secrets, output limit, silence", Default: "guard",
			}, info)
			return
		}
	}
	t.Fatal("there is no process.start")
}
