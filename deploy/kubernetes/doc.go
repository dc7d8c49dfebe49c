// Package kubernetes holds the manifests and the tests that keep them true.
package kubernetes
