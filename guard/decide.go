package guard

// Mode is the operator's word on what happens when guards fail or say no.
type Mode struct {
	// AllowOnError lets a call run when no verdict could be had (on_error
	// allow). Faults of configuration, such as a refused guard key, block even
	// then.
	AllowOnError bool
	// Shadow decides and records, and never blocks.
	Shadow bool
}
