// Copyright 2026 The llm_gateway Authors
//
// Licensed under the Apache License, Version 2.0 (the "License");
// you may not use this file except in compliance with the License.
// You may obtain a copy of the License at
//
//     http://www.apache.org/licenses/LICENSE-2.0
//
// Unless required by applicable law or agreed to in writing, software
// distributed under the License is distributed on an "AS IS" BASIS,
// WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
// See the License for the specific language governing permissions and
// limitations under the License.

package request

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"
	"testing"
)

const formType = `multipart/form-data; boundary="b-1"`

func form(body string) *http.Request {
	return post("/v1/audio/transcriptions", body, "Content-Type", formType)
}

// lines joins with CRLF.
func lines(l ...string) string { return strings.Join(l, "\r\n") }

const (
	modelField = `Content-Disposition: form-data; name="model"`
	fileField  = `Content-Disposition: form-data; name="file"; filename="a.wav"`
)

func TestFormModel(t *testing.T) {
	inner := lines("--b-1x", modelField, "", "fake", "--b-2", modelField, "", "fake", "-b-1", "x--b-1", "", "")
	for name, c := range map[string]struct{ body, model string }{
		"before": {lines("--b-1", modelField, "", "m1", "--b-1", fileField, "", "RIFF", "--b-1--", ""), "m1"},
		"after":  {lines("--b-1", fileField, "Content-Type: audio/wav", "", "RIFF\r\n\r\n--b", "--b-1", modelField, "", "m1", "--b-1--"), "m1"},
		"text like a part in a file": {
			lines("--b-1", fileField, "", inner, "--b-1", modelField, "", "m1", "--b-1--"), "m1"},
		"bare newline before a boundary": {
			lines("--b-1", fileField, "", "x\n--b-1", modelField, "", "fake", "--b-1", modelField, "", "m1", "--b-1--"), "m1"},
		"more after what looks like the end": {
			lines("--b-1", fileField, "", "x", "--b-1--x", "y", "--b-1", modelField, "", "m1", "--b-1--"), "m1"},
		"a file named model too": {
			lines("--b-1", modelField+`; filename="x"`, "", "fake", "--b-1", modelField, "", "m1", "--b-1--"), "m1"},
		"preamble, padding, epilogue": {
			lines("hello --b-1", "--b-1 \t", modelField, "", "m1", "--b-1  ", fileField, "", "x", "--b-1-- ", "--b-1", modelField, "", "fake"), "m1"},
		"bare newlines throughout": {"--b-1\n" + modelField + "\n\nm1\n--b-1--\n", "m1"},
		"another disposition":      {lines("--b-1", "Content-Disposition: x; name=model", "", "fake", "--b-1", modelField, "", "m1", "--b-1--"), "m1"},
		"other header order":       {lines("--b-1", "X: y", "content-disposition: FORM-DATA; NAME=model", "", "m1", "--b-1--"), "m1"},
		"no disposition":           {lines("--b-1", "", "x", "--b-1", modelField, "", "m1", "--b-1--"), "m1"},
		"newlines in the value":    {lines("--b-1", fileField, "", "", "--b-1", modelField, "", "m é/1:x", "--b-1--"), "m é/1:x"},
	} {
		q := mustRead(t, form(c.body))
		if q.Model != c.model || q.Stream {
			t.Errorf("%s: model %q, stream %v", name, q.Model, q.Stream)
		}
		if got := bodyOf(t, q, c.model); got != c.body {
			t.Errorf("%s: the body changed: %q", name, got)
		}
		i := strings.LastIndex(c.body, c.model)
		if want := c.body[:i] + `n"2` + c.body[i+len(c.model):]; bodyOf(t, q, `n"2`) != want {
			t.Errorf("%s: %q, want %q", name, bodyOf(t, q, `n"2`), want)
		}
	}
}

