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
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

func parseJSON(t *testing.T, s string) *Config {
	t.Helper()
	c := new(Config)
	if err := caddy.StrictUnmarshalJSON([]byte(s), c); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return c
}

// gatewayJSON is a gateway with one channel and the given options.
func gatewayJSON(options string) string {
	return fmt.Sprintf(`{%s, "channels": [{"name": "a", "base_url": "https://a.example"}]}`, options)
}

// channelJSON is a gateway whose one channel has the given options too.
func channelJSON(options string) string {
	return fmt.Sprintf(`{"channels": [{"name": "a", "base_url": "https://a.example", %s}]}`, options)
}

// What a Caddyfile can express is in the fixtures.
func TestCheckRefusesInJSON(t *testing.T) {
	for _, tc := range []struct{ config, want string }{
		{`{}`, `channel is missing: a gateway needs at least one`},
		{`{"channels": [null]}`, `channel number 1 is empty`},
		{`{"channels": [{"base_url": "https://a.example"}]}`, `channel number 1: name is missing`},
		{`{"channels": [{"name": "-a"}]}`, `channel number 1: name "-a" is not allowed: a letter or digit, then up to 63 letters, digits and ._:-`},
		{`{"channels": [{"name": "a"}, {"name": "a"}]}`, `channel a is given twice: names are unique within a gateway`},
		{`{"channels": [{"name": "a"}]}`, `channel a: base_url is missing`},
		{gatewayJSON(`"name": "a b"`), `name "a b" is not allowed: a letter or digit, then up to 63 letters, digits and ._:-`},
		{gatewayJSON(`"name": "a\n"`), `name "a\n" is not allowed: a letter or digit, then up to 63 letters, digits and ._:-`},
		{gatewayJSON(`"retries": -1`), `retries must be 0 to 100`},
		{gatewayJSON(`"abandon_after": -1`), `abandon_after must not be negative`},
		{gatewayJSON(`"max_body": -1`), `max_body must be above 0`},
		{gatewayJSON(`"errors": "Caddy"`), `errors must be provider or caddy, not "Caddy"`},
		{gatewayJSON(`"lb_policy": {}`), `lb_policy has no policy name`},
		{gatewayJSON(`"lb_policy": "first"`), `lb_policy has no policy name`},
		{gatewayJSON(`"lb_policy": {"policy": "llm_gateway"}`), `lb_policy llm_gateway is this gateway itself; use weighted or one of Caddy's policies`},
		{gatewayJSON(`"lb_policy": {"policy": "header", "fallback": {"policy": "query", "fallback": {"policy": "weighted_round_robin"}}}`),
			`lb_policy weighted_round_robin picks by position; use weight with lb_policy weighted`},
		{gatewayJSON(`"transport": {"dial_timeout": 1}`), `transport must be http`},
		{gatewayJSON(`"transport": {"protocol": "fastcgi"}`), `transport must be http`},
		{gatewayJSON(`"transport": {"protocol": "http", "response_header_timeout": 1}`),
			`transport must not set response_header_timeout: use header_timeout of the gateway or channel`},
		{gatewayJSON(`"breaker": {"jitter": -1}`), `breaker jitter must be 0 to 50 percent`},
		{gatewayJSON(`"breaker": {"max_probe_interval": 1}`), `breaker max_probe_interval must not be below probe_interval, which is 5m0s`},
		{gatewayJSON(`"breaker": {"mode": "off", "probe_timeout": {}}`), `breaker is off, so its options have no effect`},
		{gatewayJSON(`"auto_disable": {"mode": "on"}`), `auto_disable must be off or dry_run, not "on"`},
		{gatewayJSON(`"auto_disable": {"mode": "off", "keep_last_key": true}`), `auto_disable is off, so its options have no effect`},
		{gatewayJSON(`"auto_disable": {"mode": "off", "correlate": {"keys": 0}}`), `auto_disable is off, so its options have no effect`},
		{gatewayJSON(`"auto_disable": {"rules": [{"times": 3}]}`), `auto_disable status must be a status from 400 to 599, 4xx, 5xx or transport, not ""`},
		{gatewayJSON(`"auto_disable": {"rules": [{"status": "+401", "times": 3}]}`), `auto_disable status must be a status from 400 to 599, 4xx, 5xx or transport, not "+401"`},
		{gatewayJSON(`"auto_disable": {"rules": [{"status": "600", "match": "x", "times": 3}]}`), `auto_disable match must have a status from 400 to 599, 4xx or 5xx, not "600"`},
		{gatewayJSON(`"auto_disable": {"rules": [{"status": "500"}]}`), `auto_disable status times must be 1 or more`},
		{gatewayJSON(`"auto_disable": {"rules": [{"status": "500", "times": 3, "for": -1}]}`), `auto_disable status for must be above 0`},
		{gatewayJSON(`"auto_disable": {"rules": [{"status": "500", "times": 3, "scope": "Key"}]}`), `auto_disable status scope must be key or channel, not "Key"`},
		{gatewayJSON(`"auto_disable": {"rules": [{"status": "500", "times": 3, "scope": "key"}]}`), `auto_disable status scope key has no effect without a key`},
		{channelJSON(`"keys": ["k"], "auto_disable": {"correlate": {"keys": 0, "window": 1}}`), `channel a: auto_disable correlate must be 2 keys or more within a time above 0, or off`},
		{channelJSON(`"keys": ["k"], "auto_disable": {"correlate": {"keys": 2}}`), `channel a: auto_disable correlate must be 2 keys or more within a time above 0, or off`},
		{channelJSON(`"keys": ["k"], "auto_disable": {"correlate": {"keys": 2, "window": -1}}`), `channel a: auto_disable correlate must be 2 keys or more within a time above 0, or off`},
		{channelJSON(`"auto_disable": {"keep_last_key": true}`), `channel a: auto_disable keep_last_key has no effect without a key`},
		{channelJSON(`"auto_disable": {"correlate": {"keys": 0}}`), `channel a: auto_disable correlate has no effect without a key`},
		{channelJSON(`"max_requests": -1`), `channel a: max_requests must be 1 or more`},
		{channelJSON(`"weight": 1000001`), `channel a: weight must be 1 to 1000000`},
		{channelJSON(`"keys": ["k"], "auth": {}`), `channel a: auth must be bearer, header <name>, query <name>, passthrough or none`},
		{channelJSON(`"keys": ["k"], "auth": {"scheme": "bearer", "name": "X-A"}`), `channel a: auth bearer takes no header name`},
		{channelJSON(`"auth": {"scheme": "none", "name": "X-A"}`), `channel a: auth none takes no name`},
		{channelJSON(`"auth": {"scheme": "header", "name": "X-A"}`), `channel a: auth header has no effect without a key`},
		{channelJSON(`"keys": ["k", " \n"]`), `channel a: key number 2 is empty`},
		{channelJSON(`"models": [""]`), `channel a: models has an empty name`},
		{channelJSON(`"model_map": [{"requested": "a"}]`), `channel a: model_map has an empty name`},
		{channelJSON(`"idle_timeout": -1`), `channel a: idle_timeout must not be negative`},
		{channelJSON(`"breaker": {"probe_timeout": {"other": -1}}`), `channel a: breaker probe_timeout must be above 0`},
	} {
		err := parseJSON(t, tc.config).check()
		if err == nil || err.Error() != tc.want {
			t.Errorf("%s:\ngot  %v\nwant %s", tc.config, err, tc.want)
		}
		if fault := new(configError); err != nil && !errors.As(err, &fault) {
			t.Errorf("%s: %T is not a *configError", tc.config, err)
		}
	}
}

