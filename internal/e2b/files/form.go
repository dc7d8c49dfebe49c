package files

import (
	"bytes"
	"fmt"
	"mime/multipart"
)

// File is a file to be written.
type File struct {
	// Path is relative to the home of the sandbox's user, or absolute.
	Path    string
	Content []byte
}

// Form is the body of an upload of several files, and its content type. It fails
// for a path that envd would read as another.
func Form(list []File) (body []byte, contentType string, err error) {
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	enc := &Encoder{w: &b, form: form}
	for _, f := range list {
		w, err := enc.Begin(&Part{Path: f.Path})
		if err == nil {
			_, err = w.Write(f.Content)
		}
		if err != nil {
			return nil, "", fmt.Errorf("writing %q: %w", f.Path, err)
		}
	}
	if err := enc.Close(); err != nil {
		return nil, "", fmt.Errorf("writing a form: %w", err)
	}
	return b.Bytes(), form.FormDataContentType(), nil
}
