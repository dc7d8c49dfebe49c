package policy

import "errors"

// Volumes says whether clients may make, fill and mount volumes. The zero value
// closes them.
type Volumes struct{ Open bool }

// ErrVolumesClosed says why a volume is refused.
var ErrVolumesClosed = errors.New("volumes are closed here; keep files in the sandbox, or ask the operator to write volumes guard")