func TestCheckAccepts(t *testing.T) {
	for _, config := range []string{
		gatewayJSON(`"name": "` + strings.Repeat("a", 64) + `"`),
		gatewayJSON(`"name": "0._:-"`),
		gatewayJSON(`"retries": 100`),
		gatewayJSON(`"lb_policy": {"policy": "weighted"}`),
		gatewayJSON(`"lb_policy": {"policy": "header", "field": "X-A", "fallback": {"policy": "first"}}`),
		gatewayJSON(`"header_timeout": {}`),
		gatewayJSON(`"early_probe": 0, "breaker": {"mode": "dry_run"}`),
		gatewayJSON(`"breaker": {"open_threshold": 1}`),
		gatewayJSON(`"breaker": {"probe_interval": 7200000000000}`),
		gatewayJSON(`"breaker": {"probe_interval": 1, "max_probe_interval": 1, "jitter": 50, "degraded_weight": 0, "half_open_weight": 1}`),
		gatewayJSON(`"auto_disable": {}`),
		gatewayJSON(`"auto_disable": {"mode": "dry_run", "rules": [{"status": "400", "times": 1}, {"status": "599", "times": 1}, {"status": "4xx", "times": 1}]}`),
		gatewayJSON(`"auto_disable": {"rules": [{"status": "429", "times": 1}, {"status": "429", "match": "a", "times": 1}, {"status": "429", "match": "b", "times": 1}]}`),
		channelJSON(`"keys": ["k"], "auto_disable": {"rules": [{"status": "transport", "times": 1, "scope": "key"}], "keep_last_key": true, "correlate": {"keys": 0}}`),
		channelJSON(`"auto_disable": {"rules": [{"status": "401", "times": 1, "scope": "channel"}]}`),
		`{"auto_disable": {"keep_last_key": true, "correlate": {"keys": 2, "window": 1}, "rules": [{"status": "401", "times": 1, "scope": "key"}]},
			"channels": [{"name": "a", "base_url": "https://a.example"}, {"name": "b", "base_url": "https://b.example", "keys": ["k"]}]}`,
		channelJSON(`"weight": 1`),
		channelJSON(`"keys": ["{env.A}", "{env.B}"], "header_up": {"set": {"X-Api-Key": ["x"]}}`),
		channelJSON(`"header_up": {"set": {"Authorization": ["Basic x"]}}`),
		channelJSON(`"keys": ["k"], "auth": {"scheme": "header", "name": "X-A"}, "header_up": {"delete": ["Authorization"]}`),
		channelJSON(`"model_map": [{"requested": "*", "upstream": "a"}, {"requested": "b", "upstream": "c"}]`),
		channelJSON(`"model_map": [{"requested": "a/*/b*", "upstream": "x-*"}], "models": ["*"]`),
		`{"channels": [{"name": "a", "base_url": "http://a.example", "transport": {"protocol": "http"}}], "transport": {"protocol": "http", "tls": {}}}`,
		`{"early_probe": 1, "breaker": {"mode": "off"}, "channels": [{"name": "a", "base_url": "http://a.example", "breaker": {}}]}`,
	} {
		if err := parseJSON(t, config).check(); err != nil {
			t.Errorf("%s: %v", config, err)
		}
	}
}

