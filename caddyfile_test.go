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

package llmgateway

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

var updateFixtures = flag.Bool("update", false, "rewrite the JSON of the Caddyfile fixtures, never their errors")

// separator stands between a fixture's Caddyfile and the handler's JSON, or the
// error, that it is adapted to.
const separator = "\n----------\n"

func adapt(t *testing.T, config string) ([]byte, error) {
	t.Helper()
	adapted, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt([]byte(config), map[string]any{"filename": "Caddyfile"})
	if len(warnings) > 0 {
		t.Errorf("warnings: %v", warnings)
	}
	return adapted, err
}

// route returns the only route of the only server.
func route(t *testing.T, adapted []byte) (match, handler json.RawMessage) {
	t.Helper()
	var config struct {
		Apps struct {
			HTTP struct {
				Servers map[string]struct {
					Routes []struct {
						Match  json.RawMessage   `json:"match"`
						Handle []json.RawMessage `json:"handle"`
					} `json:"routes"`
				} `json:"servers"`
			} `json:"http"`
		} `json:"apps"`
	}
	if err := json.Unmarshal(adapted, &config); err != nil {
		t.Fatal(err)
	}
	r := config.Apps.HTTP.Servers["srv0"].Routes[0]
	return r.Match, r.Handle[0]
}

// configOf reads the JSON of a handler as Caddy does.
func configOf(t *testing.T, handler []byte) *Config {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(handler, &fields); err != nil {
		t.Fatal(err)
	}
	if string(fields["handler"]) != `"llm_gateway"` {
		t.Fatalf("handler is %s", fields["handler"])
	}
	delete(fields, "handler")
	rest, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	config := new(Config)
	if err := caddy.StrictUnmarshalJSON(rest, config); err != nil {
		t.Fatal(err)
	}
	return config
}

