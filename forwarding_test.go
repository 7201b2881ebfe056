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

package llmgateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/llm-gateway/caddy-llm-gateway/internal/testrig"
)

// An upstream that closes idle connections just when the next request comes
// must cost nothing: net/http sends the request again on a new connection.
func TestStaleConnectionsAreNobodysFault(t *testing.T) {
	idle := 20 * time.Millisecond
	u1 := testrig.NewUpstream(t, func(s *http.Server) { s.IdleTimeout = idle })
	g := testrig.Start(t, gatewayBlock("channel a {\nbase_url "+u1.URL+"\nmodels m1\n}"))
	for range 500 {
		if got := g.Chat("m1"); got.Status != 200 {
			t.Fatalf("status %d %s", got.Status, got.Body)
		}
		if b := g.Breaker("a", "m1"); b.ConsecutiveFailures != 0 {
			t.Fatalf("counted: %+v", b)
		}
		time.Sleep(idle - 2*time.Millisecond) // together with the calls above about when the server closes
	}
}

// A connection that dies under a request before the first byte of its answer is
// resent once, unless the request might have changed something.
func TestConnectionThatDiesOnReuseIsResent(t *testing.T) {
	g, u1 := startDyingOnReuse(t)
	for range 2 {
		if got := g.Chat("m1"); got.Status != 200 {
			t.Errorf("status %d %s", got.Status, got.Body)
		}
	}
	if n := u1.Count(); n != 3 {
		t.Errorf("upstream got %d requests, want the second one twice", n)
	}
	if b := g.Breaker("a", "m1"); b.ConsecutiveFailures != 0 {
		t.Errorf("counted: %+v", b)
	}
	if h := u1.Last().Header; h.Get("Idempotency-Key") != "" || len(h["Idempotency-Key"]) > 0 {
		t.Errorf("an Idempotency-Key was sent: %v", h)
	}
}

func TestUploadIsNotResentOnADeadConnection(t *testing.T) {
	g, u1 := startDyingOnReuse(t)
	for range 2 {
		g.Do(g.Request("/v1/files", "x"))
	}
	if n := u1.Count(); n != 2 {
		t.Errorf("upstream got %d requests", n)
	}
}

// startDyingOnReuse runs an upstream that resets the second request of the first
// connection.
func startDyingOnReuse(t *testing.T) (*testrig.Gateway, *testrig.Upstream) {
	t.Helper()
	u1 := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock("channel a {\nbase_url "+u1.URL+"\nmodels m1\n}"))
	u1.Answer(func(w http.ResponseWriter, r *http.Request) {
		if u1.Count() == 2 {
			testrig.Reset(w, r)
			return
		}
		testrig.OK(w, r)
	})
	return g, u1
}

// Host, SNI and path are those of the attempt's channel, on a failover too.
func TestFailoverBetweenTLSHosts(t *testing.T) {
	u1, ca1 := testrig.NewTLSUpstream(t, "localhost")
	u2, ca2 := testrig.NewTLSUpstream(t, "other.example")
	port := func(u *testrig.Upstream) string { return u.URL[strings.LastIndex(u.URL, ":"):] }
	g := testrig.Start(t, gatewayBlock(fmt.Sprintf(`
		transport http {
			tls_trust_pool file %s
		}
		channel a {
			base_url https://localhost%s/x/v1
		}
		channel b {
			base_url https://127.0.0.1%s/y/v1/
			priority 1
			transport http {
				tls_trust_pool file %s
				tls_server_name other.example
			}
		}`, ca1, port(u1), port(u2), ca2)))
	u1.Answer(testrig.Fail(500, ""))
	r := g.Request("/v1/chat/completions", testrig.Chat("m1"))
	r.Host = "odd.example:1234"
	if got := g.Do(r); got.Status != 200 {
		t.Fatalf("status %d %s", got.Status, got.Body)
	}
	if r := u1.Last(); r.Host != "localhost"+port(u1) || r.SNI != "localhost" || r.Target != "/x/v1/chat/completions" {
		t.Errorf("a got %s %s %s", r.Host, r.SNI, r.Target)
	}
	if r := u2.Last(); r.Host != "127.0.0.1"+port(u2) || r.SNI != "other.example" || r.Target != "/y/v1/chat/completions" {
		t.Errorf("b got %s %s %s", r.Host, r.SNI, r.Target)
	}
}

func TestUntrustedCertificateFailsOver(t *testing.T) {
	u1, _ := testrig.NewTLSUpstream(t, "localhost")
	u2 := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock(channelBlock("a", u1)+channelBlock("b", u2, "priority 1")))
	if got := g.Chat("m1"); got.Status != 200 {
		t.Errorf("status %d", got.Status)
	}
	if b := g.Breaker("a", "m1"); b.ConsecutiveFailures != 1 || !strings.HasPrefix(b.LastFailure, "tls") {
		t.Errorf("%+v", b)
	}
}

