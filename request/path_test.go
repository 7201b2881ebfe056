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
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

func TestPathStaysAsReceived(t *testing.T) {
	for _, path := range []string{
		"/v1//chat/completions", "/v1/files/a%2Fb", "/v1/files/a%252Fb", "/v1/files/a%2fb", "/v1/files/%7e~",
		"/v1beta/models/m1%3AgenerateContent", "/model/us.m-v1%3A0/invoke", "/v1/files/[x]", "/v1/files/a...b/.x/x.",
		"/v1/files/a+b;c=d,e", "/",
	} {
		r := post(path, "")
		if path == "/v1//chat/completions" {
			r = post(path, `{"model":"m"}`)
		}
		q := mustRead(t, r)
		for _, model := range []string{"", q.Model} {
			if got := q.Path(model); got != path {
				t.Errorf("%s became %s", path, got)
			}
		}
	}
}

func TestPathEscapesWhatMayNotStandThere(t *testing.T) {
	for raw, want := range map[string]string{
		"/v1/files/a%2Fb{c}": "/v1/files/a%2Fb%7Bc%7D",
		"/v1/files/a%2Fb\"|": "/v1/files/a%2Fb%22%7C",
		"/v1/files/a%2Fé":    "/v1/files/a%2F%C3%A9",
	} {
		plain, err := url.PathUnescape(raw)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL = &url.URL{Path: plain, RawPath: raw}
		if got := mustRead(t, r).Path(""); got != want {
			t.Errorf("%q became %q, want %q", raw, got, want)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.URL = &url.URL{Path: "/rewritten path", RawPath: "/stale%2Fone"}
	if got := mustRead(t, r).Path(""); got != "/rewritten%20path" {
		t.Errorf("a rewritten path became %q", got)
	}
}

func TestModelInPathIsReplaced(t *testing.T) {
	for _, c := range []struct{ target, model, want string }{
		{"/v1beta/models/m1:generateContent", "m2", "/v1beta/models/m2:generateContent"},
		{"/v1beta/models/m1:generateContent", "m1", "/v1beta/models/m1:generateContent"},
		{"/v1beta/models/m1:generateContent", "", "/v1beta/models/m1:generateContent"},
		{"/v1beta/models/org/m1%3AgenerateContent", "m2", "/v1beta/models/m2%3AgenerateContent"},
		{"/a%2Fb/model/m%3A0/invoke", "m:0", "/a%2Fb/model/m%3A0/invoke"},
		{"/a%2Fb/model/m%3A0/invoke", "n:1@x/y", "/a%2Fb/model/n:1@x%2Fy/invoke"},
		{"/model/m/invoke", "a b?c#d%", "/model/a%20b%3Fc%23d%25/invoke"},
		{"/openai/deployments/d%20/embeddings", "e", "/openai/deployments/e/embeddings"},
		// What would be a step upwards stays one name, which nobody has.
		{"/model/m/invoke", "..", "/model/%252E%252E/invoke"},
		{"/model/m/invoke", "a/../b", "/model/a%2F%252E%252E%2Fb/invoke"},
		{"/model/m/invoke", "a.b", "/model/a.b/invoke"},
	} {
		if got := mustRead(t, post(c.target, "{}")).Path(c.model); got != c.want {
			t.Errorf("%s for %q: %s, want %s", c.target, c.model, got, c.want)
		}
	}
}

func TestPathOfOtherRequestsIgnoresTheModel(t *testing.T) {
	q := mustRead(t, post("/v1/chat/completions?a=model", `{"model":"m"}`))
	if q.Path("n") != "/v1/chat/completions" || q.Query("n") != "a=model" {
		t.Errorf("%s?%s", q.Path("n"), q.Query("n"))
	}
}

func TestDotSegmentsAreRefused(t *testing.T) {
	for _, path := range []string{
		"/v1/../admin", "/v1/./x", "/..", "/v1/..", "/v1/%2e%2e/admin", "/v1/%2E./admin", "/v1/.%2e", "/v1/%2e",
		"/v1/..%2f..%2fadmin", "/v1/a%2f..", "/v1/a%2F.%2Fb", "/v1/..%5cadmin", `/v1/a\..\b`, "/v1/..;x/admin",
		"/v1beta/models/..%2f..%2fx:generateContent", "/model/../invoke",
	} {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(`{"model":"m"}`))
		u, err := url.ParseRequestURI(path)
		if err != nil {
			t.Fatal(err)
		}
		r.URL = u
		e := refused(t, r, testLimit)
		if e.Status != 400 || e.Code != CodeInvalid || !strings.Contains(e.Message, "segment") {
			t.Errorf("%s: %+v", path, e)
		}
	}
}

func TestQuery(t *testing.T) {
	for raw, want := range map[string]string{
		"":                       "",
		"alt=sse":                "alt=sse",
		"key=SECRET":             "",
		"alt=sse&key=SECRET":     "alt=sse",
		"key=S&alt=sse&key=S":    "alt=sse",
		"key&a=1":                "a=1",
		"%6Bey=SECRET&a=1":       "a=1",
		"Key=1&monkey=2&keys=3":  "Key=1&monkey=2&keys=3",
		"b=%2f+%20&a=1&&=&b=2":   "b=%2f+%20&a=1&&=&b=2",
		"b=2&key=S&&a=%zz&c=x;y": "b=2&&a=%zz&c=x;y",
		"model=a&deployment=b":   "model=a&deployment=b",
	} {
		r := httptest.NewRequest(http.MethodGet, "/v1/files", nil)
		r.URL.RawQuery = raw
		q := mustRead(t, r)
		if got := q.Query("m2"); got != want {
			t.Errorf("%q became %q, want %q", raw, got, want)
		}
	}
}