func TestCaddyfileFixtures(t *testing.T) {
	files, err := filepath.Glob("testdata/caddyfile/*.caddytest")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".caddytest"), func(t *testing.T) {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			config, want, ok := strings.Cut(string(content), separator)
			if !ok {
				t.Fatal("the fixture has no separator")
			}
			if strings.HasPrefix(filepath.Base(file), "error_") {
				expectError(t, config, strings.TrimSpace(want))
				return
			}
			if got := adaptedHandler(t, config+"\n"); got != strings.TrimSpace(want) {
				if !*updateFixtures {
					t.Fatalf("adapted to\n%s", got)
				}
				if err := os.WriteFile(file, []byte(config+separator+got+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

var namesFileAndLine = regexp.MustCompile(`at Caddyfile:[1-9]\d*$`)

func expectError(t *testing.T, config, want string) {
	t.Helper()
	adapted, err := adapt(t, config+"\n")
	if err == nil {
		t.Fatalf("adapted to %s", adapted)
	}
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	if !namesFileAndLine.MatchString(want) {
		t.Errorf("no file and line in %q", want)
	}
}

// adaptedHandler returns the handler's JSON, which must pass the checks that a
// configuration in JSON gets.
func adaptedHandler(t *testing.T, config string) string {
	t.Helper()
	adapted, err := adapt(t, config)
	if err != nil {
		t.Fatal(err)
	}
	_, handler := route(t, adapted)
	if err := configOf(t, handler).check(); err != nil {
		t.Errorf("the adapted JSON fails its check: %v", err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, handler, "", "\t"); err != nil {
		t.Fatal(err)
	}
	return pretty.String()
}

func TestEveryOptionHasAFixture(t *testing.T) {
	var all strings.Builder
	files, _ := filepath.Glob("testdata/caddyfile/*.caddytest")
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		config, _, _ := strings.Cut(string(content), separator)
		all.WriteString(config)
	}
	written := func(depth int, name string) bool {
		return regexp.MustCompile(`\n\t{` + string(rune('0'+depth)) + `}` + name + `\b`).MatchString(all.String())
	}
	for name := range gatewayOptions {
		if !written(2, name) {
			t.Errorf("no fixture writes %s in a gateway", name)
		}
	}
	for name := range channelOptions {
		if !written(3, name) {
			t.Errorf("no fixture writes %s in a channel", name)
		}
	}
	for name := range breakerOptions {
		if !written(3, name) {
			t.Errorf("no fixture writes %s in a breaker block", name)
		}
	}
	for name := range autoDisableOptions {
		if !written(3, name) {
			t.Errorf("no fixture writes %s in an auto_disable block", name)
		}
	}
}

func TestNameStandsAfterTheMatcher(t *testing.T) {
	const channel = " {\n\t\tchannel a {\n\t\t\tbase_url https://a.example\n\t\t}\n\t}\n}\n"
	for _, tc := range []struct{ args, match, name string }{
		{"", ``, ""},
		{" prod", ``, "prod"},
		{" *", ``, ""},
		{" * prod", ``, "prod"},
		{" /v1/*", `[{"path":["/v1/*"]}]`, ""},
		{" /v1/* prod", `[{"path":["/v1/*"]}]`, "prod"},
	} {
		adapted, err := adapt(t, ":8080 {\n\tllm_gateway"+tc.args+channel)
		if err != nil {
			t.Errorf("llm_gateway%s: %v", tc.args, err)
			continue
		}
		match, handler := route(t, adapted)
		if name := configOf(t, handler).Name; string(match) != tc.match || name != tc.name {
			t.Errorf("llm_gateway%s: matcher %s, name %q; want %s, %q", tc.args, match, name, tc.match, tc.name)
		}
	}
}

func TestNamedMatcher(t *testing.T) {
	adapted, err := adapt(t, ":8080 {\n\t@chat path /v1/chat/*\n\tllm_gateway @chat prod {\n\t\tchannel a {\n\t\t\tbase_url https://a.example\n\t\t}\n\t}\n}\n")
	if err != nil {
		t.Fatal(err)
	}
	match, handler := route(t, adapted)
	if name := configOf(t, handler).Name; string(match) != `[{"path":["/v1/chat/*"]}]` || name != "prod" {
		t.Errorf("matcher %s, name %q", match, name)
	}
}

func TestStandsBeforeReverseProxy(t *testing.T) {
	adapted, err := adapt(t, ":8080 {\n\treverse_proxy localhost:1\n\tllm_gateway {\n\t\tchannel a {\n\t\t\tbase_url https://a.example\n\t\t}\n\t}\n}\n")
	if err != nil {
		t.Fatal(err)
	}
	if _, handler := route(t, adapted); !bytes.Contains(handler, []byte(`"llm_gateway"`)) {
		t.Errorf("the first handler is %s", handler)
	}
}

// The machine that adapts may have another environment than the one that loads.
func TestBaseURLWithPlaceholderIsTakenOnTrustUntilLoad(t *testing.T) {
	const config = "llm_gateway {\n\tchannel a {\n\t\tbase_url {env.LLM_GATEWAY_TEST_URL}\n\t\tkey {env.LLM_GATEWAY_TEST_KEY}\n\t}\n}"
	c := new(Config)
	if err := c.UnmarshalCaddyfile(caddyfile.NewTestDispenser(config)); err != nil {
		t.Fatal(err)
	}
	if err := c.check(); err == nil || err.Error() != "channel a: base_url is missing" {
		t.Errorf("without a value: %v", err)
	}
	t.Setenv("LLM_GATEWAY_TEST_URL", "https://a.example/v1")
	if err := c.check(); err != nil {
		t.Errorf("with a value: %v", err)
	}
}

func TestErrorsInImportsNameTheirFile(t *testing.T) {
	_, err := adapt(t, "(ch) {\n\tchannel {args[0]} {\n\t\tbase_url https://a.example\n\t\tbackup {args[1]}\n\t}\n}\n\n"+
		":8080 {\n\tllm_gateway {\n\t\timport ch a b\n\t\timport ch b a\n\t}\n}\n")
	if err == nil || !strings.Contains(err.Error(), "channel b: backup leads back to itself: a > b > a, at Caddyfile:4 import chain ['Caddyfile:11 (import ch)']") {
		t.Errorf("got %v", err)
	}
}

// No argument that may be a key is repeated in an error.
func TestErrorsRepeatNoSecret(t *testing.T) {
	const secret = "sk-verysecret"
	for _, line := range []string{
		"auth " + secret,
		"auth bearer " + secret,
		"auth header Bad@Name " + secret,
		"auth Bearer " + secret + " x",
		"key " + secret + " " + secret,
		"header_up Authorization " + secret,
		"header_up X-A " + secret + " " + secret + " " + secret,
		"base_url https://u:" + secret + "@a.example",
		"base_url https://a.example:" + secret,
		"base_url https://a.example/?key=" + secret + "#x",
		"base_url " + secret,
		"default_model a " + secret,
		"key " + secret + " {",
	} {
		closing := ""
		if strings.HasSuffix(line, "{") {
			closing = "\n\t\t}"
		}
		config := "llm_gateway {\n\tchannel a {\n\t\t" + line + closing + "\n"
		if !strings.HasPrefix(line, "base_url") {
			config += "\t\tbase_url https://a.example\n"
		}
		if !strings.HasPrefix(line, "key") {
			config += "\t\tkey other\n"
		}
		err := new(Config).UnmarshalCaddyfile(caddyfile.NewTestDispenser(config + "\t}\n}"))
		if err == nil {
			t.Errorf("%s: no error", line)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestNearestName(t *testing.T) {
	names := []string{"base_url", "key", "max_body", "models", "weight"}
	for name, want := range map[string]string{
		"weigth":   "weight",
		"wieght":   "weight",
		"model":    "models",
		"baseurl":  "base_url",
		"base-url": "base_url",
		"keys":     "key",
		"kee":      "key",
		"upstream": "",
		"k":        "",
		"":         "",
	} {
		if got := nearest(name, names); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// Whatever is written, the parser does not panic, and what it accepts is
// accepted as JSON too.
func FuzzUnmarshalCaddyfile(f *testing.F) {
	files, _ := filepath.Glob("testdata/caddyfile/*.caddytest")
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		config, _, _ := strings.Cut(string(content), separator)
		if _, block, ok := strings.Cut(config, "\n"); ok {
			f.Add(strings.TrimSpace(strings.TrimSuffix(block, "}")))
		}
	}
	f.Fuzz(func(t *testing.T, config string) {
		tokens, err := caddyfile.Tokenize([]byte(config), "Caddyfile")
		if err != nil {
			return
		}
		c := new(Config)
		if c.UnmarshalCaddyfile(caddyfile.NewDispenser(tokens)) != nil {
			return
		}
		encoded, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if err := parseJSON(t, string(encoded)).checkAdapted(); err != nil {
			t.Errorf("%s\nas JSON: %v", config, err)
		}
	})
}