func TestBadForms(t *testing.T) {
	part := lines("--b-1", modelField, "", "m1", "")
	for name, body := range map[string]string{
		"empty":           "",
		"no boundary":     "abc",
		"missing":         lines("--b-1", fileField, "", "x", "--b-1--"),
		"twice":           part + part + "--b-1--",
		"in two cases":    part + lines("--b-1", `Content-Disposition: form-data; name="Model"`, "", "x", "--b-1--"),
		"wrong case":      lines("--b-1", `Content-Disposition: form-data; name="Model"`, "", "x", "--b-1--"),
		"only a file":     lines("--b-1", modelField+`; filename=""`, "", "m1", "--b-1--"),
		"only an escaped": lines("--b-1", modelField+`; filename*=UTF-8''x`, "", "m1", "--b-1--"),
		"empty model":     lines("--b-1", modelField, "", "", "--b-1--"),
		"no value":        lines("--b-1", modelField, "", "--b-1--"),
		"control":         lines("--b-1", modelField, "", "m\r\nx", "--b-1--"),
		"not UTF-8":       lines("--b-1", modelField, "", "m\xff", "--b-1--"),
		"long":            lines("--b-1", modelField, "", strings.Repeat("m", maxModel+1), "--b-1--"),
		"no end":          part + "--b-1",
		"cut":             lines("--b-1", modelField, "", "m1"),
		"cut header":      lines("--b-1", "Content-Dispo"),
		"bad header":      lines("--b-1", "no colon", "", "x", "--b-1--"),
		"mixed newlines":  "--b-1\r\n" + modelField + "\n\nx\r\n\r\nm1\r\n--b-1--",
		"mixed returns":   "--b-1\n" + modelField + "\n\r\nx\n\nm1\n--b-1--",
		"long header":     lines("--b-1", "X: "+strings.Repeat("y", maxPartHeader), "", "x", "--b-1--"),
		"encoded":         lines("--b-1", modelField, "Content-Transfer-Encoding: base64", "", "bTE=", "--b-1--"),
		"many parts":      strings.Repeat(lines("--b-1", fileField, "", "x", ""), maxParts+1) + "--b-1--",
	} {
		if e := refused(t, form(body), testLimit); e.Status != 400 || e.Code != CodeInvalid {
			t.Errorf("%s: %+v", name, e)
		}
	}
	for _, ct := range []string{"multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; ;"} {
		if e := refused(t, post("/v1/images/edits", part+"--b-1--", "Content-Type", ct), testLimit); e.Status != 400 {
			t.Errorf("%s: %+v", ct, e)
		}
	}
}

func TestFormStream(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "false": false, "1": false, "": false} {
		stream := lines("--b-1", `Content-Disposition: form-data; name="stream"`, "", value, "")
		body := stream + lines("--b-1", modelField, "", "m1", "--b-1--")
		if q := mustRead(t, form(body)); q.Stream != want {
			t.Errorf("%q: %v", value, q.Stream)
		}
		q := mustRead(t, post("/openai/deployments/d/audio/transcriptions", body, "Content-Type", formType))
		if q.Stream != want || q.Model != "d" || bodyOf(t, q, "other") != body {
			t.Errorf("deployment, %q: stream %v, model %q", value, q.Stream, q.Model)
		}
	}
}

func TestLargeUploadIsSpliced(t *testing.T) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	file, err := w.CreateFormFile("file", "a.wav")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write(bytes.Repeat([]byte("\r\n--\x00noise"), 512<<10)); err != nil {
		t.Fatal(err)
	}
	if err := w.WriteField("model", "whisper-1"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	q, err := Read(post("/v1/audio/transcriptions", b.String(), "Content-Type", w.FormDataContentType()), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if q.Model != "whisper-1" || bodyOf(t, q, "") != b.String() {
		t.Errorf("model %q, or the body changed", q.Model)
	}
	if bodyOf(t, q, "w2") != strings.Replace(b.String(), "whisper-1", "w2", 1) {
		t.Error("the spliced body is wrong")
	}
}

// The standard reader is the measure for what the scanner takes as the fields.
func FuzzForm(f *testing.F) {
	f.Add(lines("--b-1", modelField, "", "m1", "--b-1", fileField, "", "RIFF", "--b-1--", ""))
	f.Add(lines("x", "--b-1 ", "", "y", "--b-1", modelField, "", "", "--b-1--"))
	f.Add(lines("--b-1", fileField, "", "--b-1x", "--b-1", modelField, "X: y", "", "m", "--b-1--z", "--b-1--"))
	f.Add("--b-1\n" + modelField + "\n\nm1\n--b-1--\n")
	f.Fuzz(func(t *testing.T, body string) {
		got, err := scanForm([]byte(body), formType)
		if err != nil || got.models != 1 || got.lastName != "model" {
			return
		}
		value := body[got.from:got.to]
		want, err := standardModel(body)
		if err == nil && (len(want) != 1 || want[0] != value) {
			t.Errorf("%q: got %q, the standard reader says %q", body, value, want)
		}
	})
}

func standardModel(body string) (values []string, err error) {
	r := multipart.NewReader(strings.NewReader(body), "b-1")
	for {
		p, err := r.NextRawPart()
		if err != nil {
			if err.Error() == "EOF" {
				return values, nil
			}
			return nil, err
		}
		var value bytes.Buffer
		if _, err := value.ReadFrom(p); err != nil {
			return nil, err
		}
		if isField(p.Header, "model") {
			values = append(values, value.String())
		}
	}
}

func isField(h textproto.MIMEHeader, name string) bool {
	p := multipart.Part{Header: h}
	return strings.EqualFold(p.FormName(), name) && p.FileName() == ""
}

func BenchmarkScanForm(b *testing.B) {
	file := strings.Repeat("0123456789abcde\n", 5<<16)
	body := []byte(lines("--b-1", fileField, "", file, "--b-1", modelField, "", "m1", "--b-1--"))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if m, err := scanForm(body, formType); err != nil || m.models != 1 {
			b.Fatal(fmt.Sprint(m, err))
		}
	}
}
