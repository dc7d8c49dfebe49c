package guard

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// MarshalLogObject implements zapcore.ObjectMarshaler. It never adds the
// subject's text.
func (v Verdict) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddString("decision", v.Decision.String())
	enc.AddString("guard", v.Guard)
	if v.Reasoning != "" {
		enc.AddString("reasoning", v.Reasoning)
	}
	if v.Cached {
		enc.AddBool("cached", true)
	}
	enc.AddDuration("took", v.Took)
	if len(v.Violations) > 0 {
		zap.Objects("violations", v.Violations).AddTo(enc)
	}
	return nil
}

// MarshalLogObject implements zapcore.ObjectMarshaler.
func (v Violation) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddString("type", v.Type)
	if v.CWE != "" {
		enc.AddString("cwe", v.CWE)
	}
	if v.Rule != "" {
		enc.AddString("rule", v.Rule)
	}
	return nil
}

// MarshalLogObject implements zapcore.ObjectMarshaler. It never adds the
// subject's text.
func (r Ruling) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddBool("allow", r.Allow)
	if r.FailOpen {
		enc.AddBool("fail_open", true)
	}
	if r.WouldBlock {
		enc.AddBool("would_block", true)
	}
	if r.Err != nil {
		enc.AddString("fault", FaultOf(r.Err).String())
		enc.AddString("error", r.Err.Error())
	}
	if r.Verdict.Decision == Pass || r.Verdict.Decision == Block {
		return enc.AddObject("verdict", r.Verdict)
	}
	return nil
}
