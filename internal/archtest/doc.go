// Package archtest holds the rules of this repository that a compiler cannot
// check, as tests: who may import whom, what every package documents, and what
// must not be written.
package archtest