func TestBackupsMayMeetButNotCircle(t *testing.T) {
	for _, tc := range []struct {
		chains string // "a>b,c" is a with backups b and c
		want   string
	}{
		{"a>b,c b>d c>d d", ""},
		{"a>b b>c c e>c", ""},
		{"a>a", "channel a: backup names the channel itself"},
		{"a>b b>a", "channel b: backup leads back to itself: a > b > a"},
		{"a>b b>c c>d d>b", "channel d: backup leads back to itself: b > c > d > b"},
		{"a b>c c>b", "channel c: backup leads back to itself: b > c > b"},
		{"a>b,c b>d d c>e e>c", "channel e: backup leads back to itself: c > e > c"},
	} {
		c := new(Config)
		for chain := range strings.FieldsSeq(tc.chains) {
			name, backups, _ := strings.Cut(chain, ">")
			ch := &Channel{Name: name, BaseURL: "https://a.example"}
			if backups != "" {
				ch.Backup = strings.Split(backups, ",")
			}
			c.Channels = append(c.Channels, ch)
		}
		got := ""
		if err := c.check(); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.chains, got, tc.want)
		}
	}
}

// Diamonds upon diamonds have 2^n paths; the search must not walk them all.
func TestBackupCheckIsLinear(t *testing.T) {
	c := new(Config)
	for i := range 200 {
		ch := &Channel{Name: fmt.Sprintf("c%d", i), BaseURL: "https://a.example"}
		for next := i + 1; next < min(i+3, 200); next++ {
			ch.Backup = append(ch.Backup, fmt.Sprintf("c%d", next))
		}
		c.Channels = append(c.Channels, ch)
	}
	if err := c.check(); err != nil {
		t.Error(err)
	}
}