func TestClientCredentialsNeverPass(t *testing.T) {
	u1, u2 := testrig.NewUpstream(t), testrig.NewUpstream(t)
	t.Setenv("KEY_OF_A", "sk-secret-of-a")
	t.Setenv("KEY_OF_B", "sk-secret-of-b")
	g := testrig.Start(t, gatewayBlock(fmt.Sprintf(`
		channel a {
			base_url %s
			key {env.KEY_OF_A}
			auth header x-api-key
		}
		channel b {
			base_url %s
			key {env.KEY_OF_B}
			priority 1
		}`, u1.URL, u2.URL)))
	u1.Answer(testrig.Fail(500, ""))
	r := g.Request("/v1/chat/completions?key=client-key&api-version=1&x=%2F", testrig.Chat("m1"))
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "Cookie", "Proxy-Authorization",
		"X-Forwarded-For", "Forwarded", "Via", "X-Real-Ip", "Origin", "Referer", "Early-Data", "OpenAI-Organization", "OpenAI-Project", "X-Goog-User-Project"} {
		r.Header.Set(name, "client-"+name)
	}
	r.Header.Set("Sec-Websocket-Protocol", "openai-insecure-api-key.client-key") // though it is no websocket
	r.Header.Set("X-Title", "kept")
	if got := g.Do(r); got.Status != 200 {
		t.Fatalf("status %d %s", got.Status, got.Body)
	}
	for _, c := range []struct {
		u                    *testrig.Upstream
		header, value, other string
	}{{u1, "X-Api-Key", "sk-secret-of-a", "sk-secret-of-b"}, {u2, "Authorization", "Bearer sk-secret-of-b", "sk-secret-of-a"}} {
		got := c.u.Last()
		all := fmt.Sprint(got.Target, got.Header)
		if got.Header.Get(c.header) != c.value {
			t.Errorf("%s: %q", c.header, got.Header.Get(c.header))
		}
		if strings.Contains(all, "client-") || strings.Contains(all, c.other) {
			t.Errorf("what does not belong there went upstream: %s", all)
		}
		if got.Target != "/v1/chat/completions?api-version=1&x=%2F" || got.Header.Get("X-Title") != "kept" {
			t.Errorf("what belongs there did not: %s", all)
		}
		for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Via", "Forwarded"} {
			if got.Header.Get(name) != "" {
				t.Errorf("%s went upstream", name)
			}
		}
	}
	assertNoSecrets(t, g, "sk-secret-of-a", "sk-secret-of-b")
}

// assertNoSecrets searches the log, at debug level, and the status.
func assertNoSecrets(t *testing.T, g *testrig.Gateway, secrets ...string) {
	t.Helper()
	status := g.AdminDo(http.MethodGet, "/llm_gateway/status", "").Body
	log := g.Log()
	for _, s := range secrets {
		if strings.Contains(log, s) || strings.Contains(status, s) {
			t.Errorf("a secret is in the log or the status")
		}
	}
}

func TestUpstreamEdgeHeadersStayBehind(t *testing.T) {
	p := startPair(t)
	p.u1.Answer(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Alt-Svc", "h3")
		w.Header().Set("Strict-Transport-Security", "max-age=1")
		w.Header().Set("X-Request-Id", "r1")
		testrig.OK(w, r)
	})
	h := p.Chat("m1").Header
	if h.Get("Set-Cookie")+h.Get("Alt-Svc")+h.Get("Strict-Transport-Security") != "" || h.Get("X-Request-Id") != "r1" {
		t.Errorf("client got %v", h)
	}
}

func TestHeaderUp(t *testing.T) {
	u1 := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock(`
		channel a {
			base_url `+u1.URL+`
			key sk-a
			header_up X-Added {http.llm_gateway.channel}
			header_up Origin https://allowed.example
			header_up -X-Title
		}`))
	r := g.Request("/v1/chat/completions", testrig.Chat("m1"))
	r.Header.Set("X-Title", "dropped")
	r.Header.Set("X-Client", "{env.HOME}")
	g.Do(r)
	h := u1.Last().Header
	if h.Get("X-Added") != "a" || h.Get("Origin") != "https://allowed.example" || h.Get("X-Title") != "" {
		t.Errorf("upstream got %v", h)
	}
	if h.Get("X-Client") != "{env.HOME}" {
		t.Errorf("client text was expanded: %q", h.Get("X-Client"))
	}
}

func TestBasePathsJoinAsProvidersDocumentThem(t *testing.T) {
	for _, c := range []struct{ provider, base, path, want string }{
		{"anthropic", "/anthropic", "/v1/messages", "/anthropic/v1/messages"},
		{"openai", "/openai/v1", "/v1/chat/completions", "/openai/v1/chat/completions"},
		{"openai", "/v1beta/openai", "/v1/chat/completions", "/v1beta/openai/chat/completions"},
		{"openai", "", "/v1/chat/completions", "/v1/chat/completions"},
		{"openai", "/v1", "/v1/chat/completions", "/v1/chat/completions"},
	} {
		for _, slash := range []string{"", "/"} {
			t.Run(c.base+slash, func(t *testing.T) {
				u1 := testrig.NewUpstream(t)
				g := testrig.Start(t, gatewayBlock("channel a {\nbase_url "+u1.URL+c.base+slash+"\nprovider "+c.provider+"\n}"))
				if got := g.Do(g.Request(c.path, testrig.Chat("m1"))); got.Status != 200 {
					t.Errorf("status %d %s", got.Status, got.Body)
				}
				if got := u1.Last().Target; got != c.want {
					t.Errorf("upstream got %s, want %s", got, c.want)
				}
			})
		}
	}
}

func TestQueryOfTheBaseURLIsMerged(t *testing.T) {
	u1 := testrig.NewUpstream(t)
	g := testrig.Start(t, gatewayBlock("channel a {\nbase_url "+u1.URL+"/openai/deployments/d?api-version=2024-06-01\nprovider azure\nkey sk-a\n}"))
	if got := g.Do(g.Request("/v1/chat/completions?api-version=other&x=1", testrig.Chat("m1"))); got.Status != 200 {
		t.Fatalf("status %d %s", got.Status, got.Body)
	}
	got := u1.Last()
	if got.Target != "/openai/deployments/d/chat/completions?api-version=2024-06-01&x=1" {
		t.Errorf("upstream got %s", got.Target)
	}
	if got.Header.Get("Api-Key") != "sk-a" {
		t.Errorf("credential: %v", got.Header)
	}
}
