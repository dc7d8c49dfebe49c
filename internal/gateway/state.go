package gateway

// State is what must outlive a reload of the configuration: what is known about
// running sandboxes.
type State struct{}