func TestCredentialHeaderIsTheEffectiveOne(t *testing.T) {
	for _, tc := range []struct{ channel, touched string }{
		{`"base_url": "https://a.example", "keys": ["k"]`, "Authorization"},
		{`"base_url": "https://api.anthropic.com", "keys": ["k"]`, "X-Api-Key"},
		{`"base_url": "https://a.example", "provider": "azure", "keys": ["k"]`, "Api-Key"},
		{`"base_url": "https://api.anthropic.com", "provider": "openai", "keys": ["k"]`, "Authorization"},
		{`"base_url": "https://api.anthropic.com", "keys": ["k"], "auth": {"scheme": "bearer"}`, "Authorization"},
		{`"base_url": "https://a.example", "keys": ["k"], "auth": {"scheme": "header", "name": "x-token"}`, "X-Token"},
	} {
		for _, header := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Token"} {
			for _, op := range []string{`"set": {"%s": ["x"]}`, `"add": {"%s": ["x"]}`, `"delete": ["%s"]`, `"replace": {"%s": []}`} {
				up := fmt.Sprintf(op, strings.ToLower(header))
				err := parseJSON(t, `{"channels": [{"name": "a", `+tc.channel+`, "header_up": {`+up+`}}]}`).check()
				if (err != nil) != (header == tc.touched) {
					t.Errorf("%s with %s: %v", tc.channel, up, err)
				}
			}
		}
	}
}

func TestFieldMatches(t *testing.T) {
	for _, tc := range []struct {
		field string
		want  bool
	}{
		{"x-api-key", true},
		{"X-API-KEY", true},
		{"*", true},
		{"x-*", true},
		{"*-Key", true},
		{"*api*", true},
		{"api-key", false},
		{"y-*", false},
		{"*-keys", false},
		{"*auth*", false},
		{"", false},
	} {
		if got := fieldMatches(tc.field, "X-Api-Key"); got != tc.want {
			t.Errorf("%q: %v", tc.field, got)
		}
	}
}

func TestParseBaseURLKeepsWhatIsWritten(t *testing.T) {
	for _, s := range []string{
		"https://api.openai.com/v1",
		"https://api.anthropic.com",
		"https://a.example/",
		"https://a.example/v1/",
		"http://127.0.0.1:8000/v1",
		"http://[::1]:8000",
		"https://x.openai.azure.com/openai/deployments/d?api-version=2024-10-21",
		"https://a.example/a%2Fb/...",
	} {
		u, err := parseBaseURL(s)
		if err != nil {
			t.Errorf("%s: %v", s, err)
		} else if u.String() != s {
			t.Errorf("%s became %s", s, u)
		}
	}
	if u, err := parseBaseURL("HTTPS://a.example"); err != nil || u.Scheme != "https" {
		t.Errorf("scheme in capitals: %v, %v", u, err)
	}
}

func TestParseBaseURLRefuses(t *testing.T) {
	for s, want := range map[string]string{
		"":                                "is missing",
		"api.openai.com":                  "must begin with https:// or http://",
		"localhost:8000":                  "must begin with https:// or http://",
		"ftp://a.example":                 "must begin with https:// or http://",
		"https:a.example":                 "must begin with https:// or http://",
		"https://":                        "has no host",
		"https:///v1":                     "has no host",
		"https://:443/v1":                 "has no host",
		"https://user@a.example":          "must not have user info; use key or header_up",
		"https://a.example:0":             "has a port that is not 1 to 65535",
		"https://a.example:65536":         "has a port that is not 1 to 65535",
		"https://a.example:port":          "is not a valid URL",
		"https://a.example/#":             "must not have a fragment",
		"https://a.example/..":            "must not have . or .. in its path",
		"https://a.example/./v1":          "must not have . or .. in its path",
		"https://a.example/v1/%2e./":      "must not have . or .. in its path",
		"https://a.example/v1%2f..%2fv2":  "must not have . or .. in its path",
		"https://a.example/\x00":          "is not a valid URL",
		"https://{env.X}/v1":              "has a placeholder that is not known when the configuration is loaded",
		"https://{http.request.host}/v1":  "has a placeholder that is not known when the configuration is loaded",
		"https://a.example/v1?key={vars}": "has a placeholder that is not known when the configuration is loaded",
	} {
		if u, err := parseBaseURL(s); err == nil || err.Error() != want {
			t.Errorf("%q: %v, %v; want %q", s, u, err, want)
		}
	}
}

func TestBaseURLPlaceholdersAreExpandedBeforeTheCheck(t *testing.T) {
	t.Setenv("LLM_GATEWAY_TEST_HOST", "a.example/..")
	c := parseJSON(t, `{"channels": [{"name": "a", "base_url": "https://{env.LLM_GATEWAY_TEST_HOST}/v1"}]}`)
	if err := c.check(); err == nil || err.Error() != "channel a: base_url must not have . or .. in its path" {
		t.Errorf("got %v", err)
	}
	t.Setenv("LLM_GATEWAY_TEST_HOST", "a.example")
	if err := c.check(); err != nil {
		t.Error(err)
	}
}
